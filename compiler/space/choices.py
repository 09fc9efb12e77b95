"""Sets of choices that are numbered, not listed: their count, the n-th choice, the number of a given choice."""

from __future__ import annotations

import math
import random
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from functools import cached_property
from math import prod

from ..frozen import frozen

_FEW = 64  # sets of up to so many values are searched for another value
_WITHIN = 0.7  # how often another value is taken from the same set, not from another one


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

    def drawn(self, source: random.Random) -> Hashable:
        """Return a value."""
        return self.at(source.randrange(self.count))

    def plainest(self, source: random.Random) -> Hashable:
        """Return a value that leaves every optional choice open."""
        return self.drawn(source)

    def near(self, value: Hashable, source: random.Random) -> Hashable:
        """Return another value that differs in one choice; the same where there is none."""
        while self.count > 1 and (other := self.drawn(source)) != value:
            return other
        return value


@frozen
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

    def drawn(self, source: random.Random) -> Hashable:
        """Return a value; of a range of numbers all magnitudes are equally likely, and powers of two most."""
        values = self.values
        if not isinstance(values, range) or self.count < 3:
            return super().drawn(source)
        low, high = max(1, values[0]), values[-1]
        power = 1 << int(math.log2(low) + source.random() * (math.log2(high) - math.log2(low)) + 0.5)
        return min(max(power, low), high)

    def near(self, value: Hashable, source: random.Random) -> Hashable:
        """Return another value; of a range of numbers mostly half or double."""
        values = self.values
        if isinstance(values, range) and isinstance(value, int):
            steps = [one for one in (value // 2, value * 2, value - 1, value + 1) if one in values]
            if steps:
                return source.choice(steps)
        others = [one for one in values if one != value] if self.count <= _FEW else [self.drawn(source)]
        return source.choice(others) if others else value


@frozen
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

    def drawn(self, source: random.Random) -> Hashable:
        return tuple(part.drawn(source) for part in self.parts)

    def plainest(self, source: random.Random) -> Hashable:
        return tuple(part.plainest(source) for part in self.parts)

    def near(self, value: Hashable, source: random.Random) -> Hashable:
        assert isinstance(value, tuple)
        several = [place for place, part in enumerate(self.parts) if part.count > 1]
        if not several:
            return value
        place = source.choice(several)
        return (*value[:place], self.parts[place].near(value[place], source), *value[place + 1 :])


@frozen
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

    def drawn(self, source: random.Random) -> Hashable:
        return source.choice([part for part in self.parts if part.count]).drawn(source)

    def plainest(self, source: random.Random) -> Hashable:
        """Return a value of the first set, which leaves the choice open."""
        return next(part for part in self.parts if part.count).plainest(source)

    def near(self, value: Hashable, source: random.Random) -> Hashable:
        own = next(part for part in self.parts if part.rank(value) is not None)
        others = [part for part in self.parts if part is not own and part.count]
        if own.count > 1 and (not others or source.random() < _WITHIN):
            return own.near(value, source)
        return source.choice(others).drawn(source) if others else value


NOTHING = OneOf((None,))
"""One choice: leaving it open."""


def perhaps(choice: Choice) -> Choice:
    """Return a set with None first, which leaves the choice open."""
    return Either((NOTHING, choice))
