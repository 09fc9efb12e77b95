"""Processor grids: shapes over a number of ranks, and which grid suits a cost.

Ranks stand in a grid in row-major order, as MPI's Cartesian topologies have them: the last dimension varies fastest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...compiler.errors import DataError

NEAR = 1.1
"""A grid is as good as the one that moves least if it moves no more than this many times as much."""

_SHORTLIST = 8  # grids near the best for which the better estimate is made


@lru_cache(64)
def grid_shapes(ranks: int, modes: int) -> tuple[tuple[int, ...], ...]:
    """Return every way to write a number of ranks as a product of one extent a mode, in lexicographic order."""
    return tuple(_factorizations(ranks, modes))


def _factorizations(ranks: int, modes: int) -> Iterator[tuple[int, ...]]:
    if modes == 0:
        if ranks == 1:
            yield ()
        return
    if modes == 1:
        yield (ranks,)
        return
    for first in (divisor for divisor in range(1, ranks + 1) if ranks % divisor == 0):
        for rest in _factorizations(ranks // first, modes - 1):
            yield (first, *rest)


def checked_grid(grid: Sequence[int], ranks: int, order: int) -> tuple[int, ...]:
    """Return a grid that somebody gives.

    Raises:
        DataError: it is no grid of so many ranks with one dimension for each mode.
    """
    try:
        found = tuple(int(extent) for extent in grid)
        whole = all(int(extent) == extent for extent in grid)
    except (TypeError, ValueError):
        raise DataError(f"a grid is one whole number for each mode, such as (2, 2, 1), not {grid!r}") from None
    shown = " x ".join(map(str, found))
    if not whole or len(found) != order or min(found, default=1) < 1:
        raise DataError(f"the grid {grid!r} does not fit a tensor of order {order}: give {order} whole numbers from 1 on")
    if math.prod(found) != ranks:
        raise DataError(f"the grid {shown} has {math.prod(found)} places, but there are {ranks} ranks")
    return found


def checked_ranks(ranks: int) -> int:
    """Return a number of ranks. Raises ``DataError`` for what is none."""
    if isinstance(ranks, bool) or not isinstance(ranks, (int, np.integer)) or not 1 <= ranks <= 1 << 20:
        raise DataError(f"ranks is a whole number from 1 to {1 << 20}, not {ranks!r}")
    return int(ranks)


def local_extent(extent: int, parts: int, place: int) -> int:
    """Return how many coordinates below ``extent`` are ``place`` modulo ``parts``."""
    return max(0, (extent - place + parts - 1) // parts)


def coordinates_of(rank: int, grid: Sequence[int]) -> tuple[int, ...]:
    """Return where a rank stands."""
    return tuple(int(place) for place in np.unravel_index(rank, tuple(grid))) if grid else ()


def ranks_of(columns: Sequence[NDArray[Any]], grid: Sequence[int]) -> NDArray[np.int64]:
    """Return the rank that owns each entry under cyclic distribution: coordinate modulo extent of the grid, mode by mode."""
    found = np.zeros(len(columns[0]) if columns else 1, np.int64)
    for column, parts in zip(columns, grid, strict=True):
        found *= parts
        if parts > 1:
            found += column % parts
    return found


def choose_grid(
    grids: Sequence[tuple[int, ...]],
    moved: Callable[[tuple[int, ...]], float],
    held: Callable[[tuple[int, ...]], float],
    closely: Callable[[tuple[int, ...]], float],
) -> tuple[int, ...]:
    """Return the grid to use: of those that move at most ``NEAR`` times the least, the one that needs the least memory.

    Args:
        grids: what there is to choose from, at least one.
        moved: bytes that are sent with a grid, or what is proportional to them.
        held: an estimate of the bytes on the rank that holds most.
        closely: a better estimate; asked for a few grids only.
    """
    costs = {grid: moved(grid) for grid in grids}
    least = min(costs.values())
    near = [grid for grid in grids if costs[grid] <= NEAR * least]
    best = sorted(near, key=lambda grid: (held(grid), costs[grid], grid))[:_SHORTLIST]
    return best[0] if len(best) == 1 else min(best, key=lambda grid: (closely(grid), costs[grid], grid))
