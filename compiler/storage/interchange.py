"""Converts tensors to arrays of other libraries, which are imported only then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import DataError
from ..format import parse_format
from .encoding import decoded
from .entries import sort_entries
from .tensor import Tensor
from .unpack import unpack

if TYPE_CHECKING:
    import scipy.sparse


def to_scipy(tensor: Tensor) -> scipy.sparse.sparray:
    """Return a csr_array or csc_array that shares the tensor's values if it has that format, else a coo_array.

    Index arrays are copied, since SciPy changes its arrays in place. Explicit zeros stay; the padding of dense levels is
    left out.

    Raises:
        DataError: SciPy knows neither scalars nor fill values other than 0.
    """
    import scipy.sparse

    _check_for_scipy(tensor)
    tensor = decoded(tensor.intact)
    make: Any = _compressed(tensor)
    if make is not None:
        level = tensor.levels[1]
        return _canonical(make((tensor.values, np.array(level.crd), np.array(level.pos)), shape=tensor.shape, copy=False))
    found = sort_entries(unpack(tensor, drop_padding=True), tuple(range(tensor.order)))
    shared = np.may_share_memory(found.values, tensor.values)
    columns = tuple(map(np.array, found.columns))
    make = scipy.sparse.coo_array
    return _canonical(make((found.values.copy() if shared else found.values, columns), shape=tensor.shape))


def read_by_scipy(tensor: Tensor) -> scipy.sparse.sparray:
    """Return the same as ``to_scipy``, for reading only: for csr and csc all arrays are shared, and the result is kept for later calls."""
    made: Any = tensor.intact.__dict__.get("_read_by_scipy")
    if made is not None and made.data.dtype == tensor.values.dtype:
        return made
    make = _compressed(tensor)
    if make is None:
        return to_scipy(tensor)
    _check_for_scipy(tensor)
    level = tensor.levels[1]
    made = _canonical(make((tensor.values, level.crd, level.pos), shape=tensor.shape, copy=False))
    tensor.__dict__["_read_by_scipy"] = made
    return made


def _check_for_scipy(tensor: Tensor) -> None:
    if tensor.fill_value != 0:
        raise DataError(
            f"SciPy's arrays have no fill value, and this tensor's is {tensor.fill_value}; use .to_coordinates() or .to_numpy()"
        )
    if tensor.order == 0:
        raise DataError("SciPy's arrays have at least one dimension; the scalar is .values[0]")


def _compressed(tensor: Tensor) -> Any:
    """Return SciPy's class for the format of a tensor; None if there is none."""
    import scipy.sparse

    if tensor.order != 2:
        return None
    made = {parse_format("csr", 2): scipy.sparse.csr_array, parse_format("csc", 2): scipy.sparse.csc_array}
    return made.get(tensor.format)


def to_torch(tensor: Tensor) -> Any:
    """Return a torch tensor: strided for dense formats, sparse_csr and sparse_csc for these, else a coalesced sparse_coo.

    Values are shared if they are in torch's order; index arrays are copied, since torch's can be written.

    Raises:
        DataError: torch cannot be imported or has no values of this type, or the fill value is not 0.
    """
    if tensor.fill_value != 0:
        raise DataError(f"torch's tensors have no fill value, and this tensor's is {tensor.fill_value}; use .to_coordinates()")
    try:
        import torch  # pyright: ignore[reportMissingImports] the caller's
    except ImportError:
        raise DataError("torch is not installed, so that there is nothing to make a torch tensor with") from None
    try:
        if tensor.format.is_dense:
            return torch.from_numpy(tensor.to_numpy())
        if tensor.order == 2 and tensor.format in (parse_format("csr", 2), parse_format("csc", 2)):
            make = torch.sparse_csr_tensor if tensor.format.order == (0, 1) else torch.sparse_csc_tensor
            level = tensor.intact.levels[1]
            parts = (torch.from_numpy(np.array(part, np.int64)) for part in (level.pos, level.crd))
            return make(*parts, torch.from_numpy(tensor.values), size=tensor.shape, check_invariants=False)
        coordinates, values = tensor.to_coordinates()
        parts = torch.from_numpy(coordinates.copy()), torch.from_numpy(values)
        return torch.sparse_coo_tensor(*parts, tensor.shape, check_invariants=False, is_coalesced=True)
    except (TypeError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"torch cannot hold this tensor of {tensor.dtype} ({reason}); convert it with .astype('float64')") from None


def _canonical(array: Any) -> Any:
    """Tell SciPy that an array is sorted and free of duplicates, which it would check otherwise."""
    array.has_canonical_format = True
    return array
