"""How often what a stored coordinate chooses is not in a cache, estimated from a sample of the pattern.

A row of a dense operand that a coordinate chooses is still in a cache if it was used not long ago: if it is among the distinct rows that
fill the cache. Stretches of coordinates are looked at in halves, each as long as the rows that the cache holds: what the second half
asks for and neither it nor the first half had before is a miss, unless the row before it was there, which hardware fetches ahead.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..compiler.storage.tensor import Tensor, level_extent
from .features import remembered

_STRETCHES = 4
_MOST = 2**15  # coordinates of half a stretch


def scattered_share(tensor: Tensor, level: int, rows: float) -> float:
    """Return which share of the coordinates of a level choose a row that is neither among the last ones nor behind one of them.

    Args:
        tensor: stores the coordinates.
        level: which stores them.
        rows: how many rows the cache holds.
    """
    kind, parts = tensor.format.levels[level], tensor.levels[level]
    coordinates, extent = parts.crd, level_extent(tensor, level)
    if kind.full or coordinates is None or rows >= extent:
        return 0.0
    return remembered(tensor, ("scattered", level, round(rows)), lambda: _scattered(coordinates, extent, rows))


def _scattered(coordinates: NDArray[Any], extent: int, rows: float) -> float:
    count = len(coordinates)
    half = min(int(min(max(rows, 64.0), _MOST)), count // 2)
    if half == 0:
        return 0.0
    missed = 0
    begins = np.unique(np.linspace(0, count - 2 * half, _STRETCHES).astype(np.int64))
    for begin in begins:
        first, second = coordinates[begin : begin + half], coordinates[begin + half : begin + 2 * half]
        known, asked = np.zeros(extent + 1, dtype=bool), np.zeros(extent + 1, dtype=bool)  # one place before the first coordinate
        known[first + 1] = asked[second + 1] = True
        new = np.flatnonzero(asked & ~known)
        missed += int(np.count_nonzero(~known[new - 1] & ~asked[new - 1]))
    return missed / (len(begins) * half)
