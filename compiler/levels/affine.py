"""Levels of views: how a tensor looks along each index of an affine subscript (Liu et al., "Compiler support for sparse tensor
convolutions", section 4: the unresolved terms of a level, reducing and resolving edges).

An access ``B(2*i + j - 1)`` is read as an access to a tensor of two modes, i and j. The last index of the subscript that gets a value
determines the stored coordinate. The other indices have ``Part`` levels: their position is that of the parent. The last index has a
``Resolving`` level: it steps through, or finds, the stored coordinates, minus the sum of the other terms. The relation of the subscript
(``concrete.relations.sum``) computes this sum, and one index from the others; levels know only what is stored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..errors import DataError
from ..frozen import frozen
from ..ir.arithmetic import ONE, TRUE, ZERO, add, compare, every, maximum, minimum, multiply, subtract
from ..ir.nodes import I64, Select, Type, Value
from .kind import LevelKind, Parts
from .level import CompoundSubscript, Keep, Level, Place
from .offset import OffsetLevel, modulo, passed, stride
from .traversal import Claimed


class Point(LevelKind):
    """A level with one entry for each parent, at coordinate 0. It stores nothing."""

    letters = "o"

    def types(self, width: Type) -> dict[str, Type]:
        return {}

    def positions(self, parts: Parts, parents: int, extent: int) -> int:
        return parents

    def check(self, claimed: Claimed) -> int:
        raise DataError("point levels are the compiler's own")

    def bounds(self, level: Level, parent: Value, end: Value | None) -> tuple[Value, Value]:
        return parent, add(parent, ONE)

    def begin(self, level: Level, parent: Value) -> Value:
        return parent

    def coordinate(self, level: Level, position: Value) -> Value:
        return ZERO

    def search(self, level: Level, low: Value, high: Value, coordinate: Value, function: str, *more: Value) -> Value:
        ahead = compare("<" if function == "upper_bound" else "<=", coordinate, ZERO)
        return Select(ahead, low, high, I64)

    def parent(self, level: Level, position: Value, parents: Value) -> Value:
        return position


POINT = Point("point")


class Part(LevelKind):
    """An index of a subscript before the last one that gets a value. All coordinates are present, at the position of the parent."""

    letters = "v"
    full = True
    steps = False
    merges = False
    located = True

    def __reduce__(self) -> tuple[Any, ...]:
        return Part, (str(self),)

    def types(self, width: Type) -> dict[str, Type]:
        return {}

    def seen(self, level: Level, subscript: Callable[[], CompoundSubscript]) -> Level:
        return PartLevel(self, level.index, level.extent)


PART = Part("part")


class Resolving(LevelKind):
    """The last index of a subscript that gets a value, and so resolves the subscript.

    Attributes:
        inner: the kind that stores the coordinates.
        coefficient: the coefficient of the index in the subscript.
        wraps: whether coordinates are taken modulo the extent.
        inside: whether the subscript stays inside the stored mode for all values of the indices.
        covers: whether some value of the index reaches every stored coordinate, whatever the values of the other indices.
        unique: whether ``inner`` stores a coordinate once below a parent.
    """

    def __new__(cls, inner: LevelKind, coefficient: int, wraps: bool, inside: bool, covers: bool, unique: bool) -> Resolving:
        flags = "".join(letter for letter, said in zip("wicu", (wraps, inside, covers, unique), strict=True) if said)
        return super().__new__(cls, f"{inner} [{coefficient}, {flags}]")

    def __init__(self, inner: LevelKind, coefficient: int, wraps: bool, inside: bool, covers: bool, unique: bool) -> None:
        self.inner, self.coefficient = inner, coefficient
        self.wraps, self.inside, self.covers, self.letters = wraps, inside or wraps, covers, inner.letters
        strided = abs(coefficient) != 1
        self.unique = unique
        self.full = inner.full and self.inside
        turns = inner.steps_in_order and coefficient > 0  # then a subscript that wraps is stepped through turn by turn
        self.steps = inner.steps and (turns or not wraps) and (unique or not strided)
        self.located = inner.located or (wraps and not self.steps)
        self.ordered = inner.ordered and (coefficient > 0 or inner is POINT)
        self.merges = inner.merges and self.steps and self.ordered and not strided
        self.holes = inner.holes or inner.full or strided or not inner.ordered
        self.relative, self.stride = inner.relative, inner.stride

    def __reduce__(self) -> tuple[Any, ...]:
        return Resolving, (self.inner, self.coefficient, self.wraps, self.inside, self.covers, self.unique)

    @property
    def unwrapped(self) -> Resolving:
        """The level for one turn of a subscript that wraps."""
        return Resolving(self.inner, self.coefficient, False, True, False, self.unique)

    def types(self, width: Type) -> dict[str, Type]:
        return self.inner.types(width)

    def seen(self, level: Level, subscript: Callable[[], CompoundSubscript]) -> Level:
        found = subscript()
        return AffineLevel(
            kind=self, index=level.index, extent=level.extent, unique=level.unique, arrays=level.arrays, length=level.length,
            inner=replace(level, kind=self.inner, extent=found.stored), subscript=found,
        )  # fmt: skip

    def filled(self, level: Level, low: Value, high: Value) -> Value:
        return high  # a window may end at a coordinate that is not stored

    def readable(self, level: Level, position: Value) -> Value:
        assert isinstance(level, AffineLevel)
        return self.inner.readable(level.inner, position)

    def within(self, level: Level, coordinate: Value) -> Value:
        """Return a safe coordinate: one read ahead may lie in another window."""
        return maximum(minimum(coordinate, subtract(level.extent, ONE)), ZERO)


@frozen
class PartLevel(Level):
    """A level that leaves a subscript open."""

    def descend(self, above: Place, coordinate: Callable[[str], Value]) -> Place:
        return passed(above)


@frozen(kw_only=True)
class AffineLevel(OffsetLevel):
    """A level that resolves a subscript."""

    @property
    def affine(self) -> Resolving:
        """The kind of the level, which knows how the subscript is resolved."""
        assert isinstance(self.kind, Resolving)
        return self.kind

    def stored(self, coordinate: Value) -> Value:
        """Return the stored coordinate for a value of the index."""
        return self._turned(self.known.reduced(coordinate, self.subscript.factor).base)

    def _turned(self, stored: Value) -> Value:
        return modulo(stored, self.inner.extent) if self.affine.wraps else stored

    def given(self, above: Place, coordinate: Callable[[str], Value]) -> Level:
        if above.turn is None:
            return super().given(above, coordinate)
        return replace(self, kind=self.affine.unwrapped, left=above.turn, stride=stride(above))

    def _safe(self, stored: Value) -> Value:
        """Return a stored coordinate, brought into the range for which an address can be computed."""
        if self.affine.inside:
            return stored
        return maximum(minimum(stored, subtract(self.inner.extent, ONE)), ZERO)

    def _is_stored(self, stored: Value) -> Value:
        if self.affine.inside:
            return TRUE
        return every([compare(">=", stored, ZERO), compare("<", stored, self.inner.extent)])

    def descend(self, above: Place, coordinate: Callable[[str], Value]) -> Place:
        stored = self._turned(self.subscript.whole(coordinate))
        return above.deeper(add(multiply(above.parent, self.inner.extent), stored))

    def cut(self, low: Value, high: Value, first: Value, last: Value | None, keep: Keep) -> tuple[Value, Value]:
        """Return the positions below a parent that may hold coordinates in [first, last)."""
        if not self.inner.kind.ordered or (first == ZERO and last is None and self.affine.covers):
            return low, high
        low, high = keep("first", low), keep("last", high)
        least, most = self.stored(first), self.stored(subtract(self.extent if last is None else last, ONE))
        if self.subscript.factor < 0:
            least, most = most, least
        begin = low if least == ZERO else keep("begin", self.sought(low, high, least))
        beyond = minimum(add(most, ONE), self.inner.extent)
        return begin, keep("end", self.inner.search(begin, high, beyond, "gallop", ONE))  # a subsection is short

    def coordinate(self, position: Value) -> Value:
        return self.known.resolved(self.inner.coordinate(position), self.subscript.factor)

    def search(self, low: Value, high: Value, coordinate: Value, function: str = "lower_bound", *more: Value) -> Value:
        return self.inner.search(low, high, self.stored(coordinate), function, *more)

    def locate(self, low: Value, high: Value, coordinate: Value) -> Value:
        return self.inner.locate(low, high, self._safe(self.stored(coordinate)))

    def hit(self, position: Value, low: Value, high: Value, coordinate: Value) -> Value:
        stored = self.stored(coordinate)
        if self.inner.kind.full:
            return self._is_stored(stored)
        found = self.inner.hit(position, low, high, self._safe(stored))
        return found if self.affine.inside else every([self._is_stored(stored), found])

    def occupied(self, position: Value, coordinate: Value) -> Value | None:
        conditions = []
        if abs(self.subscript.factor) != 1 or not self.inner.kind.ordered:
            conditions.append(compare("==", self.stored(coordinate), self.inner.coordinate(position)))
        if not self.inner.kind.ordered:
            conditions += [compare(">=", coordinate, ZERO), compare("<", coordinate, self.extent)]
        inner = self.inner.occupied(position, self.inner.coordinate(position))
        if inner is not None:
            conditions.insert(0, inner)
        return every(conditions) if conditions else None

