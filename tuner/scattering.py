"""How often a row of a dense operand that stored coordinates choose is in no cache, estimated from a sample of the pattern.

A chosen row of a dense operand is still in the cache if it is among the last distinct rows that fill it. Stretches of coordinates are
looked at in halves. A row that the second half chooses is a miss if neither half chose it before, but for its first line if the row before
it was chosen: hardware fetches the next line ahead. A row is thus remembered for one and a half halves on average, so a half is sized such
that as many coordinates choose as many distinct rows as the cache holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..compiler.storage.positions import level_extent
from .recording import asks
from .remembered import remembered

if TYPE_CHECKING:
    from ..compiler.storage.tensor import Tensor

_STRETCHES = 16  # between fewer there may be the few long rows of a matrix, which choose what no other row does
_MOST = 2**17  # most coordinates that are looked at, in all halves together
_HALF = 2 / 3  # a half in parts of what the cache holds
_TRIES, _ENOUGH = 4, 1.15  # tries to find a half of the right size, and how far off it may be


@asks
def scattered_share(tensor: Tensor, level: int, rows: float, lines: float = 1.0) -> float:
    """Return the share of the lines of rows chosen by a level's coordinates that are neither of one of the last rows nor next to one.

    Args:
        tensor: stores the coordinates.
        level: which stores them.
        rows: how many rows the cache holds.
        lines: how many lines of the cache a row takes; fewer than one count as one.
    """
    kind, parts = tensor.format.levels[level], tensor.levels[level]
    coordinates, extent = parts.crd, level_extent(tensor, level)
    if kind.full or coordinates is None or rows >= min(extent, len(coordinates)):
        return 0.0
    line = 1.0 / max(1.0, lines)
    return remembered(tensor, ("scattered", level, round(rows), line), lambda: _scattered(coordinates, extent, rows, line))


def _scattered(coordinates: NDArray[Any], extent: int, rows: float, line: float) -> float:
    """Return the share of lines that are missed; ``line``: one line as a part of a row."""
    count, half = len(coordinates), _half(coordinates, extent, rows)
    if half == 0:
        return 0.0
    missed, stretches = 0.0, min(_STRETCHES, max(1, _MOST // half))
    places = (np.arange(stretches) + 0.5) / stretches
    begins = (places * (count - 2 * half)).astype(np.int64)
    begins = begins[np.diff(begins, prepend=-1) > 0]  # they are sorted: a fraction of the time of ``np.unique``
    for begin in begins:
        first, second = coordinates[begin : begin + half], coordinates[begin + half : begin + 2 * half]
        known, asked = np.zeros(extent + 1, dtype=bool), np.zeros(extent + 1, dtype=bool)  # place 0 is before the first coordinate
        known[first + 1] = asked[second + 1] = True
        new = np.flatnonzero(asked & ~known)
        missed += len(new) - line * np.count_nonzero(known[new - 1] | asked[new - 1])
    return float(missed / (len(begins) * half))


def _half(coordinates: NDArray[Any], extent: int, rows: float) -> int:
    """Return how many coordinates a half needs, so that one and a half times as many choose as many distinct rows as the cache holds:
    the more, the more often rows are chosen again. Counted in the middle of the level."""
    count, half = len(coordinates), max(int(_HALF * rows), 64)
    for _ in range(_TRIES):
        half = min(half, _MOST, count // 2)
        length = min(int(half / _HALF), count)
        begin = (count - length) // 2
        chosen = np.zeros(extent, dtype=bool)
        chosen[coordinates[begin : begin + length]] = True
        most = rows / max(1, np.count_nonzero(chosen))
        if most <= _ENOUGH:
            break
        half = int(min(most, 2.0) * half)
    return min(half, _MOST, count // 2)
