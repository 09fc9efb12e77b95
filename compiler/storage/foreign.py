"""Reads arrays of other libraries. They are recognised by the name of their module, so that their library is not imported."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Set
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import DataError, ResourceError, SparsetuneError
from ..format import Format, parse_format
from ..numpy_later import np
from ..shown import attribute
from .aligned import index_dtype, index_dtypes
from .dtypes import cast_values, checked_dtype, checked_fill
from .entries import Entries
from .kernels import active, light
from .pack import pack
from .sealed import kept, sealed
from .shape import checked_shape
from .tensor import LevelArrays, Tensor

if TYPE_CHECKING:
    from numpy.typing import NDArray

T = TypeVar("T")

_SHOWN = 200  # characters of what an object calls itself or says
_WORTH_COPYING = 1 << 15  # indices; with fewer, calls on borrowed ones take less time, as they need not be prepared again


def read(data: Any, format: Format | str | None = None, borrow: bool = False, short: bool = True) -> Tensor | None:
    """Return a sparse array of SciPy, PyData sparse, torch or CuPy as a tensor; None for other data.

    Coordinates are packed into the format directly, so that no array of positions over all rows is made for a hypersparse array.
    Compressed rows or columns are taken over as they are. If they are borrowed, their index arrays are not copied, and the
    tensor is valid for one call; those of 64 bits are made short if that is wanted and 32 bits suffice.

    Raises:
        DataError: the array's own structure is broken, its values are not supported, or its library fails on it.
        ResourceError: there is no memory for what its library makes of it.
    """
    return _asked(data, lambda: _read(data, format, borrow, short))


def _asked(data: Any, question: Callable[[], T]) -> T:
    """Call a function that reads parts of a foreign object, which may raise anything.

    Raises:
        DataError, ResourceError: the call fails.
    """
    try:
        return question()
    except SparsetuneError:
        raise
    except MemoryError:
        raise ResourceError(f"there is no memory to read {_named(data)}") from None
    except Exception as error:
        reason = (str(error).splitlines() or [""])[0][:_SHOWN]
        raise DataError(f"cannot make a tensor of {_named(data)}: {type(error).__name__}: {reason}") from error


def path_of(data: Any) -> str | None:
    """Return the path if data are a path, else None. Raises ``DataError`` if ``__fspath__`` of the data fails."""
    if type(data) is np.ndarray or type(data) is Tensor:
        return None
    return _asked(data, lambda: os.fsdecode(os.fspath(data)) if isinstance(data, (str, os.PathLike)) else None)


def _read(data: Any, format: Format | str | None, borrow: bool, short: bool) -> Tensor | None:
    library = type(data).__module__.partition(".")[0]
    _refuse_strangers(data, library)
    if library == "scipy" and hasattr(data, "format") and hasattr(data, "tocoo"):
        return _from_scipy(data, format, borrow, short)
    if library == "cupyx" and hasattr(data, "get"):
        return _from_scipy(data.get(), format)
    if library == "sparse" and hasattr(data, "fill_value"):
        return _from_pydata(data, format)
    if library == "torch" and "sparse" in str(getattr(data, "layout", "")):
        return _from_torch(data, format)
    return None


def _refuse_strangers(data: Any, library: str) -> None:
    """Refuse objects that NumPy would turn into an array of names or not at all, and torch tensors that would lose their derivatives."""
    if library == "networkx" and hasattr(data, "adj"):
        raise DataError("a graph of networkx is no tensor on its own; hand over networkx.to_scipy_sparse_array(graph)")
    if library == "jax" and hasattr(data, "indices"):
        made = "csr_array((A.data, A.indices, A.indptr)" if hasattr(data, "indptr") else "coo_array((A.data, A.indices.T)"
        raise DataError(
            f"a sparse array of JAX is no tensor on its own; after A = A.sum_duplicates() hand over scipy.sparse.{made}, A.shape)"
        )
    if library in ("pandas", "polars", "pyarrow") and hasattr(data, "columns"):
        raise DataError(f"a table of {library} is no tensor on its own; hand over its numbers: .to_numpy(), or (coordinates, values)")
    if library == "torch" and not (hasattr(data, "layout") or isinstance(data, tuple)):
        raise DataError(f"{_named(data)} is no tensor; hand over a tensor of torch")
    if library == "torch" and getattr(data, "requires_grad", False):
        raise DataError("a torch tensor that requires grad would lose its derivatives; hand over tensor.detach()")


def bytes_to_pack(data: Any) -> int:
    """Return how many bytes of positions, one per row, ``read`` makes at least for a matrix that is stored in neither rows nor columns."""
    if not type(data).__module__.startswith(("scipy.", "sparse.", "torch", "cupyx.")) or attribute(data, "format") in ("csr", "csc"):
        return 0
    shape = attribute(data, "shape")
    return 4 * int(shape[0]) if isinstance(shape, tuple) and len(shape) == 2 and isinstance(shape[0], int) else 0


def has_shape(data: Any) -> bool:
    """Whether data have a shape, as arrays of any library do."""
    shape = attribute(data, "shape")
    return isinstance(shape, tuple) and attribute(data, "ndim") == len(shape) and all(isinstance(extent, int) for extent in shape)


def is_matrix(data: Any) -> bool:
    """Whether ``*`` means the matrix product for these data: those of ``numpy.matrix``, and SciPy's matrices as opposed to its arrays."""
    return isinstance(data, np.matrix) or (type(data).__module__.startswith("scipy.") and type(data).__name__.endswith("_matrix"))


