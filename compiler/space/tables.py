"""Tables of combinations of indices, a column for each index, as ``joins`` makes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..storage.digits import first_places, stable_order

MOST_ROWS = 2**18
"""Most combinations of an intermediate step of a join; the sample is made smaller until there are no more."""

_SPARSE = 64  # with more possible combinations than this times those that exist, they are sorted instead of marked
_WORD = 8  # marks that are counted at once

Table = Mapping[str, NDArray[Any]]
Marks = Mapping[str, NDArray[np.bool_]]


class TooLarge(Exception):
    """Finding a size would take too many steps."""


class _Columns(Table):
    """The columns of a table, each made when it is first read: mostly one of them is, and those by which tables are joined."""

    def __init__(self, ways: Mapping[str, Callable[[], NDArray[np.int64]]]) -> None:
        self._ways, self._made = ways, dict[str, NDArray[np.int64]]()

    def __getitem__(self, index: str) -> NDArray[np.int64]:
        if index not in self._made:
            self._made[index] = self._ways[index]()
        return self._made[index]

    def __iter__(self) -> Iterator[str]:
        return iter(self._ways)

    def __len__(self) -> int:
        return len(self._ways)


def widened(
    table: Table, counts: NDArray[Any], begins: Callable[[], NDArray[Any]], others: Mapping[str, Callable[[], NDArray[Any]]]
) -> Table:
    """Return a table each of whose rows is joined with some rows of others.

    Args:
        table: to be joined.
        counts: for each row with how many.
        begins: makes the place of the first of them, behind which the rest stand.
        others: make the columns that they have.
    """
    total = int(counts.sum())
    if total > MOST_ROWS:
        raise TooLarge

    @cache
    def places() -> NDArray[np.int64]:
        found = np.repeat(begins() - np.cumsum(counts) + counts, counts)
        found += np.arange(total, dtype=np.int32)
        return found

    return _Columns(
        {index: lambda index=index: np.repeat(table[index], counts) for index in table}
        | {index: lambda find=find: find()[places()] for index, find in others.items()}
    )


def distinct(table: Table, extents: Mapping[str, int], marks: Marks) -> Table:
    """Return the combinations of a table once, in order.

    Args:
        table: the combinations.
        extents: of the indices.
        marks: indices with the values that they may have. Mostly these are few, so that all possible combinations can be marked too.
    """
    values = {index: np.flatnonzero(marked) for index, marked in marks.items()}
    numbered = {index: (np.cumsum(marks[index]) - 1)[table[index]] if index in marks else table[index] for index in table}
    sizes = [len(values[index]) if index in marks else extents[index] for index in table]
    sizes[-1] += -sizes[-1] % _WORD
    found, all_of_them = numbers(numbered, list(table), sizes), prod(sizes)
    ways: dict[str, Callable[[], NDArray[Any]]] = {}
    if all_of_them > _SPARSE * len(found):
        found = found.astype(np.int32) if all_of_them < 2**31 else found  # divided in a quarter of the time
        found = found.take(stable_order(found, all_of_them))
        found = found[first_places(found)]
        once = partial(np.asarray, found)
    else:
        occurs = np.zeros(all_of_them, bool)
        occurs[found] = True
        once = partial(np.flatnonzero, occurs)
        if len(sizes) > 1:
            ways[next(iter(table))] = lambda: np.repeat(np.arange(sizes[0]), _counted(occurs, sizes[0]))
    once = cache(once)
    steps = [prod(sizes[place:]) for place in range(len(sizes) + 1)]
    for index, (around, step) in zip(table, pairwise(steps), strict=True):
        ways.setdefault(index, lambda around=around, step=step: _part(once(), around, step))
    return _Columns({index: lambda index=index: values[index][ways[index]()] if index in marks else ways[index]() for index in table})


def _counted(occurs: NDArray[np.bool_], rows: int) -> NDArray[np.intp]:
    """Return how many marks each of some rows has, eight at once: to list them takes ten times as long."""
    return np.bitwise_count(occurs.view(np.uint64)).reshape(rows, len(occurs) // _WORD // max(rows, 1)).sum(axis=1, dtype=np.intp)


def numbers(table: Table, indices: list[str], sizes: list[int]) -> NDArray[np.int64]:
    """Return one number for the values of some indices in every row, each of which has values below its size."""
    first, *others = indices
    found = table[first]
    for place, index in enumerate(others, 1):
        found = np.multiply(found, sizes[place], out=found if place > 1 else None, dtype=np.int64)
        found += table[index]
    return found


def _part(keys: NDArray[Any], around: int, step: int) -> NDArray[np.int64]:
    """Return the values of an index in the numbers of rows, which repeat after so many numbers and last for so many."""
    inside = keys % around if len(keys) and keys[-1] >= around else keys  # they are in order
    return (inside // step if step > 1 else inside).astype(np.int64, copy=False)
