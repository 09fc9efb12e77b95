"""Unpacking: the level arrays of any format become entries, or an ndarray."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..format import LevelKind
from .dtypes import equals_fill
from .entries import Entries, sort_entries
from .tensor import Tensor, level_extent


def count_entries(tensor: Tensor) -> int:
    """Return the number of stored entries: positions of the last level that no free hash slot leads to."""
    if LevelKind.HASHED not in tensor.format.levels:
        return len(tensor.values)
    return len(_walk(tensor)[1])


def unpack(tensor: Tensor, drop_padding: bool = False) -> Entries:
    """Return the stored entries in the order of their positions.

    Args:
        tensor: any tensor.
        drop_padding: leave out what only a dense level has put there: fill values below a dense last level, and fill
            values at coordinate 0 of a singleton below a dense level. Explicit zeros of other levels stay.
    """
    columns, positions = _walk(tensor)
    values = tensor.values if len(positions) == len(tensor.values) else tensor.values[positions]
    by_mode = tuple(columns[tensor.format.level_of(mode)] for mode in range(tensor.order))
    hashed = LevelKind.HASHED in tensor.format.levels
    entries = Entries(tensor.shape, by_mode, values, None if hashed else tensor.format.order)
    padded = _padding(tensor, entries) if drop_padding else None
    if padded is None or not padded.any():
        return entries
    kept = np.flatnonzero(~padded)
    return Entries(tensor.shape, tuple(column[kept] for column in by_mode), values[kept], entries.sorted_by)


def to_coordinates(tensor: Tensor) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return (coordinates of shape (order, nnz), values), lexicographic in mode order."""
    entries = sort_entries(unpack(tensor), tuple(range(tensor.order)))
    coordinates = np.empty((tensor.order, len(entries)), np.int64)
    for mode, column in enumerate(entries.coordinates):
        coordinates[mode] = column
    return coordinates, entries.values.copy()


def to_dense(tensor: Tensor) -> NDArray[Any]:
    """Return an ndarray of the tensor's shape."""
    if tensor.format.is_dense:
        stored = tensor.values.reshape([level_extent(tensor, level) for level in range(tensor.order)])
        return stored.transpose([tensor.format.level_of(mode) for mode in range(tensor.order)]).copy(order="C")
    entries = unpack(tensor)
    dense = np.full(tensor.shape, tensor.fill_value, tensor.dtype)
    dense[entries.coordinates] = entries.values
    return dense


def _walk(tensor: Tensor) -> tuple[list[NDArray[Any]], NDArray[np.int64]]:
    """Return the coordinate columns by level, and the position in the last level, of every stored entry."""
    columns: list[NDArray[Any]] = []
    positions = np.zeros(1, np.int64)
    for level, (kind, arrays) in enumerate(zip(tensor.format.levels, tensor.levels, strict=True)):
        if kind is LevelKind.DENSE:
            extent = level_extent(tensor, level)
            counts = np.full(len(positions), extent)
            coordinates = np.tile(np.arange(extent), len(positions))
            children = np.repeat(positions * extent, counts) + coordinates
        elif kind is LevelKind.SINGLETON:
            assert arrays.crd is not None
            columns.append(arrays.crd[positions])
            continue
        else:
            assert arrays.pos is not None
            assert arrays.crd is not None
            counts, children = _segments(arrays.pos, positions)
            coordinates = arrays.crd[children]
            if kind is LevelKind.HASHED:
                taken = coordinates >= 0
                counts = np.bincount(np.repeat(np.arange(len(positions)), counts)[taken], minlength=len(positions))
                children, coordinates = children[taken], coordinates[taken]
        columns = [np.repeat(column, counts) for column in columns]
        columns.append(coordinates)
        positions = children
    return columns, positions


def _segments(pos: NDArray[Any], parents: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return how many children each parent has, and their positions, one segment after the other."""
    begins = pos[parents].astype(np.int64)
    counts = pos[parents + 1] - begins
    before = np.cumsum(counts) - counts
    return counts, np.repeat(begins - before, counts) + np.arange(int(counts.sum()))


def _padding(tensor: Tensor, entries: Entries) -> NDArray[np.bool_] | None:
    kinds = tensor.format.levels
    if not kinds or len(entries) == 0:
        return None
    if kinds[-1] is LevelKind.DENSE:
        return equals_fill(entries.values, tensor.fill_value)
    run = len(kinds)
    while kinds[run - 1] is LevelKind.SINGLETON:
        run -= 1
    if run == len(kinds) or kinds[run - 1] is LevelKind.COMPRESSED:
        return None
    missing = equals_fill(entries.values, tensor.fill_value)
    for level in range(run, len(kinds)):
        missing &= entries.coordinates[tensor.format.order[level]] == 0
    return missing
