"""Entries of a tensor as coordinate columns: what every conversion goes through, and how they are sorted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Entries:
    """Stored entries, one array of coordinates a mode.

    Args:
        shape: extents by mode.
        coordinates: ``coordinates[m][e]`` is the coordinate of entry e in mode m, within the extent; int32 or int64.
        values: one value an entry.
        sorted_by: modes by which the entries are sorted lexicographically, without duplicates; None where unknown.
    """

    shape: tuple[int, ...]
    coordinates: tuple[NDArray[Any], ...]
    values: NDArray[Any]
    sorted_by: tuple[int, ...] | None = None

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self.values)


def sort_entries(entries: Entries, order: tuple[int, ...]) -> Entries:
    """Return the entries sorted lexicographically by the modes of ``order``, duplicates summed in their given order."""
    if entries.sorted_by == order or (entries.sorted_by is not None and len(entries) < 2):
        return replace(entries, sorted_by=order)
    if not order:
        return _summed_scalar(entries)
    first = first_differences(entries, order)
    if (first < 0).any():
        permutation = _sorting_permutation(entries, _modes_to_sort(entries.sorted_by, order))
        columns = tuple(column[permutation] for column in entries.coordinates)
        entries = Entries(entries.shape, columns, entries.values[permutation], entries.sorted_by and order)
        if entries.sorted_by is None:
            first = first_differences(entries, order)
    if entries.sorted_by is not None or (first < len(order)).all():
        return replace(entries, sorted_by=order)
    return _summed(entries, first < len(order), order)


def first_differences(entries: Entries, order: tuple[int, ...]) -> NDArray[np.int8]:
    """Return for each entry the first level at which it is greater than its predecessor.

    0 for the first entry, ``len(order)`` for an equal one, -1 where the entry is smaller (not sorted).
    """
    count = len(entries)
    first = np.full(count, len(order), np.int8)
    for level in reversed(range(len(order))):
        column = entries.coordinates[order[level]]
        first[1:][column[1:] > column[:-1]] = level
        first[1:][column[1:] < column[:-1]] = -1
    first[:1] = 0
    return first


def _modes_to_sort(known: tuple[int, ...] | None, order: tuple[int, ...]) -> tuple[int, ...]:
    """Return the leading modes of ``order`` that a stable sort has to look at, given the order that already holds."""
    if known is None:
        return order
    for count in range(len(order)):
        if tuple(mode for mode in known if mode not in order[:count]) == order[count:]:
            return order[:count]
    return order


def _sorting_permutation(entries: Entries, modes: tuple[int, ...]) -> NDArray[np.intp]:
    widths = [max(0, entries.shape[mode] - 1).bit_length() for mode in modes]
    if sum(widths) > 63:
        return np.lexsort([entries.coordinates[mode] for mode in reversed(modes)])
    key = np.zeros(len(entries), np.int64)
    for mode, width in zip(modes, widths, strict=True):
        key <<= width
        key |= entries.coordinates[mode]
    return np.argsort(key, kind="stable")


def _summed(entries: Entries, new: NDArray[np.bool_], order: tuple[int, ...]) -> Entries:
    heads = np.flatnonzero(new)
    values = np.add.reduceat(entries.values, heads).astype(entries.values.dtype, copy=False)
    return Entries(entries.shape, tuple(column[heads] for column in entries.coordinates), values, order)


def _summed_scalar(entries: Entries) -> Entries:
    values = entries.values
    total = values if len(values) < 2 else np.add.reduce(values, keepdims=True, dtype=values.dtype)
    return Entries((), (), total, ())
