"""Arrays of other libraries, told by the name of their module: nothing is imported that the caller has not imported."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from ..format import Format, parse_format
from .aligned import index_dtype
from .dtypes import cast_values, checked_dtype, checked_fill
from .entries import Entries
from .kernels import active
from .pack import pack
from .sealed import kept
from .tensor import LevelArrays, Tensor

_INDEX_TYPES = (np.dtype(np.int32), np.dtype(np.int64))


def read(data: Any, format: Format | str | None = None, borrow: bool = False) -> Tensor | None:
    """Return a sparse array of SciPy, PyData sparse, torch or CuPy as a tensor; None where the data are nothing of the kind.

    Coordinates are packed into the format at once, so that those of a hypersparse array never meet positions of all its rows;
    arrays of compressed rows or columns come as they are; where they are borrowed, their index arrays are not copied, and the
    tensor is for the time of one call.

    Raises:
        DataError: the array's own structure is broken, or its values are not supported.
    """
    library = type(data).__module__.partition(".")[0]
    if library == "scipy" and hasattr(data, "format") and hasattr(data, "tocoo"):
        return _from_scipy(data, format, borrow)
    if library == "cupyx" and hasattr(data, "get"):
        return _from_scipy(data.get(), format)
    if library == "sparse" and hasattr(data, "fill_value"):
        return _from_pydata(data, format)
    if library == "torch" and "sparse" in str(getattr(data, "layout", "")):
        return _from_torch(data, format)
    return None


def bytes_to_pack(data: Any) -> int:
    """Return how many bytes of positions ``read`` makes by default for a matrix that stores no rows, one a row at least."""
    if not type(data).__module__.startswith(("scipy.", "sparse.", "torch", "cupyx.")) or getattr(data, "format", "") in ("csr", "csc"):
        return 0
    shape = getattr(data, "shape", ())
    return 4 * int(shape[0]) if len(shape) == 2 else 0


def is_matrix(data: Any) -> bool:
    """Whether ``*`` means the matrix product for these data: ``numpy.matrix``, and SciPy's matrices, which are no arrays."""
    return isinstance(data, np.matrix) or (type(data).__module__.startswith("scipy.") and type(data).__name__.endswith("_matrix"))


def dense_array(data: Any) -> NDArray[Any]:
    """Return dense data of any library as an ndarray, without a copy where it offers its memory.

    Raises:
        DataError: the data are no array of numbers.
    """
    library = type(data).__module__.partition(".")[0]
    if library == "cupy" and hasattr(data, "get"):
        data = data.get()
    elif library == "torch" and hasattr(data, "detach"):
        data = data.detach().cpu().numpy()
    elif _only_dlpack(data):
        data = _from_dlpack(data)
    if isinstance(data, np.ma.MaskedArray):
        raise DataError("a masked array is no tensor; use .filled(0), or coordinates and values of what is not masked")
    if isinstance(data, (Tensor, str, bytes, dict, set)) or callable(data) or data is None:
        raise DataError(f"cannot make a tensor of {_named(data)}; give an ndarray, a sparse array or (coordinates, values)")
    try:
        array = np.asarray(data)
    except (TypeError, ValueError, RuntimeError) as error:
        raise DataError(f"cannot make a tensor of {_named(data)}: {str(error).splitlines()[0]}") from None
    if array.dtype == object and not isinstance(data, np.ndarray):
        raise DataError(f"cannot make a tensor of {_named(data)}; give an ndarray, a sparse array or (coordinates, values)")
    return array


def _only_dlpack(data: Any) -> bool:
    return hasattr(data, "__dlpack__") and not any(hasattr(data, name) for name in ("__array__", "__array_interface__"))


def _from_dlpack(data: Any) -> NDArray[Any]:
    try:
        return np.from_dlpack(data)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise DataError(f"cannot make a tensor of {_named(data)}: {str(error).splitlines()[0]}") from None


