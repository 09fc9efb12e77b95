"""Levels of views: what a tensor looks like along each index of an affine subscript (Liu et al., "Compiler support for sparse tensor
convolutions", section 4: the unresolved terms of a level, reducing and resolving edges).

An access ``B(2*i + j - 1)`` is read as one of a tensor of two modes, i and j. All indices of a subscript but the one that the loops know
last leave its coordinate open: a ``Part`` level stays where its parent is. The last one settles it: a ``Resolving`` level goes through, or
finds, what the level below it stores, whose coordinates are counted from what the others add up to. What the indices add up to, and how one
follows from the others, the relation of the subscript says (``concrete.relations.sum``); levels know what is stored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..errors import DataError
from ..frozen import frozen
from ..ir.arithmetic import (
    ONE,
    TRUE,
    ZERO,
    add,
    ceiling_quotient,
    compare,
    every,
    integer,
    maximum,
    minimum,
    multiply,
    remainder,
    subtract,
)
from ..ir.nodes import I64, Select, Type, Value
from .kind import LevelKind, Parts
from .level import Begins, Keep, Level, Place, Subscript, Unresolved
from .traversal import Claimed

_FAR = 1 << 40
"""The first step of a search that is to be a binary one: no fibre is as long."""


class Point(LevelKind):
    """One entry a parent, at coordinate 0: nothing is stored."""

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
    """An index of a subscript whose other indices are not all known: every coordinate is there, at the position of the parent."""

    letters = "v"
    full = True
    steps = False
    merges = False
    located = True

    def __reduce__(self) -> tuple[Any, ...]:
        return Part, (str(self),)

    def types(self, width: Type) -> dict[str, Type]:
        return {}

    def seen(self, level: Level, subscript: Callable[[], Subscript]) -> Level:
        return PartLevel(self, level.index, level.extent)


PART = Part("part")


class Resolving(LevelKind):
    """The index that resolves a subscript, in which it has a coefficient, above a level of kind ``inner``.

    Attributes:
        inner: how the coordinates are stored.
        coefficient: of the index.
        wraps: whether coordinates are taken modulo the extent.
        inside: whether no values of the indices lead out of the range of what is stored.
        covers: whether every stored coordinate is at some value of the index, whatever the others are.
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
        turns = inner.steps_in_order and coefficient > 0  # then what wraps is stepped through turn by turn
        self.steps = inner.steps and (turns or not wraps) and (unique or not strided)
        self.located = inner.located or (wraps and not self.steps)
        self.ordered = inner.ordered and (coefficient > 0 or inner is POINT)
        self.merges = inner.merges and self.steps and self.ordered and not strided
        self.holes = inner.holes or inner.full or strided or not inner.ordered
        self.relative = inner.relative

    def __reduce__(self) -> tuple[Any, ...]:
        return Resolving, (self.inner, self.coefficient, self.wraps, self.inside, self.covers, self.unique)

    @property
    def unwrapped(self) -> Resolving:
        """The level within one turn of a subscript that wraps."""
        return Resolving(self.inner, self.coefficient, False, True, False, self.unique)

    def types(self, width: Type) -> dict[str, Type]:
        return self.inner.types(width)

    def seen(self, level: Level, subscript: Callable[[], Subscript]) -> Level:
        found = subscript()
        return AffineLevel(
            kind=self, index=level.index, extent=level.extent, unique=level.unique, arrays=level.arrays, length=level.length,
            inner=replace(level, kind=self.inner, extent=found.stored), subscript=found,
        )  # fmt: skip

    def filled(self, level: Level, low: Value, high: Value) -> Value:
        return high  # windows end where nothing is

    def within(self, level: Level, coordinate: Value) -> Value:
        """Coordinates further on may be those of another window."""
        return maximum(minimum(coordinate, subtract(level.extent, ONE)), ZERO)


