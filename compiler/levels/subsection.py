"""Levels of subsections: the values of one index of a subscript for which some value of the open indices reaches a stored coordinate
(Liu et al., "Compiler support for sparse tensor convolutions", sections 3.1 and 5.2.1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..frozen import frozen
from ..ir.arithmetic import ONE, ZERO, add, ceiling_quotient, compare, integer, maximum, minimum, subtract
from ..ir.nodes import I64, Select, Type, Value
from .kind import LevelKind
from .level import CompoundSubscript, Level, Place
from .offset import OffsetLevel, modulo, passed


class Subsection(LevelKind):
    """An index of a subscript, above sorted coordinates, while other indices of the subscript have no values yet.

    Its coordinates are the offsets of the non-empty subsections (section 3.1): there the open indices reach something stored. Locating a
    coordinate always succeeds; below an empty subsection the next levels find nothing.

    Attributes:
        inner, coefficient, wraps: as in ``Resolving``.
        across: whether subscripts of levels above are open too, so that a subsection has many parents (case (c) of section 5.2.1).
    """

    passes = True
    located = True
    merges = False

    def __new__(cls, inner: LevelKind, coefficient: int, wraps: bool = False, across: bool = False) -> Subsection:
        flags = "".join(letter for letter, said in zip("wa", (wraps, across), strict=True) if said)
        return super().__new__(cls, f"{inner} [{coefficient}, {flags}]")

    def __init__(self, inner: LevelKind, coefficient: int, wraps: bool = False, across: bool = False) -> None:
        self.inner, self.coefficient = inner, coefficient
        self.letters, self.wraps, self.across = "v", wraps, across

    def __reduce__(self) -> tuple[Any, ...]:
        return Subsection, (self.inner, self.coefficient, self.wraps, self.across)

    def types(self, width: Type) -> dict[str, Type]:
        return self.inner.types(width)

    def seen(self, level: Level, subscript: Callable[[], CompoundSubscript]) -> Level:
        found = subscript()
        return SubsectionLevel(
            kind=self, index=level.index, extent=level.extent, arrays=level.arrays, length=level.length,
            inner=replace(level, kind=self.inner, extent=found.stored), subscript=found, wraps=self.wraps, across=self.across,
        )  # fmt: skip


@frozen(kw_only=True)
class SubsectionLevel(OffsetLevel):
    """A level of the offsets of non-empty subsections.

    Attributes:
        wraps: whether coordinates are taken modulo the extent. Then every subsection across the end of the mode counts as non-empty.
        across: see ``Subsection``.
    """

    wraps: bool = False
    across: bool = False

    def descend(self, above: Place, coordinate: Callable[[str], Value]) -> Place:
        return passed(above)

    def coordinate(self, position: Value) -> Value:
        """Return the coordinate at a position. Both are the offset that loops count."""
        return position

    def within(self, above: Place, first: Value) -> Place:
        """Return the place below a subsection whose first stored position is known."""
        return passed(above, None if self.wraps else first)

    def entered(self, first: Value, low: Value, high: Value, offset: Value) -> Value:
        """Return the first of the stored positions [low, high) that is in, or behind, the subsection at an offset.

        ``first`` is the result for the subsection before, where the search begins.
        """
        if self.wraps:
            return self.inner.search(low, high, self._least(offset))
        return self.inner.search(first, high, self._least(offset), "gallop", ONE)

    def sought_first(self, low: Value, high: Value, offset: Value) -> Value:
        """Return the same as ``entered``, for the first subsection that is entered."""
        return self.inner.search(low, high, self._least(offset)) if self.wraps else self.sought(low, high, self._least(offset))

    def following(self, first: Value, high: Value, offset: Value, end: Value) -> Value:
        """Return the first offset, from ``offset`` on, whose subsection contains one of the stored positions [first, high), or ``end``."""
        left, stored = compare("<", first, high), self.inner.coordinate(first)
        if not self.wraps:
            return Select(left, maximum(offset, self.known.first(stored, self.subscript.factor)), end, I64)
        begin, length = self._least(offset), self.reach
        ahead = subtract(subtract(Select(left, stored, self.inner.extent, I64), length), begin)
        return add(offset, ceiling_quotient(maximum(minimum(ahead, subtract(subtract(self.inner.extent, length), begin)), ZERO),
                                            integer(self.subscript.factor)))  # fmt: skip

    @property
    def reach(self) -> Value:
        """The distance from the first to the last coordinate of a subsection."""
        return self.known.reach

    def below_parent(self, above: Place) -> tuple[SubsectionLevel, Value, Value]:
        """Return the level for one of its many parents, and the range of positions below that parent."""
        return replace(self, inner=self.inner.below(above), stride=None), *self.inner.bounds(above)

    def _least(self, offset: Value) -> Value:
        """Return the least stored coordinate of the subsection at an offset."""
        least = self.known.reduced(offset, self.subscript.factor).least
        return modulo(least, self.inner.extent) if self.wraps else least
