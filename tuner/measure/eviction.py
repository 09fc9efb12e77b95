"""Cold caches: caches that hold none of the operands, as in a program that does other work between calls."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from ...compiler.native.machine import this_machine

FLUSHED = 256 << 20
"""Bytes that are written on a GPU between runs in cold caches: several times the second-level cache of any GPU so far."""

_TIMES = 2  # memory that is walked through, in sizes of the caches: caches do not strictly replace the oldest line
_LINE = 8  # least doubles in a cache line


class Eviction:
    """Fills every cache of as many cores as a kernel has threads, all at the same time, with memory of its own.

    The system spreads threads over cores, so that a private cache may be missed; the last level, which is shared, is always filled.
    """

    def __init__(self, threads: int) -> None:
        private = sum(cache.bytes for cache in this_machine().caches if cache.shared_by < this_machine().cores)
        size = _TIMES * max(this_machine().last_level_cache // threads, private)
        self._parts = [np.zeros(size // 8) for _ in range(threads)]
        self._pool = ThreadPoolExecutor(threads - 1) if threads > 1 else None

    def __call__(self) -> None:
        """Write one number into every cache line of the memory."""
        others = [self._pool.submit(_touch, part) for part in self._parts[1:]] if self._pool is not None else []
        _touch(self._parts[0])
        for other in others:
            other.result()


def _touch(part: np.ndarray[tuple[int], np.dtype[np.float64]]) -> None:
    part[::_LINE] += 1.0
