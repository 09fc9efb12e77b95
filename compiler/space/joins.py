"""How many combinations of indices several stored operands have in common, taken from what they store and not from their dimensions.

Loops over a product of sparse operands run where all of them store something: over the natural join of their coordinates, each operand
cut to the levels whose loops stand there. What such loops leave in a workspace are the distinct combinations of the indices that it
keeps: a projection of the join. Both are counted for a sample of the values of one index that is kept, the one that fibres are most
unequal in, as every combination has one of them. The values with the longest fibres are all in the sample, since a few hubs decide the
sums of many graphs; of the others, sorted by length, one of every few is in it, and counts for its neighbours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..storage.digits import stable_order
from ..storage.positions import level_extent
from ..storage.walk import Walk
from .relations import Join, Relation, Scan, apart, is_nested, join, sampled
from .tables import Marks, Table, TooLarge, distinct, numbers, widened

if TYPE_CHECKING:
    from ..storage.tensor import Tensor

HEAVIEST = 32
"""Number of values, those with the longest fibres, that are always in the sample."""

SAMPLE = 2**11
"""About how many positions of the sampled operand are read."""

MOST_WHOLE = 2**13
"""Operands with at most so many entries are joined whole, without a sample; parts of such a join serve other relations too."""

MOST_EXTENT = 2**22
"""Largest extent of an index for which an array over its values is made; with larger ones no size is found."""

REMEMBERED = 12
"""How many tables of combinations are kept: each product of a chain has the table before it as a part, and a join is cut to several sets
of indices."""

MOST_STORED = 2**21
"""Most positions of an operand that are searched for those of the sample; for larger operands no size is found."""


class Joins:
    """Sizes of joins of some operands, each found once.

    Args:
        operands: by name; indices stand for their modes as they are.
        extents: by index.
    """

    def __init__(self, operands: Mapping[str, Tensor], extents: Mapping[str, int]) -> None:
        self._operands, self._extents = operands, extents
        self._known: dict[Relation, float | None] = {}
        self._gone_through: dict[tuple[Relation, tuple[tuple[Scan, str], ...]], float | None] = {}
        self._counted: dict[tuple[Scan, str], NDArray[np.int64]] = {}
        self._too_large: list[frozenset[Relation]] = []
        self._tables: dict[tuple[Join, frozenset[tuple[str, bytes]]], Table] = {}

    def size(self, relation: Relation) -> float | None:
        """Return how many combinations a relation has, exactly where the sample is everything; None where that takes too long to
        find out."""
        if relation not in self._known:
            try:
                self._known[relation] = None if self._has_too_much(relation) else prod(map(self._estimated, apart(relation)))
            except TooLarge:
                self._known[relation] = None
                self._too_large += [relation.parts] if isinstance(relation, Join) and relation.is_whole else []
        return self._known[relation]

    def steps(self, relation: Relation, fibres: tuple[tuple[Scan, str], ...]) -> float | None:
        """Return how many entries loops go through that find, for every combination of a relation, what some fibres have in common.

        Those of all the fibres; where one is much shorter, its entries alone, with a search of the others for each. None where that takes
        too long to find out.

        Args:
            fibres: operands with the indices of two levels, and the first of these, whose value in a combination chooses the fibre.
        """
        key = relation, fibres
        if key not in self._gone_through:
            try:
                self._gone_through[key] = self._steps(relation, fibres)
            except TooLarge:
                self._gone_through[key] = None
        return self._gone_through[key]

    def _steps(self, relation: Relation, fibres: tuple[tuple[Scan, str], ...]) -> float:
        whole = join({relation, fibres[0][0]})
        if len(fibres) == 1 and isinstance(whole, Join) and (product := self._product(whole)) is not None:
            return product
        table, weights = self._sample(relation)
        lengths = np.array([self._fibres(scan, index)[table[index]] for scan, index in fibres], np.float64)
        shortest, longest = np.maximum(lengths.min(axis=0), 1.0), np.maximum(lengths.max(axis=0), 1.0)
        searched = len(fibres) * shortest * (1.0 + np.log2(longest / shortest))
        return float((np.minimum(lengths.sum(axis=0), searched) * weights).sum())

    def _has_too_much(self, relation: Relation) -> bool:
        """Whether some parts of a join alone had too many combinations before, as the outermost loops of a long product may have."""
        return isinstance(relation, Join) and any(parts <= relation.parts for parts in self._too_large)

    def _estimated(self, relation: Relation) -> float:
        if not relation.kept:
            return 1.0
        if isinstance(relation, Join) and (product := self._product(relation)) is not None:
            return product
        if isinstance(relation, Scan) and (stored_once := self._positions(relation)) is not None:
            return stored_once
        return float(self._sample(relation)[1].sum())

    def _product(self, relation: Join) -> float | None:
        """Return how many combinations two operands of two levels have that meet in one index, from how often each has its values: no
        sample of few rows foretells hubs. None for other joins."""
        scans = sorted((part for part in relation.parts if isinstance(part, Scan) and len(part.indices) == 2), key=str)
        shared = scans[0].kept & scans[1].kept if len(scans) == 2 == len(relation.parts) else ()
        if len(shared) != 1 or not relation.is_whole or any(self._positions(scan) is None for scan in scans):
            return None
        (index,) = shared
        one, other = (self._fibres(scan, index).astype(np.float64) for scan in scans)
        return float(one @ other)

    def _sample(self, relation: Relation) -> tuple[Table, NDArray[np.float64]]:
        """Return some combinations of a relation, and for how many of all combinations each counts."""
        places = {(scan, index): scan.indices.index(index) for scan, index in sampled(relation, relation.kept)}
        outermost = sorted((pair for pair in places if places[pair] == min(places.values())), key=str)
        fibres = {pair: self._fibres(*pair) for pair in outermost}
        _, index = pair = max(outermost, key=lambda pair: fibres[pair].max(initial=0) / max(fibres[pair].sum(), 1))
        stored = fibres[pair]
        values = np.flatnonzero(stored)
        most, total = int(stored.max(initial=0)), int(stored.sum())
        values = values[stable_order(most - stored[values], most + 1)]
        wanted = len(values) if total <= SAMPLE else max(HEAVIEST, len(values) * SAMPLE // total)
        everything = wanted == len(values) and is_nested(relation) and self._is_small(relation)
        while wanted:
            weights = _weights(values, wanted, len(stored))
            try:
                marks = {} if everything else {index: weights > 0}
                table = {index: np.flatnonzero(weights)} if self._are_values(relation, *pair) else self._table(relation, marks)
                return table, weights[table[index]]
            except TooLarge:
                wanted, everything = wanted if everything else wanted // 4, False
        if len(values):
            raise TooLarge
        return {name: np.empty(0, np.int64) for name in relation.kept}, np.empty(0)

    def _is_small(self, relation: Relation) -> bool:
        """Whether its operands are small enough to be joined whole."""
        if isinstance(relation, Scan):
            return len(_plain(self._operands[relation.operand]).values) <= MOST_WHOLE
        return all(map(self._is_small, relation.parts))

    def _positions(self, scan: Scan) -> float | None:
        """Return how many positions the last level of a scan has, if each has coordinates of its own."""
        tensor, count = _plain(self._operands[scan.operand]), 1
        for level, kind in enumerate(tensor.format.levels[: len(scan.indices)]):
            if kind.holes or not tensor.format.unique(level):
                return None
            count = kind.positions(tensor.levels[level].parts, count, level_extent(tensor, level))
        return float(count)

    def _fibres(self, scan: Scan, index: str) -> NDArray[np.int64]:
        """Return how many positions of the next level an operand has below each value of an index."""
        tensor, place = self._operands[scan.operand], scan.indices.index(index)
        below = tensor.levels[place + 1].pos if len(scan.indices) > place + 1 else None
        if place == 0 and below is not None and tensor.format.levels[0].full:
            return np.diff(below).astype(np.int64)
        short = Scan(scan.operand, scan.indices[: place + 2])
        if (short, index) not in self._counted:
            rows = self._rows(short) if place == 1 else None
            values = self._scanned(short, {})[index] if rows is None else rows[1]
            self._counted[short, index] = np.bincount(values, minlength=self._length(index))
        return self._counted[short, index]

    def _rows(self, scan: Scan) -> tuple[NDArray[Any], NDArray[Any]] | None:
        """Return where the rows of a matrix of compressed rows begin, and its column numbers; None of all else, and of what is large."""
        tensor = _plain(self._operands[scan.operand])
        kinds = tensor.format.levels
        if len(scan.indices) != 2 or not kinds[0].full or kinds[1] != "compressed" or self._positions(scan) is None:
            return None
        pos, crd = tensor.levels[1].parts["pos"], tensor.levels[1].parts["crd"]
        return None if max(level_extent(tensor, 0), len(crd)) > MOST_STORED else (pos, crd)

    def _are_values(self, relation: Relation, scan: Scan, index: str) -> bool:
        """Whether the combinations of a relation are the values of an index that have fibres in a scan."""
        if not isinstance(relation, Join) or relation.parts != {scan} or relation.kept != {index}:
            return False
        ends = len(scan.indices) <= scan.indices.index(index) + 2  # else what is below a position may be empty
        return ends and self._positions(scan) is not None and self._extents[index] <= MOST_STORED

    def _table(self, relation: Relation, marks: Marks) -> Table:
        """Return the combinations of a relation all of whose values are marked."""
        own = {index: marked for index, marked in marks.items() if index in relation.kept}
        if isinstance(relation, Scan):
            return self._scanned(relation, own)
        key = relation, frozenset((index, np.packbits(marked).tobytes()) for index, marked in own.items())
        found = self._tables.pop(key, None)
        if found is None and relation.is_whole:
            found = self._met(relation, own)
        elif found is None:
            whole = self._table(relation.whole, own)
            kept = sorted(relation.kept, key=lambda index: (index not in own, index))
            found = self._distinct({index: whole[index] for index in kept}, own)
        self._tables[key] = found  # the most recently used stands last
        if len(self._tables) > REMEMBERED:
            del self._tables[next(iter(self._tables))]
        return found

    def _met(self, relation: Join, own: Marks) -> Table:
        """Return the combinations that all parts of a whole join have, those of marked values."""
        waiting = sorted(relation.parts, key=str)
        table: Table = {}
        while waiting:
            part = next((part for part in waiting if part.kept.intersection(table or own)), waiting[0])
            waiting.remove(part)
            if table and isinstance(part, Scan) and (through := self._through_rows(table, part, own)) is not None:
                table = through
                continue
            known = {**own, **{index: self._marked(index, table[index]) for index in part.kept.intersection(table)}}
            found = self._table(part, known)
            table = self._joined(table, found) if table else found
        return table

    def _through_rows(self, table: Table, scan: Scan, own: Marks) -> Table | None:
        """Return a table joined with the rows of a matrix that it has the numbers of, of which nothing else is gone through; None of all
        other operands."""
        row, column = scan.indices if len(scan.indices) == 2 else ("", "")
        if row not in table or column in table or column in own or (rows := self._rows(scan)) is None:
            return None
        pos, crd = rows
        begins = pos[:-1][table[row]]
        return widened(table, pos[1:][table[row]] - begins, lambda: begins, {column: lambda: crd})

    def _scanned(self, scan: Scan, marks: Marks) -> Table:
        tensor, walk = _plain(self._operands[scan.operand]), Walk()
        kinds = tensor.format.levels[: len(scan.indices)]
        for level, (kind, index) in enumerate(zip(kinds, scan.indices, strict=True)):
            parts, extent = tensor.levels[level].parts, level_extent(tensor, level)
            passed = walk.count * extent if kind.full else walk.count
            if walk.positions is None:
                passed = kind.positions(parts, walk.count, extent)
            if passed > MOST_STORED:
                raise TooLarge
            walk = kind.unpack(walk, parts, extent)
            if index in marks:
                places = np.flatnonzero(marks[index][walk.columns[-1]])
                reached = places if walk.positions is None else walk.positions[places]
                walk = Walk(tuple(column[places] for column in walk.columns), reached, len(places))
        table = {index: column.astype(np.int64, copy=False) for index, column in zip(scan.indices, walk.columns, strict=True)}
        return table if all(map(tensor.format.unique, range(len(kinds)))) else self._distinct(table)

    def _joined(self, one: Table, other: Table) -> Table:
        shared = [index for index in one if index in other]
        mine, theirs = self._keys(one, shared), self._keys(other, shared)
        if prod(self._extents[index] for index in shared) > MOST_EXTENT:  # number the keys that exist
            distinct, theirs = np.unique(theirs, return_inverse=True)
            places = np.searchsorted(distinct, mine)
            found = distinct[np.minimum(places, len(distinct) - 1)] == mine if len(distinct) else np.zeros(len(mine), bool)
            mine = np.where(found, places, len(distinct))
        each = np.bincount(theirs, minlength=int(mine.max(initial=0)) + 1)
        counts = each[mine]

        @cache
        def order() -> NDArray[np.int64]:
            return np.argsort(theirs, kind="stable")

        others = {index: lambda index=index: other[index][order()] for index in other if index not in one}
        return widened(one, counts, lambda: (np.cumsum(each) - each)[mine], others)

    def _distinct(self, table: Table, marks: Marks | None = None) -> Table:
        """Return the combinations of a table once, in order; all values of indices with marks are marked."""
        self._check_keys(table)
        return distinct(table, self._extents, {index: marked for index, marked in (marks or {}).items() if index in table})

    def _keys(self, table: Table, indices: list[str]) -> NDArray[np.int64]:
        """Return one number for the values of some indices in every row."""
        self._check_keys(indices)
        if not indices:
            return np.zeros(len(next(iter(table.values()))), np.int64)
        return numbers(table, indices, [self._extents[index] for index in indices])

    def _check_keys(self, indices: Iterable[str]) -> None:
        if prod(self._extents[index] for index in indices) >= 2**63:
            raise TooLarge

    def _marked(self, index: str, values: NDArray[np.int64]) -> NDArray[np.bool_]:
        marked = np.zeros(self._length(index), bool)
        marked[values] = True
        return marked

    def _length(self, index: str) -> int:
        if self._extents[index] > MOST_EXTENT:
            raise TooLarge
        return self._extents[index]


def _plain(operand: Tensor) -> Tensor:
    """Return an operand with plain levels in place of encoded ones."""
    if operand.format.plain is operand.format:
        return operand
    from ..storage.encoding import decoded  # imported here: it takes longer than joins of operands that need none of it

    return decoded(operand)


def _weights(values: NDArray[np.int64], wanted: int, extent: int) -> NDArray[np.float64]:
    """Return for how many of some values, the heaviest first, each of a sample counts; 0 for what is not in it."""
    heavy = wanted if wanted >= len(values) else min(HEAVIEST, wanted // 2)
    rest, places, weights = values[heavy:], wanted - heavy, np.zeros(extent)
    weights[values[:heavy]] = 1.0
    if len(rest):
        weights[rest[((np.arange(places) + 0.5) * len(rest) / places).astype(np.int64)]] = len(rest) / places
    return weights
