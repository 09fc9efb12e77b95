"""One level of a stored tensor in generated code: its arrays, and the code that its kind makes for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, TypeAlias

from ..frozen import frozen
from ..ir.arithmetic import ONE, ZERO, add, load_index, multiply, subtract
from ..ir.nodes import I64, ArrayRef, Load, Select, Type, Value, Var

if TYPE_CHECKING:
    from .kind import LevelKind


Keep: TypeAlias = Callable[[str, Value], Value]
"""Takes a name and a value, declares a variable of about that name for the value outside a loop, and returns the variable."""


NewVariable: TypeAlias = Callable[[str], Var]
"""Takes a name, and returns a new 64-bit variable with a unique name like it."""


@frozen
class Listed:
    """The entries of a level of a result, in the order of their coordinates, before they get their positions.

    Attributes:
        pos: the array that delimits the entries of each parent.
        parents: how many parents there are.
    """

    pos: str
    parents: Value

    def begin(self, parent: Value) -> Value:
        """Return the number of the first entry of a parent; for ``parents`` itself, the number of all entries."""
        return Load(self.pos, parent, I64)

    def count(self, parent: Value) -> Value:
        """Return how many entries a parent has."""
        return subtract(self.begin(add(parent, ONE)), self.begin(parent))


@frozen
class Begins:
    """An array of positions: how far the loops outside have come below each of many parents of a level.

    Attributes:
        array: the name of the array.
        origin: the parent to which the first element belongs.
        depth: the ``Place.depth`` of the parents.
        known: the condition that the array has been filled.
    """

    array: str
    origin: Value
    depth: int
    known: Value

    def below(self, above: Place, otherwise: Value) -> Value:
        """Return the position below a place, or ``otherwise`` where it is not known."""
        return Select(self.known, self.slot(above.parent), otherwise, I64)

    def slot(self, parent: Value) -> Load:
        """Return the element of a parent."""
        return Load(self.array, subtract(parent, self.origin), I64)


@frozen
class Place:
    """How far an access is resolved: the positions in its first levels.

    Attributes:
        end: if the last of these levels is not unique: the positions from the last one to ``end`` all hold the coordinate.
        first: a position of a level below that loops have reached; positions before it are done.
        turn: if loops stay within one turn of a subscript that wraps: the rest of the subscript there.
        begins: ``first`` for each of many parents, if levels between are still open.
    """

    positions: tuple[Value, ...] = ()
    end: Value | None = None
    first: Value | None = None
    turn: UnresolvedTerms | None = None
    begins: Begins | None = None

    @property
    def depth(self) -> int:
        return len(self.positions)

    @property
    def parent(self) -> Value:
        """The position below which the next level is read; 0 for the first level."""
        return self.positions[-1] if self.positions else ZERO

    def deeper(self, position: Value, end: Value | None = None) -> Place:
        """Return the place one level further down, at a position; ``end`` is that of ``Place``."""
        begins = self.begins if self.begins is not None and self.depth < self.begins.depth else None
        return Place((*self.positions, position), end, begins=begins)


@frozen
class LevelArray:
    """An array of a level: which part it is (``pos``, ``crd`` ...), its name in the kernel, the type of its elements."""

    part: str
    name: str
    type: Type


class UnresolvedTerms(Protocol):
    """The rest of a compound subscript after some of its indices have values (``concrete.relations.sum``)."""

    @property
    def base(self) -> Value:
        """What the constant and the indices with values add up to."""
        ...

    @property
    def least(self) -> Value:
        """The least coordinate that is still possible."""
        ...

    @property
    def most(self) -> Value:
        """The greatest coordinate that is still possible."""
        ...

    @property
    def reach(self) -> Value:
        """How far it is from the least possible coordinate to the greatest."""
        ...

    def reduced(self, value: Value, factor: int, /) -> UnresolvedTerms:
        """Return what is left once one more index, whose coefficient is ``factor``, has a value."""
        ...

    def at(self, value: Value, factor: int, coordinate: Value, /) -> UnresolvedTerms:
        """Return the same with the base for which a value of the last index, with coefficient ``factor``, means a coordinate."""
        ...

    def resolved(self, coordinate: Value, factor: int, /) -> Value:
        """Return the value of the last index, whose coefficient is ``factor``, at a coordinate."""
        ...

    def first(self, coordinate: Value, factor: int, /) -> Value:
        """Return the first value of an index, with a positive coefficient, at which the other indices reach a coordinate."""
        ...

    def kept(self, keep: Keep, name: str, /) -> UnresolvedTerms:
        """Return the same with its values kept in variables, which ``keep`` declares."""
        ...


class CompoundSubscript(Protocol):
    """A compound subscript, for the level of one of its indices.

    Attributes:
        factor: the coefficient of the index.
        stored: the extent of the mode that is stored.
    """

    @property
    def factor(self) -> int: ...
    @property
    def stored(self) -> Value: ...

    def before(self, value: Callable[[str], Value], /) -> UnresolvedTerms:
        """Return the rest of the subscript without this index, after the indices of earlier levels have values."""
        ...

    def whole(self, value: Callable[[str], Value], /) -> Value:
        """Return the coordinate, given the values of all indices."""
        ...

    def window(self, value: Callable[[str], Value | None], /) -> UnresolvedTerms:
        """Return the rest of the subscript; ``value`` gives None for indices without a value."""
        ...


@frozen
class Level:
    """One level of a stored tensor.

    Attributes:
        kind: what the level does with its arrays.
        index: the index whose coordinates it stores.
        extent: number of coordinates of that index.
        unique: whether a parent has each coordinate only once.
        arrays: the stored arrays.
        length: number of positions of the whole level, for levels with coordinates.
        origin: for kinds that compute coordinates from something of the parent's: its 64-bit value for the parent given to ``under``.
        shift: for kinds that do not store the data of a position at that position: the distance, for the parent given to ``under``.
    """

    kind: LevelKind
    index: str
    extent: Value
    unique: bool = True
    arrays: tuple[LevelArray, ...] = ()
    length: Value = ZERO
    origin: Value | None = None
    shift: Value | None = None

    def array(self, part: str) -> LevelArray:
        """Return one of the arrays."""
        return next(array for array in self.arrays if array.part == part)

    def has(self, part: str) -> bool:
        """Return whether the level has an array for a part, such as ``crd``."""
        return any(array.part == part for array in self.arrays)

    def reference(self, part: str) -> ArrayRef:
        """Return an array as an argument of a function."""
        return ArrayRef(self.array(part).name, self.array(part).type)

    def load(self, part: str, at: Value) -> Value:
        """Return an element of an array, widened to 64 bits."""
        return load_index(self.array(part).name, at, self.array(part).type)

    def under(self, parent: Value, present: Value | None = None) -> Level:
        """Return the level for one parent. ``present`` is the condition that the parent exists; None: it does."""
        return self.kind.under(self, parent, present)

    def given(self, above: Place, coordinate: Callable[[str], Value]) -> Level:
        """Return the level below a place; ``coordinate`` gives the values of the indices of the levels above."""
        return self

    def read_once(self, keep: Keep) -> Level:
        """Return the level with its ``origin`` kept in a variable outside the loop that reads the coordinates."""
        origin = None if self.origin is None else keep(f"base_{self.index}", self.origin)
        return replace(self, origin=origin, shift=None if self.shift is None else keep(f"shift_{self.index}", self.shift))

    def descend(self, above: Place, coordinate: Callable[[str], Value]) -> Place:
        """Return the place below a full level, where ``coordinate`` gives the values of indices."""
        return above.deeper(add(multiply(above.parent, self.extent), coordinate(self.index)))

    def cut(self, low: Value, high: Value, first: Value, last: Value | None, keep: Keep) -> tuple[Value, Value]:
        """Return the range of positions in [low, high) with coordinates in [first, last). A bound that cuts nothing is not searched.

        Args:
            low, high: the positions below a parent.
            first, last: coordinates; ``last`` is None if the range goes up to the extent.
            keep: declares a variable for a value that is used several times.
        """
        if first != ZERO or last is not None:
            low, high = keep("first", low), keep("last", high)
        begin = low if first == ZERO else keep("begin", self.search(low, high, first))
        if last is None:
            return begin, self.kind.filled(self, begin, high)
        return begin, keep("end", self.search(begin, high, last))

    def below(self, above: Place) -> Level:
        """Return the level below a place."""
        return self.under(above.parent)

    @property
    def steps(self) -> bool:
        """Whether the level stores coordinates that can be stepped through."""
        return self.kind.steps

    def bounds(self, above: Place) -> tuple[Value, Value]:
        """Return the half-open range of positions below a place."""
        return self.kind.bounds(self, above.parent, above.end)

    def coordinate(self, position: Value) -> Value:
        """Return the coordinate at a position."""
        return self.kind.coordinate(self, position)

    def search(self, low: Value, high: Value, coordinate: Value, function: str = "lower_bound", *more: Value) -> Value:
        """Return the first position in [low, high) whose coordinate is at least the given one, or ``high``.

        ``more`` are further arguments of the function: the first step of ``gallop``.
        """
        return self.kind.search(self, low, high, coordinate, function, *more)

    def hit(self, position: Value, low: Value, high: Value, coordinate: Value) -> Value:
        """Return the condition that the position from ``locate`` holds the coordinate."""
        return self.kind.hit(self, position, low, high, coordinate)

    def locate(self, low: Value, high: Value, coordinate: Value) -> Value:
        """Return the position of a coordinate; ``hit`` tells whether the coordinate is stored there."""
        return self.kind.locate(self, low, high, coordinate)

    def occupied(self, position: Value, coordinate: Value) -> Value | None:
        """Return the condition that a position holds its coordinate; None where all do."""
        return self.kind.occupied(self, position, coordinate)


@frozen
class SteppedLevel(Level):
    """A dense level whose rows lie apart in memory, as those of a slice do: a row begins ``step`` items after the one before.

    Only places of given coordinates know that; where positions are counted through, rows follow each other
    (``lowering.rows_apart`` finds out).
    """

    step: Value = ONE

    def descend(self, above: Place, coordinate: Callable[[str], Value]) -> Place:
        return above.deeper(add(multiply(above.parent, self.step), coordinate(self.index)))


def index_array(part: str, name: str, kind: Type = I64) -> tuple[LevelArray, ...]:
    """Return the arrays of a level that has only one."""
    return (LevelArray(part, name, kind),)
