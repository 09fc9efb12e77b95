"""How often a row of a dense operand that stored coordinates choose is waited for, estimated from a sample of the pattern.

A chosen row of a dense operand is still in the cache if it is among the last distinct rows that fill it, with whatever else passes through
meanwhile. Stretches of coordinates are looked at in halves. A row that the second half chooses is a miss if neither half chose it before. A
row is thus remembered for one and a half halves on average, so a half is sized such that as many coordinates fill the cache. Of misses
those are not waited for that continue a stream: rows asked for one after another, as along a band, which hardware fetches ahead. That
neighbours were chosen at some time makes no stream: meshes choose most rows near others, but in no order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..compiler.storage.positions import level_extent
from .remembered import remembered
from .steps import asks

if TYPE_CHECKING:
    from ..compiler.storage.tensor import Tensor

_STRETCHES = 16  # between fewer there may be the few long rows of a matrix, which choose what no other row does
_MOST = 2**17  # most coordinates that are looked at, in all halves together
_AT_ONCE = 2**15  # rows, or coordinates of a half, that are looked at at once: between few, most time goes into beginning
_HALF = 2 / 3  # a half in parts of what the cache holds
_TRIES, _ENOUGH = 4, 1.15  # tries to find a half of the right size, and how far off it may be
_STREAMS = 4  # streams at a time that hardware tells apart: planes of a grid of three dimensions, and one more


@asks
def scattered_share(tensor: Tensor, level: int, rows: float, lines: float = 1.0, beside: float = 0.0) -> float:
    """Return the share of a level's coordinates that choose a row which is neither one of the last rows nor the next of a stream.

    Args:
        tensor: stores the coordinates.
        level: which stores them.
        rows: how many rows the cache holds.
        lines: how many lines of the cache a row takes; several rows of less than one share a line, and come together.
        beside: what passes through the cache with each coordinate besides its row, in rows.
    """
    kind, parts = tensor.format.levels[level], tensor.levels[level]
    coordinates, extent = parts.crd, level_extent(tensor, level)
    if kind.full or coordinates is None:
        return 0.0
    together = max(1, round(1 / lines))
    places, held, passing = -(-extent // together), rows / together, beside / together
    if held >= min(places, len(coordinates)) + passing * len(coordinates):
        return 0.0
    key = "scattered", level, round(held), round(passing, 2), together
    return remembered(tensor, key, lambda: _scattered(coordinates, places, held, passing, together))


def _scattered(coordinates: NDArray[Any], places: int, rows: float, beside: float, together: int) -> float:
    """Return the share of coordinates that are waited for; ``places``: how many rows there are, or groups of ``together`` of them."""
    count, half = len(coordinates), _half(coordinates, places, rows, beside, together)
    if half == 0:
        return 0.0
    whole = max(1, count // half - 1)  # so many second halves lie side by side: more would look at the same coordinates again
    stretches = min(_STRETCHES, max(1, _MOST // half), whole)
    begins = ((np.arange(stretches) + 0.5) / stretches * (count - 2 * half)).astype(np.int64)
    begins = begins[np.diff(begins, prepend=-1) > 0]  # they are sorted: a fraction of the time of ``np.unique``
    several = max(1, _AT_ONCE // max(places, half))
    groups = (begins[first : first + several] for first in range(0, len(begins), several))
    missed = sum(_missed(coordinates, group, half, places, together) for group in groups)
    return missed / (len(begins) * half)


def _missed(coordinates: NDArray[Any], begins: NDArray[np.int64], half: int, places: int, together: int) -> int:
    """Return how many coordinates are waited for in the second halves of some stretches. Each stretch has rows of its own: those of
    one begin behind those of the one before, and are no neighbours of these."""
    chosen = coordinates[begins[:, None] + np.arange(2 * half)].astype(np.int64)  # a half of the time where these are indices
    chosen = (chosen if together == 1 else chosen // together) + (places + 1) * np.arange(len(begins))[:, None]
    first, second = chosen[:, :half].ravel(), chosen[:, half:].ravel()
    known, asked = np.zeros((2, (places + 1) * len(begins)), dtype=bool)
    known[first] = True
    late = np.flatnonzero(~known[second])
    asked[second[late]] = True
    new = np.flatnonzero(asked)
    turn = np.empty(len(asked), dtype=np.int32)
    turn[second[late[::-1]]] = late[::-1]  # of a row that is chosen more than once the first time stays
    return len(new) - _streamed(new, turn[new])


def _streamed(rows: NDArray[Any], turns: NDArray[Any]) -> int:
    """Return how many of some sorted rows continue a stream: the two rows before were asked for before, each shortly after the other, as
    hardware needs to see two steps. Between these may be some steps of other streams; ``turns``: when rows are asked for first."""
    order = np.empty(len(rows), dtype=np.int64)
    order[np.argsort(turns)] = np.arange(len(rows))
    steps = np.diff(order)
    follows = (np.diff(rows) == 1) & (steps > 0) & (steps <= _STREAMS)
    return int(np.count_nonzero(follows[1:] & follows[:-1]))


def _half(coordinates: NDArray[Any], places: int, rows: float, beside: float, together: int) -> int:
    """Return how many coordinates a half needs, so that one and a half times as many fill the cache: the more, the more often rows are
    chosen again. Counted in the middle of the level."""
    count, half = len(coordinates), max(int(_HALF * rows / (1 + beside)), 64)
    for _ in range(_TRIES):
        half = min(half, _MOST, count // 2)
        length = min(int(half / _HALF), count)
        begin = (count - length) // 2
        chosen = np.zeros(places, dtype=bool)
        chosen[coordinates[begin : begin + length] // together] = True
        most = rows / max(1.0, np.count_nonzero(chosen) + beside * length)
        if most <= _ENOUGH:
            break
        half = int(min(most, 2.0) * half)
    return min(half, _MOST, count // 2)
