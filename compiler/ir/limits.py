"""Limits that passes keep to and that cost models know, which load no pass."""

from __future__ import annotations

LONGEST_ROW = 256
"""The most elements of a row of which a thread keeps its own sums."""

ROWS = 64
"""The number of rows of a block whose sums are made together (``passes.batches``)."""

FEWEST = 8
"""The least number of rows of such a block."""

SHORT = 24
"""The most elements of a row, on average over a block, for which sums are made in batches."""

BESIDE = (4, 8, 16)
"""Lengths for which several rows are added at once: the least one that the longest row of a block does not exceed is used."""

STEADY = 1 / 4
"""The largest share of a block's rows that may differ in length from the row before, if rows are to count as alike."""

STEADY_SHORT = 1 / 2
"""The same for rows of at most ``AVERAGE_STEADY`` elements on average."""

AVERAGE_STEADY = 8
"""Elements of a row, on average over a block, up to which rows lose less time at their ends."""
