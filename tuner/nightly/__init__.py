"""The nightly job: a suite measured again, raced against an older version or compared with a baseline, and watched over the nights."""

from .baseline import Entry, load_baseline, write_baseline

__all__ = ["Entry", "load_baseline", "write_baseline"]
