"""Unpacking: the level arrays of any format become entries, or an ndarray."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..format import LevelKind
from ..native.memory import FLOOR, claim
from .aligned import aligned_full, array_name, dense_size, index_dtype
from .dtypes import equals_fill
from .entries import Entries, sort_entries
from .kernels import active
from .narrow import widen
from .sealed import sealed
from .tensor import Tensor, level_extent


def count_entries(tensor: Tensor) -> int:
    """Return the number of stored entries: positions of the last level that no free hash slot leads to."""
    if LevelKind.HASHED not in tensor.format.levels:
        return len(tensor.values)
    return _walk(tensor).count


def unpack(tensor: Tensor, drop_padding: bool = False) -> Entries:
    """Return the stored entries in the order of their positions.

    Args:
        tensor: any tensor.
        drop_padding: leave out what only a dense level has put there: fill values below a dense last level, and fill
            values at coordinate 0 of a singleton below a dense level. Explicit zeros of other levels stay.
    """
    if drop_padding and tensor.intact.format.is_dense and tensor.order:
        return _unpack_dense(tensor)
    walk = _walk(tensor.intact)
    values = tensor.values if walk.positions is None else active().gather(tensor.values, walk.positions)
    by_mode = tuple(walk.columns[tensor.format.level_of(mode)] for mode in range(tensor.order))
    hashed = LevelKind.HASHED in tensor.format.levels
    entries = Entries(tensor.shape, by_mode, values, None if hashed else tensor.format.order)
    padded = _padding(tensor, entries) if drop_padding else None
    if padded is None or not padded.any():
        return entries
    kept = np.flatnonzero(~padded)
    return Entries(tensor.shape, tuple(sealed(column[kept]) for column in by_mode), values[kept], entries.sorted_by)


def _unpack_dense(tensor: Tensor) -> Entries:
    """Return what differs from the fill value, without the coordinates of what does not."""
    stored = tensor.values.reshape([level_extent(tensor, level) for level in range(tensor.order)])
    present = np.nonzero(~equals_fill(stored, tensor.fill_value))
    by_mode = tuple(present[tensor.format.level_of(mode)] for mode in range(tensor.order))
    return Entries(tensor.shape, by_mode, stored[present], tensor.format.order)


def to_coordinates(tensor: Tensor) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return (coordinates of shape (order, nnz), values), lexicographic in mode order."""
    entries = sort_entries(unpack(tensor), tuple(range(tensor.order)))
    coordinates = np.empty((tensor.order, len(entries)), np.int64)
    for mode, column in enumerate(entries.columns):
        coordinates[mode] = column
    shared = np.may_share_memory(entries.values, tensor.values)
    return coordinates, entries.values.copy() if shared else entries.values


def to_dense(tensor: Tensor) -> NDArray[Any]:
    """Return an ndarray of the tensor's shape.

    Raises:
        ResourceError: it is larger than the memory that can be had.
    """
    if tensor.intact.format.is_dense:
        if tensor.values.nbytes > FLOOR:
            claim(tensor.values.nbytes, array_name(tensor.values.size, tensor.dtype))
        stored = tensor.values.reshape([level_extent(tensor, level) for level in range(tensor.order)])
        return stored.transpose([tensor.format.level_of(mode) for mode in range(tensor.order)]).copy(order="C")
    entries = unpack(tensor)
    dense = aligned_full(dense_size(tensor.shape), tensor.fill_value, tensor.dtype).reshape(tensor.shape)
    dense[entries.coordinates] = entries.values
    return dense


@dataclass(frozen=True)
class _Walk:
    """Where a walk down the levels stands.

    Args:
        columns: the coordinates, by level, of the positions that were reached.
        positions: the positions reached; None while they are all positions of the level, in order.
        count: how many were reached.
    """

    columns: tuple[NDArray[Any], ...] = ()
    positions: NDArray[np.int64] | None = None
    count: int = 1

    def down(self, repeated: Callable[[NDArray[Any]], NDArray[Any]], column: NDArray[Any], positions: NDArray[np.int64] | None) -> _Walk:
        """Return the walk one level further, the columns so far repeated for the children."""
        return _Walk((*(sealed(repeated(above)) for above in self.columns), column), positions, len(column))


def _walk(tensor: Tensor) -> _Walk:
    """Return the coordinates and positions of every stored entry."""
    tensor, walk = widen(tensor), _Walk()
    for level, (kind, arrays) in enumerate(zip(tensor.format.levels, tensor.levels, strict=True)):
        if kind is LevelKind.DENSE:
            walk = _below_dense(walk, level_extent(tensor, level))
        elif kind is LevelKind.SINGLETON:
            assert arrays.crd is not None
            crd = arrays.crd if walk.positions is None else active().gather(arrays.crd, walk.positions)
            walk = _Walk((*walk.columns, crd), walk.positions, walk.count)
        else:
            assert arrays.pos is not None
            assert arrays.crd is not None
            walk = _below_segments(walk, arrays.pos, arrays.crd, kind is LevelKind.HASHED)
    return walk


def _below_dense(walk: _Walk, extent: int) -> _Walk:
    kind, count = index_dtype(extent), walk.count * extent
    claim(count * (kind.itemsize + sum(column.itemsize for column in walk.columns)), f"coordinates of {count} positions of dense levels")
    coordinates = sealed(np.tile(np.arange(extent, dtype=kind), walk.count))
    positions = None if walk.positions is None else np.repeat(walk.positions * extent, extent) + coordinates
    return walk.down(lambda column: np.repeat(column, extent), coordinates, positions)


def _below_segments(walk: _Walk, pos: NDArray[Any], crd: NDArray[Any], hashed: bool) -> _Walk:
    kernels = active()
    if walk.positions is not None:
        begins = pos[walk.positions].astype(np.int64)
        counts = pos[walk.positions + 1] - begins
        ends = np.zeros(walk.count + 1, np.int64)
        np.cumsum(counts, out=ends[1:])
        children = kernels.expand(ends, begins - ends[:-1], np.dtype(np.int64)) + np.arange(ends[-1])
        pos, crd = ends, kernels.gather(crd, children)
    else:
        children = None
    if not hashed:
        return walk.down(lambda column: kernels.expand(pos, column, column.dtype), crd, children)
    taken = np.flatnonzero(crd >= 0)
    parents = kernels.expand(pos, None, np.dtype(np.int64))[taken]
    return walk.down(lambda column: kernels.gather(column, parents), crd[taken], taken if children is None else children[taken])


def _padding(tensor: Tensor, entries: Entries) -> NDArray[np.bool_] | None:
    kinds = tensor.format.levels
    if not kinds or len(entries) == 0:
        return None
    if kinds[-1] is LevelKind.DENSE:
        return equals_fill(entries.values, tensor.fill_value)
    run = len(kinds)
    while kinds[run - 1] is LevelKind.SINGLETON:
        run -= 1
    if run == len(kinds) or kinds[run - 1].has_fibres:
        return None
    missing = equals_fill(entries.values, tensor.fill_value)
    for level in range(run, len(kinds)):
        missing &= entries.coordinates[tensor.format.order[level]] == 0
    return missing
