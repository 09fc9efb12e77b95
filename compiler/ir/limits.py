"""Limits that passes keep to and that cost models know, which load no pass."""

from __future__ import annotations

LONGEST_ROW = 256
"""The most elements of a row of which a thread keeps its own sums."""
