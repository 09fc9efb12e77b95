"""Packing: entries in any order become the level arrays of any format, level by level, outermost first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..format import Format
from ..levels.dense import MOST_POSITIONS
from ..levels.traversal import Column, Frontier
from ..native.memory import FLOOR, claim
from .aligned import FEWER_LEVELS, aligned_empty, aligned_full
from .encoding import encoded
from .entries import Entries, SortedEntries, sort_entries
from .kernels import active
from .level_arrays import LevelArrays
from .tensor import Tensor

if TYPE_CHECKING:
    from numpy.typing import NDArray


def pack(entries: Entries, format: Format, fill_value: Any = 0) -> Tensor:
    """Pack entries into a format, in time linear in entries plus stored positions.

    Duplicates are summed; explicit zeros are kept. Values in the right order, and sealed coordinates, are not copied.

    Raises:
        FormatError: a level cannot hold its coordinates, as a singleton cannot hold several below one parent; or dense levels have
            2**62 positions or more.
        ResourceError: dense levels, or the positions of all their parents, make the tensor larger than the available memory.
    """
    if format.mirrors:
        return encoded(pack(entries, format.plain, fill_value), format)
    found = sort_entries(entries, format.order)
    columns = [_column(found, entries.shape, format, level) for level in range(len(format))]
    _claim(columns, entries.shape, format)
    frontier = Frontier(1)
    levels: list[LevelArrays] = []
    for kind, column in zip(format.levels, columns, strict=True):
        arrays, frontier = kind.pack(frontier, column)
        levels.append(arrays)
    return Tensor.made(entries.shape, format, tuple(levels), _pack_values(frontier, found.values, fill_value), fill_value)


def _column(found: SortedEntries, shape: tuple[int, ...], format: Format, level: int) -> Column:
    last, above = level, level
    while format.levels[level].repeats and last + 1 < len(format) and format.levels[last + 1].shares_positions:
        last += 1
    while format.levels[above].shares_positions:
        above -= 1
    return Column(found, level, last, shape[format.order[level]], format.levels[above].repeats, str(format))


def _claim(columns: list[Column], shape: tuple[int, ...], format: Format) -> None:
    """Check that there is memory for all arrays of the packed tensor together."""
    total, parents, itemsize = 0, 1, 1
    for kind, column in zip(format.levels, columns, strict=True):
        itemsize = column.found.values.itemsize
        size, parents = kind.bytes(parents, 0 if kind.full or kind.shares_positions else column.children, column.extent)
        total += size
        if parents >= MOST_POSITIONS:  # packing the level will raise the error
            return
    total += parents * itemsize
    if total > FLOOR:
        claim(total, f"a tensor of shape {shape} in format '{format}'", FEWER_LEVELS)


def _pack_values(frontier: Frontier, values: NDArray[Any], fill_value: Any) -> NDArray[Any]:
    if frontier.identity:
        return values
    full = len(values) >= frontier.count
    packed = aligned_empty(frontier.count, values.dtype) if full else aligned_full(frontier.count, fill_value, values.dtype)
    position = frontier.positions(len(values)) if frontier.position is None else frontier.position
    active().scatter(values, position, packed)
    return packed