class Subsection(LevelKind):
    """An index of a subscript that others are still missing from, above sorted coordinates.

    The coordinates are those at which the others find something stored: the offsets of the non-empty subsections (section 3.1). Looking
    one up passes, for the levels below find nothing where it is empty.

    Attributes:
        inner, coefficient, wraps: as of ``Resolving``.
        across: whether subscripts of levels above are open too, so that a subsection lies below many parents (case (c) of section 5.2.1).
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

    def seen(self, level: Level, subscript: Callable[[], Subscript]) -> Level:
        found = subscript()
        return SubsectionLevel(
            kind=self, index=level.index, extent=level.extent, arrays=level.arrays, length=level.length,
            inner=replace(level, kind=self.inner, extent=found.stored), subscript=found, wraps=self.wraps, across=self.across,
        )  # fmt: skip


@frozen
class PartLevel(Level):
    """A level that leaves a subscript open."""

    def descend(self, above: Place, coordinate: Callable[[str], Value]) -> Place:
        return passed(above)


def modulo(value: Value, extent: Value) -> Value:
    """Return a value as a coordinate that wraps."""
    extent = maximum(extent, ONE)
    return remainder(add(remainder(value, extent), extent), extent)


def passed(above: Place, first: Value | None = None) -> Place:
    """Return the place below a level that leaves a subscript open: where it was, or further on, at ``first``."""
    return Place((*above.positions, above.parent), above.end, above.first if first is None else first, begins=above.begins)


def _begins(above: Place) -> Begins | None:
    """Return where subsections of the level below a place begin, as far as loops outside know."""
    return above.begins if above.begins is not None and above.begins.depth == above.depth else None


def _stride(above: Place) -> Value | None:
    begins = _begins(above)
    if above.first is not None or begins is None:
        return None if above.first is None else ONE
    return Select(begins.known, ONE, integer(_FAR), I64)


@frozen(kw_only=True)
class OffsetLevel(Level):
    """A level whose coordinates are counted from what the other indices of a subscript add up to.

    Attributes:
        inner: the level as it is stored; its extent is that of the stored mode.
        subscript: how the coordinates that are stored follow from the indices.
        left: what is left of it here beside the index of the level; None where the indices above are not known.
        stride: the first step of a search from where loops outside have got to among the positions; None where they have not looked.
    """

    inner: Level
    subscript: Subscript
    left: Unresolved | None = None
    stride: Value | None = None

    def given(self, above: Place, coordinate: Callable[[str], Value]) -> Level:
        return replace(self, left=self.subscript.before(coordinate), stride=_stride(above))

    @property
    def known(self) -> Unresolved:
        """What is left of the subscript here; only below a place."""
        assert self.left is not None, f"the subscript of {self.index} has terms that are not known"
        return self.left

    def under(self, parent: Value, present: Value | None = None) -> Level:
        return replace(self, inner=self.inner.under(parent, present))

    def read_once(self, keep: Keep) -> Level:
        return replace(self, inner=self.inner.read_once(keep), left=self.known.kept(keep, self.index))

    def bounds(self, above: Place) -> tuple[Value, Value]:
        low, high = self.inner.bounds(above)
        if above.first is not None:
            return above.first, high
        begins = _begins(above)
        return low if begins is None else begins.below(above, low), high

    def sought(self, low: Value, high: Value, stored: Value) -> Value:
        """Return the first position from ``low`` on with a stored coordinate or a greater one; it is near where loops lead to it."""
        if self.stride is None:
            return self.inner.search(low, high, stored)
        return self.inner.search(low, high, stored, "gallop", self.stride)


@frozen(kw_only=True)
class SubsectionLevel(OffsetLevel):
    """A level of the offsets of non-empty subsections.

    Attributes:
        wraps: whether coordinates are taken modulo the extent; then every subsection across the ends counts as one that holds something.
        across: see ``Subsection``.
    """

    wraps: bool = False
    across: bool = False

    def descend(self, above: Place, coordinate: Callable[[str], Value]) -> Place:
        return passed(above)

    def coordinate(self, position: Value) -> Value:
        """Return the coordinate at a position of this level, which is what loops count: an offset."""
        return position

    def within(self, above: Place, first: Value) -> Place:
        """Return the place below a subsection whose first stored position is known."""
        return passed(above, None if self.wraps else first)

    def entered(self, first: Value, low: Value, high: Value, offset: Value) -> Value:
        """Return the first of the stored positions [low, high) that is in the subsection at an offset, or behind it.

        Earlier subsections began at ``first``.
        """
        if self.wraps:
            return self.inner.search(low, high, self._least(offset))
        return self.inner.search(first, high, self._least(offset), "gallop", ONE)

    def sought_first(self, low: Value, high: Value, offset: Value) -> Value:
        """Return what ``entered`` does where nothing was entered yet."""
        return self.inner.search(low, high, self._least(offset)) if self.wraps else self.sought(low, high, self._least(offset))

    def following(self, first: Value, high: Value, offset: Value, end: Value) -> Value:
        """Return the first offset from one on whose subsection reaches the stored positions [first, high); ``end`` where none are left."""
        left, stored = compare("<", first, high), self.inner.coordinate(first)
        if not self.wraps:
            return Select(left, maximum(offset, self.known.first(stored, self.subscript.factor)), end, I64)
        begin, length = self._least(offset), self.reach
        ahead = subtract(subtract(Select(left, stored, self.inner.extent, I64), length), begin)
        return add(offset, ceiling_quotient(maximum(minimum(ahead, subtract(subtract(self.inner.extent, length), begin)), ZERO),
                                            integer(self.subscript.factor)))  # fmt: skip

    @property
    def reach(self) -> Value:
        """How far a subsection reaches behind its first coordinate."""
        return self.known.reach

    def below_parent(self, above: Place) -> tuple[SubsectionLevel, Value, Value]:
        """Return the level as it is seen below one of its many parents, and the positions there."""
        return replace(self, inner=self.inner.below(above), stride=None), *self.inner.bounds(above)

    def _least(self, offset: Value) -> Value:
        """Return the least stored coordinate of the subsection at an offset."""
        least = self.known.reduced(offset, self.subscript.factor).least
        return modulo(least, self.inner.extent) if self.wraps else least


@frozen(kw_only=True)
class AffineLevel(OffsetLevel):
    """A level that resolves a subscript."""

    @property
    def affine(self) -> Resolving:
        assert isinstance(self.kind, Resolving)
        return self.kind

    def stored(self, coordinate: Value) -> Value:
        """Return the stored coordinate that a value of the index stands for."""
        return self._turned(self.known.reduced(coordinate, self.subscript.factor).base)

    def _turned(self, stored: Value) -> Value:
        return modulo(stored, self.inner.extent) if self.affine.wraps else stored

    def given(self, above: Place, coordinate: Callable[[str], Value]) -> Level:
        if above.turn is None:
            return super().given(above, coordinate)
        return replace(self, kind=self.affine.unwrapped, left=above.turn, stride=_stride(above))

    def _safe(self, stored: Value) -> Value:
        """Return a stored coordinate, or one that is no error to compute an address of."""
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
        """Return the positions that may hold coordinates in [first, last): a subsection of what is stored below a parent."""
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

