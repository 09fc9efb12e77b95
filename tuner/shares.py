"""How evenly the iterations of a parallel loop are shared out, from what an operand stores below each position of its first level."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..compiler.storage.tensor import Tensor, level_extent
from .features import remembered

_MOST_CHUNKS = 2**14
ITERATION = 2.0
"""What an iteration costs beside its entries, in entries."""


def static_excess(tensor: Tensor, threads: int) -> float:
    """Return the largest share of the work of threads that get equal stretches of the outermost loop, over the mean."""

    def found() -> float:
        work = _work(tensor, np.linspace(0, _iterations(tensor), threads + 1).astype(np.int64))
        return float(work.max() * threads / work.sum()) if work.any() else 1.0

    return remembered(tensor, ("static", threads), found)


def largest_chunk(tensor: Tensor, chunk: int) -> float:
    """Return which part of all work the largest of an even sample of chunks has."""

    def found() -> float:
        count, number = _iterations(tensor), chunks(tensor, chunk)
        picked = np.unique(np.linspace(0, number - 1, min(number, _MOST_CHUNKS)).astype(np.int64)) * chunk
        begins, ends = _entries_before(tensor, picked), _entries_before(tensor, np.minimum(picked + chunk, count))
        work = ends - begins + ITERATION * np.minimum(chunk, count - picked)
        return float(work.max() / max(_work(tensor, np.array([0, count])).sum(), 1.0))

    return remembered(tensor, ("chunk", chunk), found)


def chunks(tensor: Tensor, chunk: int) -> int:
    """Return how many chunks of so many iterations there are."""
    return max(1, -(-_iterations(tensor) // chunk))


def _iterations(tensor: Tensor) -> int:
    return tensor.format.levels[0].positions(tensor.levels[0].parts, 1, level_extent(tensor, 0))


def _work(tensor: Tensor, bounds: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.diff(_entries_before(tensor, bounds)) + ITERATION * np.diff(bounds)


def _entries_before(tensor: Tensor, places: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return how many entries lie below the positions of the first level before each of some."""
    found = places
    for number, level in enumerate(tensor.levels[1:], 1):
        if level.pos is not None:
            found = level.pos[found].astype(np.int64)
        elif tensor.format.levels[number].full:
            found = found * level_extent(tensor, number)
    return found.astype(np.float64)
