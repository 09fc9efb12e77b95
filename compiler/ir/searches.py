"""The functions by which the loop IR searches sorted coordinates and positions, in Python, and how many comparisons each makes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..numpy_later import np
from .meanings import check_range

if TYPE_CHECKING:
    from numpy.typing import NDArray


def lower_bound(crd: NDArray[Any], low: int, high: int, key: int) -> int:
    """Return the first place in [low, high) whose coordinate is at least ``key``; ``high`` if there is none."""
    check_range(crd, low, high)
    return low + int(np.searchsorted(crd[low:high], key, "left")) if low < high else low


def lower_bound_apart(crd: NDArray[Any], low: int, high: int, key: int, stride: int) -> int:
    """Return the same as ``lower_bound``, but only among the places from ``low`` in steps of ``stride``."""
    check_range(crd, low, high - stride + 1)
    return low + stride * int(np.searchsorted(crd[low:high:stride], key, "left")) if low < high else low


def upper_bound(crd: NDArray[Any], low: int, high: int, key: int) -> int:
    """Return the first place in [low, high) whose coordinate is above ``key``; ``high`` if there is none."""
    check_range(crd, low, high)
    return low + int(np.searchsorted(crd[low:high], key, "right")) if low < high else low


def filled_row(pos: NDArray[Any], low: int, high: int) -> int:
    """Return the first row in [low, high) that has entries; ``high`` if there is none."""
    if low >= high:
        return low
    check_range(pos, low, high + 1)
    return low + int(np.searchsorted(pos[low : high + 1], pos[low], "right")) - 1


def path_fibre(pos: NDArray[Any], low: int, high: int, item: int) -> int:
    """Return the first fibre in [low, high) whose end is not before an item of the merge path; ``high`` if there is none."""
    if low >= high:
        return low
    check_range(pos, low, high + 1)
    ends = pos[low + 1 : high + 1].astype(np.int64) + np.arange(low, high)
    return low + int(np.searchsorted(ends, item, "left"))


def gallop(crd: NDArray[Any], low: int, high: int, key: int, _stride: int) -> int:
    """Return the same as ``lower_bound``. Compiled code searches with strides that double."""
    return lower_bound(crd, low, high, key)


def gallop_stride(length: int, shortest: int) -> int:
    """Return the first stride through ``length`` coordinates for ``shortest`` others, a power of two near their mean distance."""
    return 1 << max(0, (length | 1).bit_length() - (shortest | 1).bit_length())


def _halvings(length: int) -> int:
    return max(length, 0).bit_length()


def bisections(arguments: Sequence[Any], _found: int) -> int:
    """Return how many coordinates a binary search looks at."""
    return _halvings(arguments[2] - arguments[1])


def bisections_apart(arguments: Sequence[Any], _found: int) -> int:
    """Return how many coordinates a binary search in steps looks at."""
    return _halvings((arguments[2] - arguments[1]) // arguments[4])


def leaps(arguments: Sequence[Any], found: int) -> int:
    """Return how many coordinates galloping looks at: the first, one for each step, and a binary search in the last step."""
    _, begin, high, _, step = arguments
    if begin >= high or found == begin:
        return int(begin < high)
    looked = 1
    while step < high - begin:
        looked += 1
        if begin + step >= found:
            break
        begin, step = begin + step, 2 * step
    return looked + _halvings(min(begin + step, high) - begin - 1)
