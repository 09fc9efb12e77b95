"""Results of the kernels of ``gpu_cases`` by NumPy and SciPy alone, without our compiler or a C compiler."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from math import prod
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ...compiler.notation.nodes import Access, accesses
from ...compiler.notation.parser import parse
from ...compiler.storage.tensor import Tensor

_ENTRIES = 1 << 20
"""How many entries' products are in memory at a time if each has ``_COLUMNS`` columns; fewer if it has more."""
_COLUMNS = 32


def expected(expression: str, operands: Mapping[str, Any]) -> Any:
    """Return the result of a product whose first operand is sparse, with entries in lexicographic order, and has the leading indices of the
    result.

    Returns:
        An array where the result is dense; its values in order where it is sparse; a SciPy array for a product of two sparse matrices.
    """
    assignment = parse(expression)
    first, *others = accesses(assignment.value)
    sparse = operands[first.tensor]
    if len(first.indices) == 2 and len(others) == 1 and first.indices[1] == others[0].indices[0]:
        second = operands[others[0].tensor]
        return _matrix(sparse) @ (_matrix(second) if isinstance(second, Tensor) else second)
    coordinates, values = sparse.to_coordinates()
    at = dict(zip(first.indices, coordinates, strict=True))
    target = assignment.target.indices
    kept = [index for index in target if index in at]
    free = tuple(dict.fromkeys(index for other in others for index in other.indices if index not in at))
    extents = {index: _extent(operands, others, index) for index in free}
    summed = tuple(axis for axis, index in enumerate(free, 1) if index not in target)
    changes = np.zeros(len(values), bool)
    changes[:1] = True
    for index in kept:
        changes[1:] |= at[index][1:] != at[index][:-1]
    groups = np.cumsum(changes) - 1
    columns = tuple(extents[index] for index in free if index in target)
    is_dense = len(kept) == 1
    made = np.zeros((sparse.shape[0] if is_dense else int(changes.sum()), *columns))
    step = max(1, _ENTRIES * _COLUMNS // max(_COLUMNS, prod(extents.values())))
    for low in range(0, len(values), step):
        part = slice(low, low + step)
        product: NDArray[Any] = values[part].reshape(-1, *([1] * len(free)))
        for other in others:
            wide = (extents[index] if index in other.indices else 1 for index in free)
            product = product * operands[other.tensor][at[other.indices[0]][part]].reshape(-1, *wide)
        product = product.sum(axis=summed) if summed else product
        starts = np.flatnonzero(changes[part]) if changes[part][0] else np.concatenate(([0], np.flatnonzero(changes[part])))
        places = (at[kept[0]] if is_dense else groups)[part][starts]
        made[places] += np.add.reduceat(product, starts, axis=0)
    return made if is_dense else made.ravel()


def _matrix(data: Any) -> Any:
    return data.to_scipy() if isinstance(data, Tensor) else data


def _extent(operands: Mapping[str, Any], others: Sequence[Access], index: str) -> int:
    access = next(other for other in others if index in other.indices)
    return int(operands[access.tensor].shape[access.indices.index(index)])


def same(found: Any, wanted: Any) -> str:
    """Return "yes" if a result is right up to rounding, else how far it is off."""
    is_sparse: bool = isinstance(wanted, scipy.sparse.sparray)
    if isinstance(found, Tensor) and not is_sparse:
        found = found.values
    if is_sparse:
        ours, theirs = (scipy.sparse.csr_array(_matrix(part)) for part in (found, wanted))
        if ours.shape != theirs.shape:
            return f"its shape is {ours.shape}, not {theirs.shape}"
        left, right = _aligned(ours, theirs)
    else:
        left, right = np.asarray(found), np.asarray(wanted)
    if left.shape != right.shape:
        return f"its shape is {left.shape}, not {right.shape}"
    step = max(1, _ENTRIES // max(1, prod(left.shape[1:])))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        parts = pool.map(lambda low: _error(left[low : low + step], right[low : low + step]), range(0, len(left), step))
        error = max(parts, default=0.0)
    return "yes" if error < 1e-9 else f"wrong by {error:.2g}"


def _aligned(ours: Any, theirs: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the values of two matrices entry by entry, with 0 for entries that one of them lacks."""
    for matrix in (ours, theirs):
        matrix.sum_duplicates()
    if not (np.array_equal(ours.indptr, theirs.indptr) and np.array_equal(ours.indices, theirs.indices)):
        rows, columns = (ours.astype(bool) + theirs.astype(bool)).nonzero()
        return np.asarray(ours[rows, columns]), np.asarray(theirs[rows, columns])
    return ours.data, theirs.data


def _error(left: NDArray[Any], right: NDArray[Any]) -> float:
    return float(np.max(np.abs(left - right) / np.maximum(np.abs(right), 1.0), initial=0.0))
