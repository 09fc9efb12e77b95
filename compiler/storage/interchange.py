"""Tensors as arrays of other libraries."""

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


def _canonical(array: Any) -> Any:
    """Tell SciPy that an array is sorted and free of duplicates, which it would look for otherwise."""
    array.has_canonical_format = True
    return array
