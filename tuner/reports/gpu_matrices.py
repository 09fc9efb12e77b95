"""Operands generated for the report on GPUs: more than 2^31 entries, rows of different lengths, and edge cases for mappings."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ...compiler.format import parse_format
from ...compiler.storage.level_arrays import LevelArrays
from ...compiler.storage.tensor import Tensor


def far(columns: int) -> scipy.sparse.csr_array:
    """Return a matrix of a thousand full rows of ones."""
    shape = 1000, columns
    values, crd = np.empty(shape), np.empty(shape, _width(1000 * columns))

    def filled(row: int) -> None:
        values[row], crd[row] = 1.0, np.arange(columns)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for _ in pool.map(filled, range(1000)):
            pass
    return _by_rows(values.ravel(), crd.ravel(), np.arange(1001) * columns, shape)


def _width(most: int) -> type[np.signedinteger[Any]]:
    """Return the type of indices up to a number."""
    return np.int32 if most <= np.iinfo(np.int32).max else np.int64


def _by_rows(values: NDArray[Any], crd: NDArray[Any], pos: NDArray[Any], shape: tuple[int, int]) -> scipy.sparse.csr_array:
    """Return a matrix in CSR; its indices have 32 bits if these are enough."""
    width = _width(max(len(crd), *shape))
    return scipy.sparse.csr_array((values, crd.astype(width, copy=False), pos.astype(width, copy=False)), shape=shape)


_STRETCH = 1 << 16
"""How many rows' entries are drawn together."""


def skewed(rows: int, columns: int, entries: int, skew: float, seed: int = 0) -> scipy.sparse.csr_array:
    """Return a matrix whose row r has entries in proportion to (r + 1) to the power of -skew, in random columns, each at most once.

    Rows are in random order. No row has more entries than columns, so the matrix may have fewer than ``entries``.
    """
    rng = np.random.default_rng(seed)
    weights: NDArray[np.float64] = np.arange(1, rows + 1, dtype=np.float64) ** -skew
    counts = np.minimum(np.round(weights * (entries / weights.sum())), columns).astype(np.int64)
    rng.shuffle(counts)
    pos, strides = np.concatenate(([0], np.cumsum(counts))), columns // np.maximum(counts, 1)
    values, crd = np.empty(pos[-1]), np.empty(pos[-1], np.int32 if columns <= np.iinfo(np.int32).max else np.int64)

    def drawn(low: int, number: int) -> None:
        """Draw the entries of a stretch of rows, with its own seed."""
        own, high = np.random.default_rng((seed, number)), min(low + _STRETCH, rows)
        part = slice(pos[low], pos[high])
        each, width = counts[low:high], np.repeat(strides[low:high], counts[low:high])
        place = np.arange(pos[low], pos[high]) - np.repeat(pos[low:high], each)
        crd[part] = place * width + (own.random(len(place)) * width).astype(np.int64)
        own.random(out=values[part])

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for _ in pool.map(drawn, range(0, rows, _STRETCH), range(rows)):
            pass
    return _by_rows(values, crd, pos, (rows, columns))


def banded(rows: int, offsets: Sequence[int]) -> scipy.sparse.csr_array:
    """Return a matrix whose row r has entries in the columns r + offset, for each of some ascending offsets that begin at 0."""
    own = np.asarray(offsets, np.int32)
    crd = np.add.outer(np.arange(rows, dtype=np.int32), own).ravel()
    return _by_rows(np.random.default_rng(0).random(len(crd)), crd, np.arange(rows + 1) * len(own), (rows, rows + int(own[-1])))


def fibred(slices: int, fibres: int, length: int, extents: tuple[int, int], seed: int = 0) -> Tensor:
    """Return a tensor of ``slices`` slices with ``fibres`` fibres each, which have ``length`` entries each, at random places.

    Args:
        extents: of the second and the third mode, at least ``fibres`` and ``length``.
    """
    rng = np.random.default_rng(seed)

    def drawn(rows: int, each: int, extent: int) -> NDArray[np.int32]:
        """Return ascending coordinates: the mode is cut into ``each`` stretches, and one coordinate drawn in each."""
        width = extent // each
        places = rng.integers(0, width, (rows, each), dtype=np.int32)
        return (places + np.arange(each, dtype=np.int32) * width).ravel()

    coordinates = drawn(slices, fibres, extents[0]), drawn(slices * fibres, length, extents[1])
    return _even((slices, *extents), (slices, fibres, length), coordinates, rng)


_NEAR = 64
"""Coordinates of ``in_order`` are moved at random by less than this."""


def in_order(slices: int, fibres: int, length: int, seed: int = 0) -> Tensor:
    """Return a tensor whose entries follow each other in order, so that the operands it is multiplied by are read once, in order."""
    rng = np.random.default_rng(seed)

    def drawn(rows: int, each: int) -> NDArray[np.int32]:
        first = np.arange(rows, dtype=np.int32) * each + rng.integers(0, _NEAR, rows, dtype=np.int32)
        return np.add.outer(first, np.arange(each, dtype=np.int32)).ravel()

    count = slices * fibres
    shape = slices, count + _NEAR, count * length + _NEAR
    return _even(shape, (slices, fibres, length), (drawn(slices, fibres), drawn(count, length)), rng)


def _even(
    shape: tuple[int, int, int], counts: tuple[int, int, int], drawn: Sequence[NDArray[np.int32]], rng: np.random.Generator
) -> Tensor:
    """Return a tensor with equally many fibres in each slice and entries in each fibre (``counts``), at the drawn coordinates."""
    slices, fibres, length = counts

    def even(rows: int, each: int) -> NDArray[np.int32]:
        return np.arange(rows + 1, dtype=np.int32) * each

    levels = (
        LevelArrays(pos=even(1, slices), crd=np.arange(slices, dtype=np.int32)),
        LevelArrays(pos=even(slices, fibres), crd=drawn[0]),
        LevelArrays(pos=even(slices * fibres, length), crd=drawn[1]),
    )
    return Tensor(shape, parse_format("csf", 3), levels, rng.random(slices * fibres * length))


def edges(empty_rows: int, width: int) -> Mapping[str, scipy.sparse.csr_array]:
    """Return edge cases for mappings, by name: all entries in one row, hardly any row with entries, no entries."""
    rng = np.random.default_rng(1)
    one = _by_rows(rng.random(width), np.arange(width), np.repeat([0, width], [8, 13]), (20, width))
    ends = np.repeat(np.arange(10), np.diff([0, *np.sort(rng.choice(empty_rows, 9, False)) + 1, empty_rows + 1]))
    few = _by_rows(rng.random(9), rng.permutation(9), ends, (empty_rows, 9))
    none = _by_rows(np.zeros(0), np.zeros(0), np.zeros(1001), (1000, 70))
    return {"one row has all": one, f"{empty_rows} rows, 9 entries": few, "no entries": none}
