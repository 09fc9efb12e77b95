"""Operations that tensors share with arrays: products, sums over modes, slices. Each takes time linear in the stored entries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..errors import DataError, ResourceError, ShapeError
from ..format import Format
from ..native.memory import claim
from ..shown import shown
from .aligned import aligned_full, dense_size
from .construct import from_entries, tensor
from .dtypes import checked_dtype
from .entries import Entries, sort_entries
from .foreign import dense_array, read
from .interchange import read_by_scipy
from .pack import pack
from .tensor import Tensor
from .unpack import unpack

MOST_ROWS = 2**31
"""The most rows for which sums and slices are csr, which stores a position for each row."""


def matmul(left: Tensor, right: Any) -> Any:
    """Return ``left @ right`` with NumPy's meaning for one or two dimensions on the right.

    An array on the right gives an ndarray of shape ``left.shape[:-1] + right.shape[1:]``; a sparse matrix on the
    right of a sparse matrix gives a Tensor in CSR.

    Raises:
        ShapeError: the extents do not match.
        DataError: the fill value is not 0.
        ResourceError: there is no memory for arrays over all rows or columns.
    """
    sparse = right if isinstance(right, Tensor) else None if type(right) is np.ndarray else read(right)
    dense = _numbers(right) if sparse is None else sparse.to_numpy() if sparse.order == 1 else None
    shape: tuple[int, ...] = dense.shape if dense is not None else sparse.shape if sparse is not None else ()
    if left.order == 0 or len(shape) not in (1, 2) or left.shape[-1:] != shape[:1]:
        raise _mismatch(left.shape, shape)
    if dense is not None:
        return np.asarray(_multiplied(left, dense)).reshape(left.shape[:-1] + shape[1:])
    assert sparse is not None
    if left.order == 1:
        return rmatmul(sparse, left.to_numpy())
    if left.order != 2:
        raise ShapeError(f"matmul of two sparse tensors takes matrices, not shapes {left.shape} and {shape}; use sparsetune.einsum")
    return tensor(_multiplied(left, _as_matrix(sparse)), "csr")


def rmatmul(right: Tensor, left: Any) -> Any:
    """Return ``left @ right`` for an array or a sparse matrix of one or two dimensions and a sparse vector or matrix.

    Raises:
        ShapeError: the extents do not match.
    """
    sparse = read(left)
    if sparse is not None:
        return matmul(sparse, right)
    array = _numbers(left)
    if right.order not in (1, 2) or array.ndim not in (1, 2) or array.shape[-1] != right.shape[0]:
        raise _mismatch(array.shape, right.shape)
    if right.order == 1:
        return array @ right.to_numpy()
    return np.ascontiguousarray(matmul(right.T, array.T if array.ndim == 2 else array).T)


def _numbers(data: Any) -> NDArray[Any]:
    array = dense_array(data)
    checked_dtype(array.dtype)
    return array


def _mismatch(left: tuple[int, ...], right: tuple[int, ...]) -> ShapeError:
    return ShapeError(f"matmul: shapes {left} and {right} do not match; the last extent on the left is the first on the right")


def _multiplied(left: Tensor, right: Any) -> Any:
    """Return SciPy's product. Refuse operands with so many rows or columns that there is no memory for the arrays that SciPy makes."""
    longest, advice = max(dense_size(left.shape[:-1]), left.shape[-1]), "use sparsetune.evaluate with output_format='dcsr'"
    claim(8 * longest, f"matmul: an array over the extents {left.shape}", advice)
    try:
        return _as_matrix(left) @ right
    except MemoryError:
        raise ResourceError(f"matmul: there is no memory for arrays over the extents {left.shape}; {advice}") from None


def _as_matrix(tensor: Tensor) -> Any:
    """Return the tensor as a SciPy matrix whose rows run over all modes but the last."""
    import scipy.sparse

    if tensor.order == 2:
        return read_by_scipy(tensor)
    if tensor.fill_value != 0:
        raise DataError(f"matmul needs a fill value of 0, this tensor's is {tensor.fill_value}; use sparsetune.evaluate with a semiring")
    entries = unpack(tensor, drop_padding=True)
    rows = np.zeros(len(entries), np.int64)
    for extent, column in zip(tensor.shape[:-1], entries.coordinates[:-1], strict=True):
        rows = rows * extent + column
    shape = (dense_size(tensor.shape[:-1]), tensor.shape[-1])
    return scipy.sparse.coo_array((entries.values, (rows, entries.coordinates[-1])), shape=shape).tocsr()


