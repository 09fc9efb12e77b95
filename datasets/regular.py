"""Regular patterns: bands, stencils on grids, dense blocks."""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from ..compiler.errors import DataError
from ..compiler.native.memory import claim
from .patterns import Columns, distinct, uniform


def banded(shape: tuple[int, ...], bandwidth: int) -> Columns:
    """Return all entries with ``|column - row| <= bandwidth``, row by row."""
    rows, columns = shape
    claim(rows * (2 * bandwidth + 1) * 33, f"a band of {2 * bandwidth + 1} diagonals over {rows} rows")
    offsets = np.arange(-bandwidth, bandwidth + 1)
    row, column = (part.ravel() for part in np.broadcast_arrays(np.arange(rows)[:, None], np.arange(rows)[:, None] + offsets))
    inside = (column >= 0) & (column < columns)
    return row[inside], column[inside]


def stencil(grid: tuple[int, ...], points: int) -> tuple[Columns, NDArray[np.bool_]]:
    """Return the pattern of a stencil on a grid with open boundaries, row by row, and which entries are on the diagonal.

    Args:
        grid: points by dimension; the matrix has one row for each, the last dimension fastest.
        points: 3, 5, 7: the neighbours along the axes in 1, 2, 3 dimensions; 9, 27: those across corners too.

    Raises:
        DataError: in the grid's dimension there is no stencil with that number of points.
    """
    dimension = len(grid)
    steps = [step for step in itertools.product((-1, 0, 1), repeat=dimension) if points == 3**dimension or sum(map(abs, step)) <= 1]
    if len(steps) != points:
        raise DataError(f"a stencil of {points} points does not have {dimension} dimensions: there are 3 (1-D), 5, 9 (2-D), 7, 27 (3-D)")
    size = math.prod(grid)
    claim(size * points * 33, f"a stencil of {points} points on {size} points of a grid")
    row = np.arange(size)
    coordinates = np.unravel_index(row, grid)
    columns = np.empty((size, points), np.int64)
    inside = np.ones((size, points), np.bool_)
    for number, step in enumerate(steps):
        target = np.zeros(size, np.int64)
        for coordinate, offset, extent in zip(coordinates, step, grid, strict=True):
            moved = coordinate + offset
            if offset:
                inside[:, number] &= (moved >= 0) & (moved < extent)
            target = target * extent + moved
        columns[:, number] = target
    kept = inside.ravel()
    rows = np.repeat(row, points)[kept]
    found = columns.ravel()[kept]
    return (rows, found), rows == found


def blocks(shape: tuple[int, ...], block: tuple[int, ...], nnz: int, rng: np.random.Generator) -> Columns:
    """Return dense blocks at uniformly random places of the block grid, about ``nnz`` entries in all.

    Raises:
        DataError: the block does not divide the shape.
    """
    if len(block) != len(shape) or any(extent % inner for extent, inner in zip(shape, block, strict=True)):
        raise DataError(f"blocks of {'x'.join(map(str, block))} do not divide the shape {'x'.join(map(str, shape))}")
    outer = tuple(extent // inner for extent, inner in zip(shape, block, strict=True))
    inside = math.prod(block)
    claim(nnz * 8 * len(shape), f"a pattern of {nnz} entries in blocks")
    corners = distinct(uniform(outer, rng), outer, min(-(-nnz // inside), math.prod(outer)), rng)
    within = np.unravel_index(np.arange(inside), block)
    return tuple((corner[:, None] * extent + step).ravel() for corner, extent, step in zip(corners, block, within, strict=True))
