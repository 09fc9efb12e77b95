"""Memory of large results, which is reused for later ones when it is not used any more (``native.idle_memory``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..native.idle_memory import IDLE
from ..native.memory import available
from ..numpy_later import np
from .aligned import ALIGNMENT, aligned_empty

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

LEAST = 1 << 18
"""For at least this many bytes, allocators get new pages from the system at every allocation."""

SHARE = 8
"""The most that is kept, as a share of the memory that was available when the first large result was made."""


class _Lease:
    """Memory that is in use as long as this object lives; all arrays over the memory keep the object alive."""

    __slots__ = ("__array_interface__", "_raw")

    def __init__(self, raw: NDArray[np.uint8]) -> None:
        self._raw = raw
        self.__array_interface__ = {"data": (raw.ctypes.data, False), "shape": raw.shape, "typestr": "|u1", "version": 3}

    def __del__(self) -> None:
        raw = self._raw
        IDLE.give(raw, raw.size)


def pooled_empty(count: int, dtype: DTypeLike) -> NDArray[Any]:
    """Return an array like that of ``aligned_empty``; its memory is kept for later large results once no array uses it.

    Raises:
        ResourceError: there is no memory.
    """
    kind = np.dtype(dtype)
    size = int(count) * kind.itemsize
    if size < LEAST:
        return aligned_empty(count, kind)
    if not IDLE.limit:
        IDLE.limit = available().bytes // SHARE
    raw = IDLE.take(size)
    if raw is None:
        raw = aligned_empty(-(-size // ALIGNMENT) * ALIGNMENT, np.uint8)
    return np.asarray(_Lease(raw))[:size].view(kind)