def sum_modes(tensor: Tensor, axis: int | tuple[int, ...] | None, dtype: DTypeLike | None = None) -> Any:
    """Return the sum over some modes: a scalar for all modes, an ndarray if one mode is left, else a Tensor.

    Matrices are returned as csr, those of more than 2**31 rows as dcsr, other orders as csf. The sum has the given dtype, or that of
    ``numpy.sum``.

    Raises:
        ShapeError: a mode is not the tensor's.
        DataError: the fill value is not 0.
    """
    if tensor.fill_value != 0:
        raise DataError(f"sum needs a fill value of 0, this tensor's is {tensor.fill_value}; use sparsetune.evaluate with a semiring")
    total = np.sum(tensor.values[:0]).dtype if dtype is None else checked_dtype(dtype)
    if axis is None:
        return unpack(tensor).values.sum(dtype=total)
    axes = [_checked_axis(one, tensor.order) for one in (axis if isinstance(axis, tuple) else (axis,))]
    if len(set(axes)) < len(axes):
        raise ShapeError(f"axis {axis} names a mode twice")
    kept = tuple(mode for mode in range(tensor.order) if mode not in axes)
    entries = unpack(tensor)
    columns = tuple(entries.coordinates[mode] for mode in kept)
    shape = tuple(tensor.shape[mode] for mode in kept)
    values = entries.values.astype(total, copy=False)
    if not kept:
        return values.sum(dtype=total)
    if len(kept) > 1:
        return from_entries(shape, columns, values, "dcsr" if len(shape) == 2 and shape[0] > MOST_ROWS else None)
    summed = sort_entries(Entries(shape, columns, values), (0,))
    dense = aligned_full(shape[0], 0, total)
    dense[summed.columns[0]] = summed.values
    return dense


def max_modes(tensor: Tensor, axis: int | tuple[int, ...] | None) -> Any:
    """Return the largest value over some modes, where coordinates that are not stored count as the fill value. Else as ``sum_modes``.

    Raises:
        ShapeError: a mode is not the tensor's, or has extent 0.
        DataError: the fill value is not 0.
    """
    if tensor.fill_value != 0:
        raise DataError(f"max needs a fill value of 0, this tensor's is {tensor.fill_value}; use .values.max()")
    axes = tuple(range(tensor.order)) if axis is None else tuple(axis) if isinstance(axis, tuple) else (axis,)
    axes = tuple(_checked_axis(one, tensor.order) for one in axes)
    if len(set(axes)) < len(axes):
        raise ShapeError(f"axis {axis} names a mode twice")
    along = dense_size(tuple(tensor.shape[mode] for mode in axes))
    if along == 0:
        raise ShapeError("the largest of no values does not exist: a mode has extent 0")
    kept = tuple(mode for mode in range(tensor.order) if mode not in axes)
    entries = unpack(tensor)
    if not len(entries):
        return tensor.dtype.type(0) if not kept else sum_modes(tensor, axes).astype(tensor.dtype)
    order = np.lexsort(tuple(entries.coordinates[mode] for mode in reversed(kept))) if kept else np.arange(len(entries))
    columns = [entries.coordinates[mode][order] for mode in kept]
    changes = np.zeros(len(order), np.bool_)
    changes[0] = True
    for column in columns:
        changes[1:] |= column[1:] != column[:-1]
    starts = np.flatnonzero(changes)
    largest = np.maximum.reduceat(entries.values[order], starts)
    counts = np.diff(np.append(starts, len(order)))
    largest = np.where(counts < along, np.maximum(largest, tensor.dtype.type(0)), largest)
    if not kept:
        return largest[0]
    shape = tuple(tensor.shape[mode] for mode in kept)
    if len(kept) == 1:
        dense = aligned_full(shape[0], 0, tensor.dtype)
        dense[columns[0][starts]] = largest
        return dense
    form = "dcsr" if len(shape) == 2 and shape[0] > MOST_ROWS else None
    return from_entries(shape, tuple(column[starts] for column in columns), largest, form)


