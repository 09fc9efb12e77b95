"""Sizes as polynomials with whole, nonnegative coefficients over extents and numbers of stored fibres."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from math import prod

from ...frozen import frozen

Monomial = tuple[str, ...]
"""A product of symbols, sorted; a power is a symbol several times."""


@frozen
class Posynomial:
    """A sum of monomials with their coefficients; larger degrees come first."""

    terms: tuple[tuple[Monomial, int], ...] = ()

    @staticmethod
    def of(terms: Iterable[tuple[Iterable[str], int]]) -> Posynomial:
        """Return the sum of monomials, equal ones put together."""
        found: Counter[Monomial] = Counter()
        for symbols, coefficient in terms:
            found[tuple(sorted(symbols))] += coefficient
        kept = ((monomial, count) for monomial, count in found.items() if count)
        return Posynomial(tuple(sorted(kept, key=lambda term: (-len(term[0]), term[0]))))

    def __add__(self, other: Posynomial) -> Posynomial:
        return Posynomial.of((*self.terms, *other.terms))

    def __mul__(self, other: Posynomial) -> Posynomial:
        return Posynomial.of(((*one, *two), first * second) for one, first in self.terms for two, second in other.terms)

    def scaled(self, factor: int) -> Posynomial:
        """Return the posynomial times a whole number."""
        return Posynomial.of((monomial, factor * coefficient) for monomial, coefficient in self.terms)

    def renamed(self, names: Mapping[str, str]) -> Posynomial:
        """Return the posynomial with other symbols."""
        return Posynomial.of(((names.get(symbol, symbol) for symbol in monomial), count) for monomial, count in self.terms)

    @property
    def parts(self) -> tuple[Posynomial, ...]:
        """Itself, as the only part of a ``Peak``."""
        return (self,)

    def is_within(self, other: Posynomial) -> bool:
        """Return whether another has every monomial at least as often."""
        counts = dict(other.terms)
        return all(counts.get(monomial, 0) >= count for monomial, count in self.terms)

    @property
    def symbols(self) -> frozenset[str]:
        """The symbols that occur: extents and numbers of stored fibres."""
        return frozenset(name for monomial, _ in self.terms for name in monomial)

    def at(self, values: Mapping[str, float]) -> float:
        """Return its value, where every symbol has one."""
        return sum(coefficient * prod(values[name] for name in monomial) for monomial, coefficient in self.terms)

    def __iter__(self) -> Iterator[tuple[Monomial, int]]:
        return iter(self.terms)

    def __str__(self) -> str:
        """Return a Python expression."""
        return " + ".join(map(_shown, self.terms)) or "0"


def _shown(term: tuple[Monomial, int]) -> str:
    monomial, coefficient = term
    powers = [name if count == 1 else f"{name}**{count}" for name, count in Counter(monomial).items()]
    return " * ".join([*([str(coefficient)] if coefficient != 1 or not powers else []), *powers])


@frozen
class Peak:
    """The largest of some posynomials, none of which is within another: what is held at one time, at most."""

    parts: tuple[Posynomial, ...] = (Posynomial(),)

    @staticmethod
    def of(parts: Iterable[Posynomial]) -> Peak:
        """Return the largest of some posynomials; those within another are dropped. Without any it is 0."""
        found = list(dict.fromkeys(parts))
        kept = [one for one in found if not any(one.is_within(other) for other in found if other != one)]
        return Peak(tuple(sorted(kept, key=lambda one: one.terms)) or (Posynomial(),))

    def __add__(self, other: Posynomial | Peak) -> Peak:
        return Peak.of(one + two for one in self.parts for two in other.parts)

    def renamed(self, names: Mapping[str, str]) -> Peak:
        """Return the same with other symbols."""
        return Peak.of(one.renamed(names) for one in self.parts)

    @property
    def symbols(self) -> frozenset[str]:
        """The symbols that occur in any part."""
        return frozenset().union(*(one.symbols for one in self.parts))

    def at(self, values: Mapping[str, float]) -> float:
        """Return its value, where every symbol has one."""
        return max(one.at(values) for one in self.parts)

    def __str__(self) -> str:
        """Return a Python expression."""
        return str(self.parts[0]) if len(self.parts) == 1 else f"max({', '.join(map(str, self.parts))})"


ONE = Posynomial((((), 1),))
