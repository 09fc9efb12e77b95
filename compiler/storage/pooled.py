"""Memory of large results, which serves the next one when nobody uses it any more (``native.idle_memory``)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..native.idle_memory import IDLE
from ..native.memory import available
from .aligned import ALIGNMENT, aligned_empty

LEAST = 1 << 18
"""Bytes from which allocators ask the system for new pages at every allocation."""

SHARE = 8
"""Part of the memory that could be had when the first large result was made, which is kept at most."""


class _Lease:
    """Memory that is in use as long as this object lives, which all arrays over it keep alive."""

    __slots__ = ("__array_interface__", "_raw")

    def __init__(self, raw: NDArray[np.uint8]) -> None:
        self._raw = raw
        self.__array_interface__ = {"data": (raw.ctypes.data, False), "shape": raw.shape, "typestr": "|u1", "version": 3}

    def __del__(self) -> None:
        raw = self._raw
        IDLE.give(raw, raw.size)


def pooled_empty(count: int, dtype: DTypeLike) -> NDArray[Any]:
    """Return what ``aligned_empty`` does, in memory that goes to the next large result once no array lies over it.

    Raises:
        ResourceError: the memory cannot be had.
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
