"""Concrete index notation: loop nests with workspaces."""
