"""How evenly the iterations of a parallel loop are shared out, from what an operand stores below each position of its first level."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..compiler.storage.tensor import Tensor, level_extent
from .features import remembered

USUAL_CHUNK = 64
"""Usual size of a chunk: iterations of the first level that a thread takes at once."""

_MOST_CHUNKS = 2**14
ITERATION = 2.0
"""Cost of an iteration apart from its entries, in entries."""


def static_excess(tensor: Tensor, threads: int) -> float:
    """Return the largest share of the work of threads that get equal stretches of the outermost loop, over the mean."""

    def found() -> float:
        work = np.diff(_work_before(tensor, np.linspace(0, _iterations(tensor), threads + 1).astype(np.int64)))
        return float(work.max() * threads / work.sum()) if work.any() else 1.0

    return remembered(tensor, ("static", threads), found)


def largest_chunk(tensor: Tensor, chunk: int) -> float:
    """Return which part of all work the largest of an even sample of chunks has."""
    return remembered(tensor, ("chunk", chunk), lambda: float(_chunk_works(tensor, chunk)[1].max()))


def dynamic_excess(tensor: Tensor, chunk: int, threads: int) -> float:
    """Return the most that the thread which is ready last takes, over the mean, where threads take chunks in order, each when it has done
    the one before: none begins later than when all before it are done, evenly (Graham, "Bounds on Multiprocessing Timing Anomalies", 1969).

    So a long row at the begin costs nothing, and one at the end all of its length. Of an even sample of chunks.
    """

    def found() -> float:
        before, works = _chunk_works(tensor, chunk)
        return max(1.0, float((before + threads * works).max()))

    return remembered(tensor, ("dynamic", chunk, threads), found)


def _chunk_works(tensor: Tensor, chunk: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return which part of all work lies before each of an even sample of chunks, and which part it has."""
    count, number = _iterations(tensor), chunks(tensor, chunk)
    begins = np.unique(np.linspace(0, number - 1, min(number, _MOST_CHUNKS)).astype(np.int64)) * chunk
    done = _work_before(tensor, np.concatenate([begins, np.minimum(begins + chunk, count), [0, count]]))
    first, last = done[-2:]
    before, after = done[: len(begins)], done[len(begins) : -2]
    return (before - first) / max(last - first, 1.0), (after - before) / max(last - first, 1.0)


def chunks(tensor: Tensor, chunk: int) -> int:
    """Return how many chunks of so many iterations there are."""
    return max(1, -(-_iterations(tensor) // chunk))


def _iterations(tensor: Tensor) -> int:
    return tensor.format.levels[0].positions(tensor.levels[0].parts, 1, level_extent(tensor, 0))


def _work_before(tensor: Tensor, places: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the work of all positions of the first level before each of some: their entries, and what iterations cost beside these."""
    found = places
    for number, level in enumerate(tensor.levels[1:], 1):
        if level.pos is not None:
            found = level.pos[found].astype(np.int64)
        elif tensor.format.levels[number].full:
            found = found * level_extent(tensor, number)
    return found.astype(np.float64) + ITERATION * places
