"""Sets of choices that are numbered, not listed: how many there are, the n-th one, the number of a given one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod


class Choice(ABC):
    """A set in an order."""

    @cached_property
    @abstractmethod
    def count(self) -> int:
        """How many there are."""

    @abstractmethod
    def at(self, rank: int) -> Hashable:
        """Return the value of a number below ``count``."""

    @abstractmethod
    def rank(self, value: Hashable) -> int | None:
        """Return the number of a value, None where it is not in the set."""


@dataclass(frozen=True)
class OneOf(Choice):
    """Some values, each once; a ``range`` is not listed."""

    values: Sequence[Hashable]

    @cached_property
    def count(self) -> int:
        return len(self.values)

    def at(self, rank: int) -> Hashable:
        return self.values[rank]

    def rank(self, value: Hashable) -> int | None:
        return self.values.index(value) if value in self.values else None


@dataclass(frozen=True)
class All(Choice):
    """A tuple with a value of each of some sets."""

    parts: tuple[Choice, ...]

    @cached_property
    def count(self) -> int:
        return prod(part.count for part in self.parts)

    def at(self, rank: int) -> tuple[Hashable, ...]:
        found: list[Hashable] = []
        for part in reversed(self.parts):
            rank, place = divmod(rank, part.count)
            found.append(part.at(place))
        return tuple(reversed(found))

    def rank(self, value: Hashable) -> int | None:
        if not isinstance(value, tuple) or len(value) != len(self.parts):
            return None
        found = 0
        for part, one in zip(self.parts, value, strict=True):
            place = part.rank(one)
            if place is None:
                return None
            found = found * part.count + place
        return found


@dataclass(frozen=True)
class Either(Choice):
    """A value of one of some sets, none of which has a value of another."""

    parts: tuple[Choice, ...]

    @cached_property
    def count(self) -> int:
        return sum(part.count for part in self.parts)

    def at(self, rank: int) -> Hashable:
        for part in self.parts:
            if rank < part.count:
                return part.at(rank)
            rank -= part.count
        raise IndexError(rank)

    def rank(self, value: Hashable) -> int | None:
        before = 0
        for part in self.parts:
            place = part.rank(value)
            if place is not None:
                return before + place
            before += part.count
        return None


NOTHING = OneOf((None,))
"""One choice: that nothing is said."""


def perhaps(choice: Choice) -> Choice:
    """Return a set with None first, which is that nothing is said."""
    return Either((NOTHING, choice))
