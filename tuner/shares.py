"""How evenly the iterations of a parallel loop are shared out, from what an operand stores below each position of its first level."""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..compiler.storage.positions import level_extent
from .remembered import remembered
from .steps import asks

if TYPE_CHECKING:
    from ..compiler.storage.tensor import Tensor

USUAL_CHUNK = 64
"""Usual size of a chunk: iterations of the first level that a thread takes at once."""

_PIECES = 8  # pieces of each thread's stretch, as many as ``st_even`` makes
_MOST_CHUNKS = 2**14
ITERATION = 2.0
"""Cost of an iteration besides its entries, in entries."""


@asks
def static_excess(tensor: Tensor, threads: int, apart: bool = False) -> float:
    """Return the work of the thread that ends last over the mean, where threads get equal stretches of the outermost loop.

    A thread takes its stretch piece by piece, and then pieces that others have not come to (``st_even`` in ``csrc/st_loop.h``).

    Args:
        tensor: the operand that the loop goes through.
        threads: how many share the loop.
        apart: whether each thread has results of its own, as with ``temporary``; then no thread takes over from another.
    """

    def found() -> float:
        lanes = _pieces(tensor, threads, 1 if apart else _PIECES)
        total = float(sum(map(sum, lanes)))
        return max(1.0, _last_done(lanes) * threads / total) if total else 1.0

    return remembered(tensor, ("static", threads, apart), found)


def _pieces(tensor: Tensor, threads: int, each: int) -> list[deque[float]]:
    """Return the work of the pieces that each thread begins with, in order."""
    count = _iterations(tensor)
    size = max(1, -(-count // (each * threads)))
    ends = np.minimum(np.arange(0, count + size, size), count)
    works = np.diff(_work_before(tensor, ends)).tolist()
    firsts = [len(works) * thread // threads for thread in range(threads + 1)]
    return [deque(works[first:end]) for first, end in pairwise(firsts)]


def _last_done(lanes: list[deque[float]]) -> float:
    """Return when the last thread is done. Each begins with a lane of its own, and then goes on with the next lane that has pieces left."""
    ready = [(0.0, thread) for thread in range(len(lanes))]
    last = 0.0
    while ready:
        time, thread = heappop(ready)
        last = max(last, time)
        left = next((lane for lane in lanes[thread:] + lanes[:thread] if lane), None)
        if left is not None:
            heappush(ready, (time + left.popleft(), thread))
    return last


@asks
def largest_chunk(tensor: Tensor, chunk: int) -> float:
    """Return the share of all work that the largest chunk has, of an even sample of chunks."""
    return remembered(tensor, ("chunk", chunk), lambda: float(_chunk_works(tensor, chunk)[1].max()))


@asks
def dynamic_excess(tensor: Tensor, chunk: int, threads: int) -> float:
    """Return an upper bound of the time of threads that take chunks in order, each when it has done the one before, over the mean.

    No chunk begins later than when all chunks before it are done by all threads together (Graham, "Bounds on Multiprocessing Timing
    Anomalies", 1969). So a long row at the beginning costs nothing, and one at the end costs its length. Taken over an even sample of
    chunks.
    """

    def found() -> float:
        before, works = _chunk_works(tensor, chunk)
        return max(1.0, float((before + threads * works).max()))

    return remembered(tensor, ("dynamic", chunk, threads), found)


def _chunk_works(tensor: Tensor, chunk: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return, for an even sample of chunks, the share of all work that lies before each, and the share that it has."""
    count, number = _iterations(tensor), chunks(tensor, chunk)
    begins = np.arange(number) if number <= _MOST_CHUNKS else np.linspace(0, number - 1, _MOST_CHUNKS).astype(np.int64)  # all differ
    begins *= chunk
    done = _work_before(tensor, np.concatenate([begins, np.minimum(begins + chunk, count), [0, count]]))
    first, last = done[-2:]
    before, after = done[: len(begins)], done[len(begins) : -2]
    return (before - first) / max(last - first, 1.0), (after - before) / max(last - first, 1.0)


@asks
def chunks(tensor: Tensor, chunk: int) -> int:
    """Return how many chunks of so many iterations there are."""
    return max(1, -(-_iterations(tensor) // chunk))


def _iterations(tensor: Tensor) -> int:
    return tensor.format.levels[0].positions(tensor.levels[0].parts, 1, level_extent(tensor, 0))


def _work_before(tensor: Tensor, places: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the work of all positions of the first level before each of some: their entries and ``ITERATION`` for each position."""
    found = places
    for number, level in enumerate(tensor.levels[1:], 1):
        if level.pos is not None:
            found = level.pos[found].astype(np.int64)
        elif tensor.format.levels[number].full:
            found = found * level_extent(tensor, number)
    return found.astype(np.float64) + ITERATION * places
