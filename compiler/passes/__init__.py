"""Passes that change loop IR, and the lists of passes for processors and for GPUs."""