def dense_array(data: Any) -> NDArray[Any]:
    """Return dense data of any library as an ndarray, without a copy if the library shares its memory.

    Raises:
        DataError: the data are no array of numbers.
        ResourceError: its library finds no memory to convert it.
    """
    return _asked(data, lambda: _dense_array(data))


def _dense_array(data: Any) -> NDArray[Any]:
    library = type(data).__module__.partition(".")[0]
    _refuse_strangers(data, library)
    if library == "cupy" and hasattr(data, "get"):
        data = data.get()
    elif library == "torch" and hasattr(data, "detach"):
        data = _of_torch(data)
    elif _only_dlpack(data):
        data = np.from_dlpack(data)
    if isinstance(data, np.ma.MaskedArray):
        raise DataError("a masked array is no tensor; use .filled(0), or coordinates and values of what is not masked")
    if isinstance(data, (Tensor, str, bytes, Mapping, Set)) or callable(data) or data is None:
        raise DataError(f"cannot make a tensor of {_named(data)}; give an ndarray, a sparse array or (coordinates, values)")
    try:
        array = np.asarray(data)
    except (TypeError, ValueError, RuntimeError) as error:
        raise DataError(f"cannot make a tensor of {_named(data)}: {(str(error).splitlines() or [''])[0]}") from None
    if array.dtype == object and not isinstance(data, np.ndarray):
        raise DataError(f"cannot make a tensor of {_named(data)}; give an ndarray, a sparse array or (coordinates, values)")
    return array


def _of_torch(data: Any) -> NDArray[Any]:
    try:
        return data.detach().cpu().numpy()
    except (TypeError, RuntimeError) as error:  # types of values that NumPy lacks, such as bfloat16
        reason = str(error).splitlines()[0]
        raise DataError(f"a torch tensor of {getattr(data, 'dtype', '?')} cannot be read ({reason}); convert it with .float()") from None


def _only_dlpack(data: Any) -> bool:
    return hasattr(data, "__dlpack__") and not any(hasattr(data, name) for name in ("__array__", "__array_interface__"))


def _from_scipy(array: Any, format: Format | str | None, borrow: bool = False, short: bool = True) -> Tensor:
    checked_dtype(array.dtype)
    if array.ndim == 2 and array.format in ("csr", "csc"):
        return _from_compressed(array.shape, parse_format(array.format, 2), array.indptr, array.indices, array.data, borrow, short)
    if array.ndim == 2 and array.format != "coo":
        _check_for_scipy(array)
        return _from_scipy(array.tocoo() if array.format == "dok" else array.tocsr(), format)
    coo = array.tocoo()
    # the attribute .coords is there from SciPy 1.13 on, and the only one beyond two dimensions
    return _from_columns(array.shape, getattr(coo, "coords", None) or (coo.row, coo.col), coo.data, format)


def _check_for_scipy(array: Any) -> None:
    """Refuse broken arrays for which SciPy's conversion would access memory outside of them."""
    rows, columns = checked_shape(array.shape)
    if array.format == "bsr":
        for part, dimensions in ((array.indptr, 1), (array.indices, 1), (array.data, 3)):
            if not isinstance(part, np.ndarray) or part.ndim != dimensions or (dimensions == 1 and part.dtype.kind not in "iu"):
                raise DataError("the sparse array is broken: a bsr array has flat integer arrays indptr and indices, and blocks as data")
        array.check_format(full_check=True)
        _, height, width = array.data.shape
        if rows % height or columns % width:
            raise DataError(f"the sparse array is broken: blocks of {height} x {width} in a shape of {rows} x {columns}")
    elif array.format == "dia":
        offsets = _index_array(array.offsets)
        if np.ndim(array.data) != 2 or len(offsets) != len(array.data):
            raise DataError(f"the sparse array is broken: {len(offsets)} offsets for diagonals of shape {np.shape(array.data)}")
        if len(offsets) and (int(offsets.min()) < -max(rows, columns) or int(offsets.max()) > max(rows, columns)):
            raise DataError(f"the sparse array is broken: diagonals from {offsets.min()} to {offsets.max()} in {rows} x {columns}")
    elif array.format == "lil":
        lists = _flat(array.rows, "lists of columns"), _flat(array.data, "lists of values")
        fitting = all(type(left) is type(right) is list and len(left) == len(right) for left, right in zip(*lists, strict=False))
        if not fitting or not len(lists[0]) == len(lists[1]) == rows:
            raise DataError(f"the sparse array is broken: its lists of columns and of values are not {rows} of equal lengths")


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
    return np.asarray(_of_torch(part))


