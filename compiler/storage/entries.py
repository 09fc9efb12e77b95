"""Entries of a tensor as columns of coordinates, the form between packing and unpacking, and how they are sorted."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..frozen import frozen
from ..native.memory import claim
from ..numpy_later import np
from .aligned import index_dtype
from .kernels import active
from .sealed import sealed

if TYPE_CHECKING:
    from numpy.typing import NDArray


@frozen
class Entries:
    """Stored entries, one array of coordinates per mode.

    Args:
        shape: extents by mode.
        coordinates: ``coordinates[m][e]`` is the coordinate of entry e in mode m, within the extent; int32 or int64.
        values: one value per entry.
        sorted_by: modes by which the entries are sorted lexicographically, without duplicates; None where unknown.
    """

    shape: tuple[int, ...]
    coordinates: tuple[NDArray[Any], ...]
    values: NDArray[Any]
    sorted_by: tuple[int, ...] | None = None

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self.values)


@frozen
class SortedEntries:
    """Entries in lexicographic order of their levels, each coordinate tuple once.

    Args:
        columns: coordinates by level, outermost first, int32 where the extent allows.
        values: one value per entry.
    """

    columns: tuple[NDArray[Any], ...]
    values: NDArray[Any]

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self.values)

    @cached_property
    def differences(self) -> tuple[NDArray[np.int8], NDArray[np.int64]]:
        """The first level at which each entry differs from the one before (0 for entry 0), and how many differ at each."""
        return active().first_differences(self.columns)

    def heads(self, level: int) -> int:
        """Return how many distinct coordinate tuples the levels down to ``level`` hold."""
        return len(self) if level == len(self.columns) - 1 else int(self.differences[1][: level + 1].sum())


def sort_entries(entries: Entries, order: tuple[int, ...]) -> SortedEntries:
    """Return the entries sorted lexicographically by the modes of ``order``, duplicates summed in their given order."""
    values = entries.values
    if not order:
        return SortedEntries((), values if len(values) < 2 else np.add.reduce(values, keepdims=True, dtype=values.dtype))
    extents = tuple(entries.shape[mode] for mode in order)
    columns = tuple(_contiguous(entries.coordinates[mode], index_dtype(entries.shape[mode])) for mode in order)
    kernels = active()
    unique = entries.sorted_by is not None
    if entries.sorted_by == order or (not unique and kernels.order_state(columns) == 0):
        return SortedEntries(columns, values)
    _claim(len(values), len(order), values.itemsize)
    found, values = kernels.sort(columns, extents, values, _modes_to_sort(entries.sorted_by, order), unique)
    return SortedEntries(tuple(map(sealed, found)), values)


def _contiguous(column: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return a column itself if its layout allows, else a contiguous copy, which is sealed."""
    found = np.ascontiguousarray(column, dtype)
    return found if np.may_share_memory(found, column) else sealed(found)


def _claim(count: int, order: int, itemsize: int) -> None:
    """Check that there is memory for keys and values, both twice, and for the columns that are made of them."""
    claim(count * (4 * 8 + 8 * order + itemsize), f"the sorting of {count} entries")


def _modes_to_sort(known: tuple[int, ...] | None, order: tuple[int, ...]) -> int:
    """Return by how many leading modes of ``order`` a stable sort has to sort, given the modes by which entries are sorted already."""
    if known is not None:
        for count in range(len(order)):
            if tuple(mode for mode in known if mode not in order[:count]) == order[count:]:
                return count
    return len(order)
