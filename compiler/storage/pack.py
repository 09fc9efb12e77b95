"""Packing: entries in any order become the level arrays of any format, level by level, outermost first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError
from ..format import Format, LevelKind
from . import hashing
from .aligned import aligned_copy, aligned_empty, aligned_full, dense_size, index_dtype
from .entries import Entries, first_differences, sort_entries
from .tensor import LevelArrays, Tensor


@dataclass(frozen=True)
class _Frontier:
    """Where the entries stand after some levels.

    Args:
        count: number of positions of the last packed level.
        position: the position of each entry; None while it is 0 for all of them.
        ordered: whether positions do not decrease from entry to entry (not so below hashed levels).
    """

    count: int
    position: NDArray[np.int64]
    ordered: bool = True


def pack(entries: Entries, format: Format, fill_value: Any = 0) -> Tensor:
    """Pack entries into a format, in time linear in entries plus stored positions once they are sorted.

    Duplicates are summed; explicit zeros are kept.

    Raises:
        FormatError: a singleton level would need several coordinates below one parent.
        DataError: dense levels make the tensor larger than memory.
    """
    entries = sort_entries(entries, format.order)
    return pack_sorted(entries, format, fill_value)


def pack_sorted(entries: Entries, format: Format, fill_value: Any) -> Tensor:
    """Pack entries that are sorted by the format's mode order without duplicates."""
    first = first_differences(entries, format.order)
    frontier = _Frontier(1, np.zeros(len(entries), np.int64))
    levels: list[LevelArrays] = []
    for level, kind in enumerate(format.levels):
        column, extent = entries.coordinates[format.order[level]], entries.shape[format.order[level]]
        if kind is LevelKind.DENSE:
            arrays, frontier = LevelArrays(), _below_dense(frontier, column, extent)
        elif kind is LevelKind.SINGLETON:
            shared = _in_coordinate_run(format, level)
            arrays = LevelArrays(crd=_pack_singleton(frontier, column, extent, None if shared else first, level, format))
        else:
            heads = first <= _run_end(format, level)
            build = _pack_compressed if kind is LevelKind.COMPRESSED else _pack_hashed
            arrays, frontier = build(frontier, column, extent, heads)
        levels.append(arrays)
    return Tensor(entries.shape, format, tuple(levels), _pack_values(frontier, entries.values, fill_value), fill_value)


def _run_end(format: Format, level: int) -> int:
    """Return the last level of a coordinate run: a compressed level and the singletons directly below share positions."""
    end = level
    if format.levels[level] is LevelKind.COMPRESSED:
        while end + 1 < len(format) and format.levels[end + 1] is LevelKind.SINGLETON:
            end += 1
    return end


def _in_coordinate_run(format: Format, level: int) -> bool:
    above = level
    while format.levels[above] is LevelKind.SINGLETON:
        above -= 1
    return format.levels[above] is LevelKind.COMPRESSED


def _below_dense(frontier: _Frontier, column: NDArray[Any], extent: int) -> _Frontier:
    count = dense_size((frontier.count, extent))
    if count >= 2**62:
        raise FormatError(f"the dense levels of this format have {count} positions; use compressed or hashed levels")
    return _Frontier(count, frontier.position * extent + column, frontier.ordered)


def _pack_singleton(
    frontier: _Frontier, column: NDArray[Any], extent: int, first: NDArray[np.int8] | None, level: int, format: Format
) -> NDArray[Any]:
    """Return one coordinate a position; ``first`` is given where the positions could hold several and must not."""
    if first is not None and (first[1:] == level).any():
        raise FormatError(
            f"format '{format}' cannot hold these entries: level {level + 1} is singleton, "
            "but a parent has several coordinates; use compressed"
        )
    crd = aligned_full(frontier.count, 0, index_dtype(extent))
    crd[frontier.position] = column
    return crd


def _pack_compressed(frontier: _Frontier, column: NDArray[Any], extent: int, new: NDArray[np.bool_]) -> tuple[LevelArrays, _Frontier]:
    heads = np.flatnonzero(new)
    parents = frontier.position[heads]
    starts = _segment_starts(np.bincount(parents, minlength=frontier.count))
    children = np.arange(len(heads)) if frontier.ordered else starts[parents] + _ranks(parents)
    crd = aligned_empty(len(heads), index_dtype(extent))
    crd[children] = column[heads]
    pos = aligned_copy(starts, index_dtype(len(heads)))
    return LevelArrays(pos, crd), _Frontier(len(heads), _spread(children, new), frontier.ordered)


def _pack_hashed(frontier: _Frontier, column: NDArray[Any], extent: int, new: NDArray[np.bool_]) -> tuple[LevelArrays, _Frontier]:
    heads = np.flatnonzero(new)
    parents = frontier.position[heads]
    starts = _segment_starts(hashing.table_sizes(np.bincount(parents, minlength=frontier.count)))
    slots = int(starts[-1])
    crd = aligned_full(slots, -1, index_dtype(extent))
    children = hashing.insert(crd, starts, parents, column[heads])
    pos = aligned_copy(starts, index_dtype(slots))
    return LevelArrays(pos, crd), _Frontier(slots, _spread(children, new), False)


def _segment_starts(counts: NDArray[Any]) -> NDArray[np.int64]:
    starts = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts


def _ranks(parents: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the place of each head among those of its parent, which stand together."""
    places = np.arange(len(parents))
    if not len(parents):
        return places
    begins = np.flatnonzero(np.diff(parents, prepend=parents[:1] - 1))
    return places - np.repeat(begins, np.diff(begins, append=len(parents)))


def _spread(children: NDArray[Any], new: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the position of each entry from the positions of the heads."""
    return children[np.cumsum(new) - 1].astype(np.int64, copy=False)


def _pack_values(frontier: _Frontier, values: NDArray[Any], fill_value: Any) -> NDArray[Any]:
    packed = (
        aligned_full(frontier.count, fill_value, values.dtype)
        if len(values) < frontier.count
        else aligned_empty(frontier.count, values.dtype)
    )
    packed[frontier.position] = values
    return packed