def _from_compressed(
    shape: Any, format: Format, pos: NDArray[Any], crd: NDArray[Any], values: NDArray[Any], borrow: bool = False, short: bool = True
) -> Tensor:
    """Take over the three arrays of CSR or CSC if they are canonical, else sort them and sum duplicates."""
    shape, values = checked_shape(shape), _flat(values, "values")
    rows, columns = (shape[mode] for mode in format.order)
    given = _index_array(crd)
    # what will be kept is copied before it is checked: another thread may write it in between
    pos, crd = _taken(_index_array(pos), len(given), borrow, short), _taken(given, columns, borrow, short)
    state = 3 if len(pos) != rows + 1 else light(len(pos) + len(crd)).check_segments(pos, crd, min(len(crd), len(values)), columns)
    if state == 3:
        raise DataError(f"the sparse array is broken: its {len(pos)} positions do not delimit {rows} segments of {len(crd)} indices")
    if state == 2:
        raise DataError(f"the sparse array is broken: its indices go from {given.min()} to {given.max()}, but the extent is {columns}")
    stored = int(pos[-1])
    crd, values = (part if len(part) == stored else part[:stored] for part in (crd, values))
    values = cast_values(values, checked_dtype(values.dtype))
    if state == 1:
        outer = active().expand(pos, None, index_dtype(rows))
        by_mode = (outer, crd) if format.order == (0, 1) else (crd, outer)
        return pack(Entries(shape, by_mode, values), format)
    level = LevelArrays.borrowed(pos, crd) if borrow else LevelArrays(pos, crd)
    return Tensor.made(shape, format, (LevelArrays(), level), values)


def _flat(part: Any, what: str) -> NDArray[Any]:
    """Return a part of a sparse array as an array of one dimension, after checking it: the owner may have replaced it by anything."""
    if not isinstance(part, np.ndarray) or part.ndim != 1:
        shown = f"an array of shape {part.shape}" if isinstance(part, np.ndarray) else _named(part)
        raise DataError(f"the sparse array is broken: its {what} are {shown}, not an array of one dimension")
    return part


def _index_array(part: Any) -> NDArray[Any]:
    """Return an index array as contiguous int32 or int64."""
    array = _flat(part, "indices")
    if array.dtype.kind not in "iu":
        raise DataError(f"the sparse array is broken: its indices are {array.dtype}, not integers")
    if array.dtype in index_dtypes() and array.flags.c_contiguous:
        return array
    return np.ascontiguousarray(array, array.dtype if array.dtype in index_dtypes() else np.int64)


def _taken(array: NDArray[Any], largest: int, borrow: bool, short: bool) -> NDArray[Any]:
    """Return an index array, or a copy that cannot be written if it is not borrowed. ``short``: of 32 bits if numbers up to ``largest``
    fit, as kernels are up to twice as fast on these. What does not fit is -1 then."""
    worth = len(array) >= _WORTH_COPYING or not borrow
    if short and worth and array.dtype.itemsize > index_dtype(largest).itemsize:
        return sealed(light(len(array)).shortened(array))
    return array if borrow else kept(array)


def _from_columns(
    shape: Any, columns: tuple[NDArray[Any], ...], values: NDArray[Any], format: Format | str | None, fill_value: Any = 0
) -> Tensor:
    from .construct import check_range, from_entries

    shape, values = checked_shape(shape), _flat(values, "values")
    columns = tuple(map(_index_array, columns))
    if any(len(column) != len(values) for column in columns) or len(columns) != len(shape):
        lengths = " and ".join(str(len(column)) for column in columns)
        raise DataError(f"the sparse array is broken: {lengths} coordinates for {len(values)} values in {len(shape)} dimensions")
    check_range(columns, shape)
    return from_entries(shape, columns, cast_values(values, checked_dtype(values.dtype)), format, fill_value)


def _named(data: Any) -> str:
    return f"{type(data).__module__}.{type(data).__qualname__}"[:_SHOWN]
