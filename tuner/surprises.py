"""How many lengths of rows a branch predictor does not foresee: the ends of loops over rows that it *mispredicts*.

The predictor is small and simple, as real ones are at their core: in a table it looks up what came after the last few lengths the last
times, and expects what came twice of the last three times. Real ones choose between histories of many lengths; here there are a short and
two longer ones, of which the best counts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

HISTORIES = 1, 4, 12
"""How many lengths before a row are looked up."""

_BITS = 4  # of a length, the lowest ones, by which it is looked up
_MIXED = 0x9E35  # odd, so that lengths are spread over all places of the table


def surprising_share(lengths: NDArray[Any]) -> float:
    """Return the share of consecutive rows whose lengths are not foreseen."""
    told = (lengths & (2**_BITS - 1)).astype(np.uint16)
    return min((_missed(lengths, told, history) for history in HISTORIES if len(lengths) > history), default=0.0)


def _missed(lengths: NDArray[Any], told: NDArray[np.uint16], history: int) -> float:
    """Return the share of the rows that are not foreseen from so many lengths before."""
    count = len(lengths) - history
    context = np.zeros(count, np.uint16)
    for before in range(history):
        context = context * np.uint16(_MIXED) + told[before : before + count]
    ordered = lengths[history:].take(np.argsort(context, kind="stable"))  # what came after one context, time after time
    as_last, as_second = ordered[1:] == ordered[:-1], ordered[3:] == ordered[1:-2]
    came_twice = as_last[:-2]  # the second and the third one before: it is expected again, otherwise the last one
    foreseen = (came_twice & as_second) | (~came_twice & as_last[2:])
    return (len(foreseen) - int(np.count_nonzero(foreseen))) / max(1, count - 3)
