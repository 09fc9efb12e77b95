"""Whether two arrays are segments of sorted coordinates, told by NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..numpy_later import np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def segment_state(pos: NDArray[Any], crd: NDArray[Any], stored: int, extent: int) -> int:
    """Return what ``kernels.Kernels.check_segments`` returns: 0 where ``pos`` delimits segments of ``crd`` whose coordinates increase, 1
    where they do not increase, 2 where one is out of range, 3 where there are no such segments."""
    if int(pos[0]) != 0 or (pos[1:] < pos[:-1]).any() or int(pos[-1]) > stored:  # a difference might overflow
        return 3
    crd = crd[: int(pos[-1])]
    if len(crd) and (int(crd.min()) < 0 or int(crd.max()) >= extent):
        return 2
    descents = crd[1:] <= crd[:-1]
    inner = pos[(pos > 0) & (pos < len(crd))]
    begins = inner[np.diff(inner, prepend=0) > 0] - 1  # they are sorted: a fraction of the time of ``np.unique``
    return int(np.count_nonzero(descents) != np.count_nonzero(descents[begins]))
