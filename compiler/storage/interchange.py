"""Tensors as arrays of other libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..errors import DataError
from ..format import parse_format
from .entries import sort_entries
from .tensor import Tensor
from .unpack import unpack

if TYPE_CHECKING:
    import scipy.sparse


def to_scipy(tensor: Tensor) -> scipy.sparse.sparray:
    """Return a csr_array or csc_array that shares the tensor's memory where it has that format, else a coo_array.

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
    for name, kind in (("csr", scipy.sparse.csr_array), ("csc", scipy.sparse.csc_array)):
        if tensor.order == 2 and tensor.format == parse_format(name, 2):
            # pos and crd of different widths would make SciPy copy; it wants one width anyway
            array = kind((tensor.values, tensor.levels[1].crd, tensor.levels[1].pos), shape=tensor.shape, copy=False)
            array.has_canonical_format = True
            return array
    entries = sort_entries(unpack(tensor, drop_padding=True), tuple(range(tensor.order)))
    coordinates = tuple(np.ascontiguousarray(column) for column in entries.coordinates)
    array = scipy.sparse.coo_array((entries.values, coordinates), shape=tensor.shape, copy=tensor.values is entries.values)
    array.has_canonical_format = True
    return array
