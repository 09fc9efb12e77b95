"""Order statistics: medians and lower ends of samples, with intervals that assume nothing about the noise."""

from __future__ import annotations

import math
from collections.abc import Sequence

CONFIDENCE = 0.95

FEWEST = 6
"""The fewest values whose median has an interval with this confidence."""

_FAST_END = 0.1  # the fastest share of the runs; how far it reaches says how well the fastest time is known


def median_interval_ranks(count: int, confidence: float = CONFIDENCE) -> tuple[int, int]:
    """Return the ranks (from 0) of the order statistics between which the median lies with this confidence; the first and the last if there
    are too few values."""
    miss, rank = 0.0, 0
    for below in range(count // 2):
        miss += math.comb(count, below) / 2**count
        if 2 * miss > 1 - confidence:
            break
        rank = below
    return rank, count - 1 - rank


def fast_end_rank(count: int, confidence: float = CONFIDENCE) -> int:
    """Return the rank (from 0) of the order statistic that with this confidence lies above the fastest tenth of all runs; the last one if
    there are too few values."""
    held = 0.0
    for rank in range(count):
        held += math.comb(count, rank) * _FAST_END**rank * (1 - _FAST_END) ** (count - rank)
        if held >= confidence:
            return rank
    return count - 1


def median(values: Sequence[float]) -> float:
    """Return the median; of an even number of values, the mean of the middle two."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
