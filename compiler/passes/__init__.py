"""Passes from loop IR to loop IR."""
