"""Reference kernels: fixed pieces of work that tell how fast a machine is tonight.

A kernel bound by memory slows down when other programs use the memory, one bound by arithmetic when the clock of its core slows down, and
one of several threads when other programs take a core. So a kernel is compared with a reference of its own kind: as many threads, bound by
memory or by arithmetic, about as long. A kernel on a device is compared with the clock itself. References are loops of NumPy, which no
change of sparsetune makes faster or slower. This module imports nothing of sparsetune, since processes that run an older version load it
from its file.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

KINDS = ("memory", "arithmetic", "clock")
LIBRARY = f"numpy {np.__version__}"

_STREAM = 2**22  # doubles in an array of a thread; three of them do not fit into caches
_SLICE = 2**13  # doubles of each array in a unit of work bound by memory
_SQUARE_ROOTS = 2**11  # square roots in a unit of work bound by arithmetic; the numbers lie in the first cache
_LEAST_SECONDS = {1: 1e-4}  # shortest run of one thread; several threads have to be started, so their runs are longer
_LEAST_OF_MANY = 2e-3  # shortest run of several threads
_MOST_SECONDS = 0.02  # longest run


@dataclass(frozen=True)
class Reference:
    """A reference kernel.

    Attributes:
        kind: one of ``KINDS``; "clock": no work, which takes a second.
        threads: how many threads run it; each does all of the work.
        units: units of work in a run.
        library: the library whose loops run, with its version.
    """

    kind: str
    threads: int
    units: int
    library: str = LIBRARY


CLOCK = Reference("clock", 1, 1)
"""The reference of kernels on a device, which other programs of the machine do not make slower."""


class Work:
    """A reference with its arrays and threads; calling it runs it once."""

    def __init__(self, reference: Reference) -> None:
        self._reference = reference
        self._pool = ThreadPoolExecutor(reference.threads - 1) if reference.threads > 1 else None
        size = _STREAM if reference.kind == "memory" else _SQUARE_ROOTS
        self._arrays = [np.ones((3, size)) for _ in range(reference.threads)]
        self._place = 0

    def __call__(self) -> None:
        place, self._place = self._place, self._place + self._reference.units
        others = [self._pool.submit(self._part, array, place) for array in self._arrays[1:]] if self._pool is not None else []
        self._part(self._arrays[0], place)
        for other in others:
            other.result()

    def _part(self, array: np.ndarray[tuple[int, int], np.dtype[np.float64]], place: int) -> None:
        a, b, c = array
        if self._reference.kind == "arithmetic":
            for _ in range(self._reference.units):
                np.sqrt(b, out=a)
            return
        slices = _STREAM // _SLICE
        for unit in range(place, place + self._reference.units):
            start = (unit % slices) * _SLICE
            part = slice(start, start + _SLICE)
            np.multiply(c[part], 3.0, out=a[part])
            np.add(a[part], b[part], out=a[part])


def fitting(kind: str, threads: int, seconds: float) -> Reference:
    """Return a reference of a kind that takes about so many seconds, within a fiftieth of a second at most."""
    least = _LEAST_SECONDS.get(threads, _LEAST_OF_MANY)
    wanted = min(max(seconds, least), _MOST_SECONDS)
    trial = Work(Reference(kind, threads, 64))
    trial()
    times = []
    for _ in range(3):
        start = time.perf_counter()
        trial()
        times.append(time.perf_counter() - start)
    return Reference(kind, threads, max(1, round(64 * wanted / min(times))))
