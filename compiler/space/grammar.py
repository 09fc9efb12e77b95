"""Sets of trees given by rules: how many there are, the n-th one, the place of a given one, without listing them.

A symbol stands for a set of trees. It has alternatives; an alternative is a label, a number of free choices, and one symbol
for each subtree. The schedule space is such a grammar (DESIGN section 2): what may follow depends on what was
decided before only through the symbol, so counts are memoized by symbol.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import product
from math import prod
from typing import Any, Generic, TypeVar

from ..frozen import frozen

Item = TypeVar("Item")
Symbol = TypeVar("Symbol", bound=Hashable)
Part = TypeVar("Part", bound=Hashable, covariant=True)


@frozen
class Alternative(Generic[Part]):
    """One way to continue from a symbol.

    Attributes:
        label: what is decided here; distinct among the alternatives of one symbol.
        parts: the symbols of the subtrees, decided independently of one another.
        ways: how many choices are made here on which nothing else depends.
    """

    label: Hashable
    parts: tuple[Part, ...] = ()
    ways: int = 1


@frozen
class Derivation:
    """A tree of the set: the alternative taken, its free choice as a number below ``ways``, its subtrees."""

    label: Hashable
    choices: int
    parts: tuple[Derivation, ...]


@frozen
class Sorts(Generic[Part]):
    """Symbols that are known to have equally many trees before any are counted.

    Attributes:
        alike: a key; symbols with the same key have equally many trees.
        representatives: of the alternatives of a symbol, each with the number of those for which it stands, itself included:
            all of these lead to equally many trees.
    """

    alike: Callable[[Any], Hashable]
    representatives: Callable[[Any], Iterable[tuple[Alternative[Part], int]]]


class Grammar(Generic[Symbol]):
    """A set of trees for every symbol.

    Args:
        alternatives: the alternatives of a symbol, in canonical order. No symbol may lead back to itself.
        sorts: of symbols, where many have equally many trees; None: they are counted one by one.
    """

    def __init__(self, alternatives: Callable[[Symbol], Sequence[Alternative[Symbol]]], sorts: Sorts[Symbol] | None = None) -> None:
        self._expand = alternatives
        self._sorts = sorts
        self._counts: dict[Hashable, int] = {}
        self._alternatives: dict[Symbol, tuple[tuple[Alternative[Symbol], int], ...]] = {}
        self._shapes: dict[Symbol, int] = {}

    def alternatives(self, symbol: Symbol) -> tuple[tuple[Alternative[Symbol], int], ...]:
        """Return the alternatives that lead to at least one tree, each with the number of its trees."""
        known = self._alternatives.get(symbol)
        if known is None:
            counted = ((option, prod(map(self.count, option.parts)) * option.ways) for option in self._expand(symbol))
            known = self._alternatives[symbol] = tuple((option, count) for option, count in counted if count)
        return known

    def count(self, symbol: Symbol) -> int:
        """Return the number of trees."""
        if self._sorts is None:
            return sum(count for _, count in self.alternatives(symbol))
        key = self._sorts.alike(symbol)
        known = self._counts.get(key)
        if known is None:
            found = self._sorts.representatives(symbol)
            known = self._counts[key] = sum(prod(map(self.count, option.parts)) * option.ways * times for option, times in found)
        return known

    def shapes(self, symbol: Symbol) -> int:
        """Return the number of trees that differ in more than free choices."""
        known = self._shapes.get(symbol)
        if known is None:
            options = (option for option, _ in self.alternatives(symbol))
            known = self._shapes[symbol] = sum(prod(map(self.shapes, option.parts)) for option in options)
        return known

    def derivation(self, symbol: Symbol, rank: int) -> Derivation:
        """Return the tree at a place of the canonical order. Raises IndexError outside ``0 <= rank < count``."""
        if rank < 0:
            raise IndexError(rank)
        for option, count in self.alternatives(symbol):
            if rank >= count:
                rank -= count
                continue
            rank, choices = divmod(rank, option.ways)
            parts = []
            for part in reversed(option.parts):
                rank, place = divmod(rank, self.count(part))
                parts.append(self.derivation(part, place))
            return Derivation(option.label, choices, tuple(reversed(parts)))
        raise IndexError(rank)

    def rank(self, symbol: Symbol, derivation: Derivation) -> int | None:
        """Return the place of a tree in the canonical order, or None if it is not in the set."""
        before = 0
        for option, count in self.alternatives(symbol):
            if option.label != derivation.label:
                before += count
                continue
            if len(option.parts) != len(derivation.parts) or not 0 <= derivation.choices < option.ways:
                return None
            place = 0
            for part, tree in zip(option.parts, derivation.parts, strict=True):
                inner = self.rank(part, tree)
                if inner is None:
                    return None
                place = place * self.count(part) + inner
            return before + place * option.ways + derivation.choices
        return None

    def derivations(self, symbol: Symbol) -> Iterator[Derivation]:
        """Yield every tree once, in canonical order."""
        for option, _ in self.alternatives(symbol):
            for parts in self._products(option.parts):
                for choices in range(option.ways):
                    yield Derivation(option.label, choices, parts)

    def _products(self, parts: tuple[Symbol, ...]) -> Iterator[tuple[Derivation, ...]]:
        if len(parts) <= 1:
            yield from ((tree,) for part in parts for tree in self.derivations(part)) if parts else ((),)
            return
        for first in self.derivations(parts[0]):
            for rest in self._products(parts[1:]):
                yield (first, *rest)


def subsets(items: Sequence[Item]) -> Iterator[tuple[Item, ...]]:
    """Yield every subset, in the order of binary numbers with the first item as the lowest digit."""
    for flags in product((False, True), repeat=len(items)):
        yield tuple(item for item, taken in zip(items, reversed(flags), strict=True) if taken)
