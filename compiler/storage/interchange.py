"""Tensors as arrays of other libraries, which are imported when they are asked for."""

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


def to_scipy(tensor: Tensor, to_read: bool = False) -> scipy.sparse.sparray:
    """Return a csr_array or csc_array that shares the tensor's values where it has that format, else a coo_array.

    Index arrays are copied, as SciPy's arrays are changed in place; those of one that is only to be read are shared.
    Explicit zeros stay; the padding of dense levels is left out.

    Raises:
        DataError: SciPy knows neither scalars nor fill values other than 0.
    """
    import scipy.sparse

    if tensor.fill_value != 0:
        raise DataError(
            f"SciPy's arrays have no fill value, and this tensor's is {tensor.fill_value}; use .to_coordinates() or .to_numpy()"
        )
    if tensor.order == 0:
        raise DataError("SciPy's arrays have at least one dimension; the scalar is .values[0]")
    tensor = decoded(tensor.intact)
    constructors: dict[str, Any] = {"csr": scipy.sparse.csr_array, "csc": scipy.sparse.csc_array, "coo": scipy.sparse.coo_array}
    for name in ("csr", "csc"):
        if tensor.order == 2 and tensor.format == parse_format(name, 2):
            pos, crd = tensor.levels[1].pos, tensor.levels[1].crd
            parts = (tensor.values, crd, pos) if to_read else (tensor.values, np.array(crd), np.array(pos))
            return _canonical(constructors[name](parts, shape=tensor.shape, copy=False))
    found = sort_entries(unpack(tensor, drop_padding=True), tuple(range(tensor.order)))
    shared = np.may_share_memory(found.values, tensor.values)
    columns = tuple(map(np.array, found.columns))
    return _canonical(constructors["coo"]((found.values.copy() if shared else found.values, columns), shape=tensor.shape))


def to_torch(tensor: Tensor) -> Any:
    """Return a torch tensor: strided for dense formats, sparse_csr and sparse_csc for these, else a coalesced sparse_coo.

    Values are shared wherever they stand in torch's order; index arrays are copied, as torch lets anybody write them.

    Raises:
        DataError: torch cannot be imported, has no such values, or the fill value is not 0, which torch cannot say.
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
    """Tell SciPy that an array is sorted and free of duplicates, which it would look for otherwise."""
    array.has_canonical_format = True
    return array
