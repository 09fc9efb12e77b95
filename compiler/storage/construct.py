"""``tensor(data)``: makes stored tensors from arrays of any library, without a copy if the layout allows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import DataError, ShapeError
from ..format import Format, csf_format, dense_format, parse_format
from ..numpy_later import np
from ..source import quoted
from . import foreign
from .aligned import index_dtype, index_dtypes
from .dtypes import cast_values, checked_dtype, checked_fill, equals_fill
from .entries import Entries
from .kernels import light
from .pack import pack
from .sealed import sealed
from .shape import checked_shape
from .tensor import LevelArrays, Tensor

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

_MANY = 1 << 16  # coordinates that several threads check faster than NumPy


def tensor(
    data: Any,
    format: Format | str | None = None,
    shape: tuple[int, ...] | None = None,
    dtype: DTypeLike | None = None,
    fill_value: Any = None,
) -> Tensor:
    """Return a stored tensor.

    Args:
        data: ndarray or number; SciPy sparse array or matrix; PyData sparse, torch or CuPy array; Tensor; or a pair
            (coordinates of shape (order, nnz), values). Duplicates are summed, explicit zeros of sparse data are kept,
            fill values of dense data are left out of sparse formats. Never changed.
        format: a format or its name; None: dense for dense data; csr, csc as SciPy has it, csr for other matrices,
            csf for other orders.
        shape: extents; needed if there are no coordinates to find them from.
        dtype: None keeps the values' own.
        fill_value: the value of entries that are not stored; None: that of the data, or 0.

    C-contiguous ndarrays (in the mode order of a dense format) and the values of canonical SciPy CSR and CSC arrays are not
    copied: the tensor shares their memory. Index arrays are copied, so that the caller cannot change those of the tensor.

    Raises:
        DataError: the data are no tensor: coordinates are out of range, values are not supported, or the type is not known.
        ShapeError: the data have another shape.
        FormatError: the format does not fit.
    """
    wanted = None if dtype is None else checked_dtype(dtype)
    if (path := foreign.path_of(data)) is not None:
        raise DataError(f"{quoted(path, 60)} is a path: read it with sparsetune.tensor(path) or sparsetune.datasets.load(path)")
    if isinstance(data, tuple):
        return _from_pair(data, format, shape, wanted, fill_value)
    extents = None if shape is None else checked_shape(shape)
    if isinstance(data, Tensor):
        result = data
    elif (found := foreign.read(data, format)) is not None:
        result = found
    else:
        return _from_dense(foreign.dense_array(data), format, extents, wanted, fill_value)
    if extents is not None and extents != result.shape:
        raise ShapeError(f"the data have shape {result.shape}, not the shape {extents} that was asked for")
    if wanted is not None:
        result = result.astype(wanted)
    if fill_value is not None:
        fill = checked_fill(fill_value, result.dtype)
        result = Tensor.made(result.shape, result.format, result.levels, result.values, fill)
    return result if format is None else result.convert(format)


def borrowed(data: Any, short: bool = False) -> Tensor:
    """Return ``tensor(data)`` for the duration of one call: sorted rows and columns of other libraries are checked, but not copied.

    Args:
        short: indices of 64 bits are copied into 32 where these suffice, which pays if they are gone through several times.
    """
    found = foreign.read(data, borrow=True, short=short)
    return tensor(data) if found is None else found


def from_entries(
    shape: tuple[int, ...],
    coordinates: NDArray[Any] | tuple[NDArray[Any], ...],
    values: NDArray[Any],
    format: Format | str | None = None,
    fill_value: Any = 0,
) -> Tensor:
    """Pack checked coordinate columns (one per mode, or the rows of an array) and values; the default format is csr or csf."""
    columns = tuple(_narrowed(column, index_dtype(extent)) for column, extent in zip(coordinates, shape, strict=True))
    chosen = default_sparse_format(len(shape)) if format is None else parse_format(format, len(shape))
    return pack(Entries(shape, columns, values), chosen, fill_value)


def _narrowed(column: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    cast = column.astype(dtype, copy=False)
    return cast if cast is column else sealed(cast)


def default_sparse_format(order: int) -> Format:
    """Return csr for matrices and csf for other orders."""
    return parse_format("csr", 2) if order == 2 else csf_format(order)


def _from_pair(data: tuple[Any, ...], format: Format | str | None, shape: Any, dtype: np.dtype[Any] | None, fill_value: Any) -> Tensor:
    if len(data) != 2:
        raise DataError(f"a tuple of {len(data)} is no tensor: give (coordinates of shape (order, nnz), values)")
    values = foreign.dense_array(data[1])
    if isinstance(data[0], Tensor) or values.ndim > 1:
        raise DataError("give (coordinates of shape (order, nnz), values): the values come second and have one dimension")
    coordinates = _coordinate_array(data[0], values)
    extents = checked_shape(shape) if shape is not None else _shape_of(coordinates)
    if len(extents) != len(coordinates):
        raise ShapeError(
            f"shape {extents} has {len(extents)} modes, but the coordinates have {len(coordinates)} rows; they are of shape (order, nnz)"
        )
    check_range(coordinates, extents)
    kind = checked_dtype(values.dtype)
    values = cast_values(values, dtype or kind)
    fill = checked_fill(0 if fill_value is None else fill_value, values.dtype)
    packed = from_entries(extents, coordinates, values, format, fill)
    if not np.may_share_memory(packed.values, values):
        return packed
    # values given by themselves are copied, since the caller may change them: only values of whole arrays are shared
    return Tensor.made(packed.shape, packed.format, packed.levels, light(0).copied(packed.values), fill)


def _coordinate_array(given: Any, values: NDArray[Any]) -> NDArray[Any]:
    try:
        coordinates = foreign.dense_array(list(given) if isinstance(given, tuple) else given)
    except DataError:
        raise DataError("coordinates are rows of equal length, one row a mode: an array of shape (order, nnz)") from None
    if coordinates.size == 0 and coordinates.dtype.kind != "u":
        coordinates = coordinates.astype(np.int64)
    if coordinates.ndim == 1 and len(values) != 0 and len(coordinates) == len(values):
        coordinates = coordinates[None, :]
    if coordinates.ndim != 2 or coordinates.dtype.kind not in "iu":
        raise DataError(f"coordinates are an integer array of shape (order, nnz), not {coordinates.dtype} of shape {coordinates.shape}")
    if values.ndim != 1 or coordinates.shape[1] != len(values):
        raise DataError(
            f"{coordinates.shape[1]} coordinates and {values.size} values: coordinates are of shape (order, nnz), one value each"
        )
    return coordinates


def _shape_of(coordinates: NDArray[Any]) -> tuple[int, ...]:
    if coordinates.shape[1] == 0 and len(coordinates):
        raise ShapeError("there are no coordinates to tell the shape from; give shape=")
    return checked_shape(tuple(max(0, int(row.max()) + 1) for row in coordinates))


def check_range(coordinates: NDArray[Any] | tuple[NDArray[Any], ...], shape: tuple[int, ...]) -> None:
    """Check every coordinate against the shape.

    Raises:
        DataError: a coordinate is out of range; the message names the first such entry and its mode.
    """
    for mode, (row, extent) in enumerate(zip(coordinates, shape, strict=True)):
        if not _is_within(row, extent):
            place = int(np.flatnonzero((row < 0) | (row >= extent))[0])
            raise DataError(
                f"coordinate {int(row[place])} of entry {place} in mode {mode} is out of range: the extent is {extent} (counted from 0)"
            )


def _is_within(row: NDArray[Any], extent: int) -> bool:
    """Return whether all coordinates are from 0 to below an extent. Many are read once, by all threads, as one segment."""
    if len(row) < _MANY or row.dtype not in index_dtypes() or not row.flags.c_contiguous:
        return not len(row) or (int(row.min()) >= 0 and int(row.max()) < extent)
    return light(len(row)).check_segments(np.array([0, len(row)]), row, len(row), extent) != 2


def _from_dense(
    array: NDArray[Any], format: Format | str | None, shape: tuple[int, ...] | None, dtype: np.dtype[Any] | None, fill: Any
) -> Tensor:
    if shape is not None and shape != array.shape:
        raise ShapeError(f"the data have shape {array.shape}, not the shape {shape} that was asked for")
    kind = checked_dtype(array.dtype)
    chosen = dense_format(array.ndim) if format is None else parse_format(format, array.ndim)
    fill = checked_fill(0 if fill is None else fill, dtype or kind)
    if chosen.is_dense:
        stored = cast_values(array.transpose(chosen.order), dtype or kind)
        return Tensor.made(array.shape, chosen, (LevelArrays(),) * array.ndim, stored.reshape(-1), fill)
    ordered = cast_values(array.transpose(chosen.order), dtype or kind)
    present = np.nonzero(~equals_fill(ordered, fill))
    by_mode = tuple(present[level] for level in np.argsort(chosen.order))
    entries = Entries(array.shape, by_mode, ordered[present], chosen.order)
    return pack(entries, chosen, fill)
