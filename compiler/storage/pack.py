"""Packing: entries in any order become the level arrays of any format, level by level, outermost first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError
from ..format import Format, LevelKind
from ..native.memory import FLOOR, claim
from . import hashing
from .aligned import FEWER_LEVELS, aligned_copy, aligned_empty, aligned_full, index_dtype
from .entries import Entries, SortedEntries, sort_entries
from .kernels import active
from .narrow import narrow
from .sealed import sealed
from .tensor import LevelArrays, Tensor

MOST_POSITIONS = 2**62
"""Positions of dense levels from which on there is no number for each."""


@dataclass(frozen=True)
class _Frontier:
    """Where the entries stand after some levels.

    Args:
        count: number of positions of the last packed level.
        position: the position of each entry; None where that is 0 for all, or the entry's own number (``identity``).
        identity: whether each entry has its own position, in order.
        ordered: whether positions do not decrease from entry to entry (not so below hashed levels).
    """

    count: int
    position: NDArray[Any] | None = None
    identity: bool = False
    ordered: bool = True

    def positions(self, entries: int) -> NDArray[np.int64]:
        """Return the position of each entry as an array."""
        if self.position is not None:
            return self.position.astype(np.int64, copy=False)
        return np.arange(entries) if self.identity else np.zeros(entries, np.int64)


def pack(entries: Entries, format: Format, fill_value: Any = 0) -> Tensor:
    """Pack entries into a format, in time linear in entries plus stored positions.

    Duplicates are summed; explicit zeros are kept; values that fit as they are become the tensor's, and so do sealed coordinates.

    Raises:
        FormatError: a singleton level would need several coordinates below one parent, or one of a mode that has none;
            or dense levels have 2**62 positions; or a fibre of a narrow level reaches too far.
        ResourceError: dense levels, or positions of all their parents, make the tensor larger than the memory that can be had.
    """
    if LevelKind.NARROW in format.levels:
        return narrow(pack(entries, format.widened, fill_value), format)
    found = sort_entries(entries, format.order)
    _claim(found, entries.shape, format)
    frontier = _Frontier(1)
    levels: list[LevelArrays] = []
    for level, kind in enumerate(format.levels):
        extent = entries.shape[format.order[level]]
        if kind is LevelKind.DENSE:
            arrays, frontier = LevelArrays(), _below_dense(frontier, found, level, extent)
        elif kind is LevelKind.SINGLETON:
            arrays = LevelArrays(crd=_pack_singleton(frontier, found, level, extent, format))
        elif kind is LevelKind.COMPRESSED and frontier.ordered:
            arrays, frontier = _pack_compressed(frontier, found, level, _run_end(format, level))
        else:
            arrays, frontier = _pack_unordered(frontier, found, level, _run_end(format, level), kind is LevelKind.HASHED)
        levels.append(arrays)
    return Tensor.made(entries.shape, format, tuple(levels), _pack_values(frontier, found.values, fill_value), fill_value)


def _claim(found: SortedEntries, shape: tuple[int, ...], format: Format) -> None:
    """See that there is memory for all arrays of the packed tensor together."""
    total, parents = 0, 1
    for level, kind in enumerate(format.levels):
        extent = shape[format.order[level]]
        if kind is LevelKind.DENSE:
            parents *= extent
            if parents >= MOST_POSITIONS:  # which is refused by another line
                return
        elif kind is LevelKind.SINGLETON:
            total += parents * index_dtype(extent).itemsize
        else:
            heads = found.heads(_run_end(format, level))
            total += (parents + 1) * index_dtype(heads).itemsize + heads * index_dtype(extent).itemsize
            parents = heads if kind is not LevelKind.HASHED else max(heads, parents)
    total += parents * found.values.itemsize
    if total > FLOOR:
        claim(total, f"a tensor of shape {shape} in format '{format}'", FEWER_LEVELS)


def _run_end(format: Format, level: int) -> int:
    """Return the last level of a coordinate run: a compressed level and the singletons directly below share positions."""
    end = level
    if format.levels[level] is LevelKind.COMPRESSED:
        while end + 1 < len(format) and format.levels[end + 1] is LevelKind.SINGLETON:
            end += 1
    return end


def _in_coordinate_run(format: Format, level: int) -> bool:
    while format.levels[level] is LevelKind.SINGLETON:
        level -= 1
    return format.levels[level] is LevelKind.COMPRESSED


def _below_dense(frontier: _Frontier, found: SortedEntries, level: int, extent: int) -> _Frontier:
    count = frontier.count * extent
    if count >= MOST_POSITIONS:
        raise FormatError(f"the dense levels of this format have {count} positions; use compressed or hashed levels")
    column = found.columns[level]
    if frontier.position is None and not frontier.identity:
        return _Frontier(count, column)
    return _Frontier(count, active().below_dense(frontier.positions(len(found)), extent, column), ordered=frontier.ordered)


def _pack_singleton(frontier: _Frontier, found: SortedEntries, level: int, extent: int, format: Format) -> NDArray[Any]:
    """Return one coordinate a position; the entries of one position must agree in it."""
    if not _in_coordinate_run(format, level) and found.differences[1][level]:
        raise FormatError(
            f"format '{format}' cannot hold these entries: level {level + 1} is singleton, "
            "but a parent has several coordinates; use compressed"
        )
    column = found.columns[level]
    if frontier.identity:
        return column
    if frontier.count and extent == 0:
        raise FormatError(f"format '{format}' cannot hold these entries: level {level + 1} is singleton, but its mode has extent 0")
    crd = aligned_full(frontier.count, 0, column.dtype)
    active().scatter(column, frontier.positions(len(found)), crd)
    return sealed(crd)


def _pack_compressed(frontier: _Frontier, found: SortedEntries, level: int, last: int) -> tuple[LevelArrays, _Frontier]:
    heads = found.heads(last)
    column, parents = found.columns[level], frontier.count
    parent = frontier.positions(len(found)) if frontier.identity else frontier.position
    if heads < len(found):
        pos, crd, child = active().compress(found.differences[0], last, parent, parents, column, heads)
        return LevelArrays(sealed(pos), sealed(crd)), _Frontier(heads, child)
    pos = np.array([0, heads], index_dtype(heads)) if parent is None else active().segments(parent, parents, heads)
    return LevelArrays(sealed(pos), column), _Frontier(heads, identity=True)


def _pack_unordered(frontier: _Frontier, found: SortedEntries, level: int, last: int, hashed: bool) -> tuple[LevelArrays, _Frontier]:
    kernels = active()
    parent, first = frontier.positions(len(found)), found.differences[0]
    counts = kernels.count_children(first, last, parent, frontier.count)
    starts = np.zeros(frontier.count + 1, np.int64)
    np.cumsum(hashing.table_sizes(counts) if hashed else counts, out=starts[1:])
    crd, child = kernels.place_children(first, last, parent, starts, found.columns[level], hashed)
    pos = aligned_copy(starts, index_dtype(int(starts[-1])))
    return LevelArrays(sealed(pos), sealed(crd)), _Frontier(int(starts[-1]), child, ordered=False)


def _pack_values(frontier: _Frontier, values: NDArray[Any], fill_value: Any) -> NDArray[Any]:
    if frontier.identity:
        return values
    full = len(values) >= frontier.count
    packed = aligned_empty(frontier.count, values.dtype) if full else aligned_full(frontier.count, fill_value, values.dtype)
    active().scatter(values, frontier.positions(len(values)), packed)
    return packed