def _from_scipy(array: Any, format: Format | str | None, borrow: bool = False) -> Tensor:
    checked_dtype(array.dtype)
    if array.ndim == 2 and array.format in ("csr", "csc"):
        return _from_compressed(array.shape, parse_format(array.format, 2), array.indptr, array.indices, array.data, borrow)
    if array.ndim == 2 and array.format != "coo":
        return _from_scipy(array.tocoo() if array.format == "dok" else array.tocsr(), format)
    coo = array.tocoo()
    # the attribute .coords is there from SciPy 1.13 on, and the only one beyond two dimensions
    return _from_columns(array.shape, getattr(coo, "coords", None) or (coo.row, coo.col), coo.data, format)


def _from_pydata(array: Any, format: Format | str | None) -> Tensor:
    coo = array if hasattr(array, "coords") else array.tocoo() if hasattr(array, "tocoo") else array.to_coo()
    values = np.asarray(coo.data)
    fill = checked_fill(coo.fill_value, checked_dtype(values.dtype))
    return _from_columns(coo.shape, tuple(np.asarray(coo.coords)), values, format, fill)


def _from_torch(array: Any, format: Format | str | None) -> Tensor:
    array, shape, layout = array.detach(), tuple(int(extent) for extent in array.shape), str(array.layout)
    if len(shape) == 2 and layout in ("torch.sparse_csr", "torch.sparse_csc"):
        row_major = layout.endswith("csr")
        pos, crd = (array.crow_indices(), array.col_indices()) if row_major else (array.ccol_indices(), array.row_indices())
        form = parse_format("csr" if row_major else "csc", 2)
        return _from_compressed(shape, form, _host(pos), _host(crd), _host(array.values()))
    coo = (array if layout == "torch.sparse_coo" else array.to_sparse_coo()).coalesce()
    values = _host(coo.values())
    if values.ndim != 1:
        raise DataError("a torch tensor with dense dimensions below sparse ones is not supported; use .to_dense().to_sparse_coo()")
    return _from_columns(shape, tuple(_host(coo.indices())), values, format)


def _host(part: Any) -> NDArray[Any]:
    return np.asarray(part.cpu().numpy())


def _from_compressed(
    shape: Any, format: Format, pos: NDArray[Any], crd: NDArray[Any], values: NDArray[Any], borrow: bool = False
) -> Tensor:
    """Take the three arrays of CSR or CSC as they are where they are canonical, else sort them and sum duplicates."""
    shape = tuple(int(extent) for extent in shape)
    rows, columns = (shape[mode] for mode in format.order)
    # what will be kept is copied before it is checked: another thread may write it in between
    pos, crd = (_index_array(part) if borrow else kept(_index_array(part)) for part in (pos, crd))
    state = 3 if len(pos) != rows + 1 else active().check_segments(pos, crd, min(len(crd), len(values)), columns)
    if state == 3:
        raise DataError(f"the sparse array is broken: its {len(pos)} positions do not delimit {rows} segments of {len(crd)} indices")
    if state == 2:
        raise DataError(f"the sparse array is broken: its indices go from {crd.min()} to {crd.max()}, but the extent is {columns}")
    stored = int(pos[-1])
    crd, values = crd[:stored], cast_values(values[:stored], checked_dtype(values.dtype))
    if state == 1:
        outer = active().expand(pos, None, index_dtype(rows))
        by_mode = (outer, crd) if format.order == (0, 1) else (crd, outer)
        return pack(Entries(shape, by_mode, values), format)
    level = LevelArrays.borrowed(pos, crd) if borrow else LevelArrays(pos, crd)
    return Tensor(shape, format, (LevelArrays(), level), values)


def _index_array(array: NDArray[Any]) -> NDArray[Any]:
    """Return an index array as contiguous int32 or int64."""
    if array.dtype in _INDEX_TYPES and array.flags.c_contiguous:
        return array
    return np.ascontiguousarray(array, array.dtype if array.dtype in _INDEX_TYPES else np.int64)


def _from_columns(
    shape: Any, columns: tuple[NDArray[Any], ...], values: NDArray[Any], format: Format | str | None, fill_value: Any = 0
) -> Tensor:
    from .construct import check_range, from_entries

    shape = tuple(int(extent) for extent in shape)
    check_range(columns, shape)
    return from_entries(shape, columns, cast_values(np.asarray(values), checked_dtype(values.dtype)), format, fill_value)


def _named(data: Any) -> str:
    return f"{type(data).__module__}.{type(data).__qualname__}"