def _checked_axis(axis: Any, order: int) -> int:
    if isinstance(axis, bool) or not isinstance(axis, (int, np.integer)) or not -order <= axis < order:
        raise ShapeError(f"axis {shown(axis)} is no mode of a tensor of order {order}")
    return int(axis) % order


def take_slice(tensor: Tensor, key: Any) -> Any:
    """Return ``tensor[key]`` for integers, slices and an Ellipsis.

    If all modes are kept, the format stays, except that a part of a symmetric matrix is stored whole. If integers drop modes, dense
    tensors stay dense, and others become csr or csf with the remaining modes in the order of storage.

    Raises:
        ShapeError: too many or other subscripts, or an integer out of range.
    """
    subscripts = _full_key(key if isinstance(key, tuple) else (key,), tensor.order)
    ranges = [_as_range(subscript, extent, mode) for mode, (subscript, extent) in enumerate(zip(subscripts, tensor.shape, strict=True))]
    kept = tuple(mode for mode, subscript in enumerate(subscripts) if isinstance(subscript, slice))
    shape = tuple(len(ranges[mode]) for mode in kept)
    storage_order = tuple(kept.index(mode) for mode in tensor.format.order if mode in kept)
    entries = unpack(tensor, drop_padding=True)
    inside = np.ones(len(entries), np.bool_)
    for column, span in zip(entries.coordinates, ranges, strict=True):
        inside &= _within(column, span)
    columns = tuple((entries.coordinates[mode][inside] - ranges[mode].start) // ranges[mode].step for mode in kept)
    values = entries.values[inside]
    if not kept:
        return values[0] if len(values) else tensor.dtype.type(tensor.fill_value)
    packed_as = tensor.format.whole if len(kept) == tensor.order else _sliced_format(tensor.format, storage_order, shape)
    return pack(Entries(shape, columns, values), packed_as, tensor.fill_value)


def narrowed(data: Any, kept: Sequence[int]) -> Any:
    """Return an array without the modes that are not kept, which must have extent 1; the array itself if all are kept."""
    if len(kept) == len(data.shape):
        return data
    held = data if isinstance(data, Tensor) else read(data)
    held = dense_array(data) if held is None else held
    return held[tuple(slice(None) if mode in kept else 0 for mode in range(len(data.shape)))]


def _sliced_format(whole: Format, storage_order: tuple[int, ...], shape: tuple[int, ...]) -> Format:
    if whole.is_dense:
        return Format(("dense",) * len(storage_order), storage_order)
    rows = len(storage_order) == 2 and shape[storage_order[0]] <= MOST_ROWS
    return Format("dense, compressed" if rows else ("compressed",) * len(storage_order), storage_order)


def _full_key(key: tuple[Any, ...], order: int) -> list[Any]:
    ellipses = sum(part is Ellipsis for part in key)
    if ellipses > 1 or len(key) - ellipses > order:
        raise ShapeError(f"{len(key)} subscripts for a tensor of order {order}")
    place = next((index for index, part in enumerate(key) if part is Ellipsis), len(key))
    missing = order - (len(key) - ellipses)
    return [*key[:place], *[slice(None)] * missing, *key[place + 1 :]]


def _as_range(subscript: Any, extent: int, mode: int) -> range:
    if isinstance(subscript, slice):
        try:
            return range(*subscript.indices(extent))
        except (TypeError, ValueError) as error:
            raise ShapeError(f"range {subscript} of mode {mode}: {error}") from None
    if isinstance(subscript, (int, np.integer)) and not isinstance(subscript, (bool, np.bool_)):
        if not -extent <= subscript < extent:
            raise ShapeError(f"index {subscript} is out of range for mode {mode} of extent {extent}")
        start = int(subscript) % extent
        return range(start, start + 1)
    shown = repr(subscript) if isinstance(subscript, (str, float, bool, type(None))) else f"of type {type(subscript).__name__}"
    raise ShapeError(f"subscript {shown} of mode {mode} is neither an integer nor a range such as 2:5")


def _within(column: NDArray[Any], span: range) -> NDArray[np.bool_]:
    if not len(span):
        return np.zeros(len(column), np.bool_)
    lowest, highest = sorted((span[0], span[-1]))
    inside = (column >= lowest) & (column <= highest)
    return inside if abs(span.step) == 1 else inside & ((column - span.start) % span.step == 0)
