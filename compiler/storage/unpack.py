"""Unpacking: the level arrays of any format become entries, or an ndarray."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..native.memory import FLOOR, claim
from ..numpy_later import np
from .aligned import aligned_full, array_name, dense_size
from .dtypes import equals_fill
from .encoding import decoded
from .entries import Entries, sort_entries
from .kernels import active
from .positions import level_extent
from .sealed import sealed
from .symmetry import count_whole
from .tensor import Tensor
from .walk import Walk

if TYPE_CHECKING:
    from numpy.typing import NDArray


def count_entries(tensor: Tensor) -> int:
    """Return the number of stored entries: positions of the last level, without those that hold nothing or are below one that does."""
    if tensor.format.mirrors:
        return count_whole(tensor)
    if not any(kind.holes for kind in tensor.format.levels):
        return len(tensor.values)
    return _walk(tensor).count


def unpack(tensor: Tensor, drop_padding: bool = False) -> Entries:
    """Return the stored entries in the order of their positions.

    Args:
        tensor: any tensor.
        drop_padding: leave out fill values that only pad: those below a dense last level, and those at coordinate 0 of a
            singleton below a dense level. Explicit zeros of other levels stay.
    """
    if drop_padding and tensor.intact.format.is_dense and tensor.order:
        return _unpack_dense(tensor)
    tensor = decoded(tensor.intact)
    walk = _walk(tensor)
    values = tensor.values if walk.positions is None else active().gather(tensor.values, walk.positions)
    by_mode = tuple(walk.columns[tensor.format.level_of(mode)] for mode in range(tensor.order))
    ordered = all(kind.ordered for kind in tensor.format.levels)
    entries = Entries(tensor.shape, by_mode, values, tensor.format.order if ordered else None)
    padded = _padding(tensor, entries) if drop_padding else None
    if padded is None or not padded.any():
        return entries
    kept = np.flatnonzero(~padded)
    return Entries(tensor.shape, tuple(sealed(column[kept]) for column in by_mode), values[kept], entries.sorted_by)


def _unpack_dense(tensor: Tensor) -> Entries:
    """Return the entries that differ from the fill value. No coordinates are made for the others."""
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
        ResourceError: it is larger than the available memory.
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


def _walk(tensor: Tensor) -> Walk:
    """Return the coordinates and positions of every stored entry."""
    tensor, walk = decoded(tensor), Walk()
    for level, (kind, arrays) in enumerate(zip(tensor.format.levels, tensor.levels, strict=True)):
        walk = kind.unpack(walk, arrays.parts, level_extent(tensor, level))
    return walk


def _padding(tensor: Tensor, entries: Entries) -> NDArray[np.bool_] | None:
    kinds = tensor.format.levels
    if not kinds or len(entries) == 0:
        return None
    if kinds[-1].full:
        return equals_fill(entries.values, tensor.fill_value)
    run = len(kinds)
    while kinds[run - 1].shares_positions:
        run -= 1
    if run == len(kinds) or kinds[run - 1].has_fibres:
        return None
    missing = equals_fill(entries.values, tensor.fill_value)
    for level in range(run, len(kinds)):
        missing &= entries.coordinates[tensor.format.order[level]] == 0
    return missing
