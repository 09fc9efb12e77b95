"""Cursors: the current positions of operands that are merged."""

from __future__ import annotations

from dataclasses import replace

from ..frozen import frozen
from ..ir.arithmetic import ONE, TRUE, add, compare, every, maximum
from ..ir.nodes import I64, Cast, Declare, If, Select, SetVar, Step, Steps, Value, Var, While
from ..levels.level import Level
from ..levels.offset import passed
from ..levels.subsection import SubsectionLevel
from ..notation.nodes import Access
from .across import Across, across
from .context import Context
from .resolve import anchored, bounds, is_located, named, stepping_level
from .scope import Place, Scope, Window


@frozen
class Cursor:
    """An operand in a merging loop: the variable of its position, its end, and its coordinate in this iteration."""

    access: Access
    level: Level
    position: Var
    high: Value
    coordinate: Var | None = None
    segment: Var | None = None

    def place(self, scope: Scope) -> Place:
        """Return the place of the operand at the position of this iteration."""
        return scope.place(self.access).deeper(self.position, self.segment)

    @property
    def running(self) -> Value:
        """Return the condition that the cursor has not reached its end."""
        return compare("<", self.position, self.high)

    def move_on(self, here: Value) -> Step:
        """Advance after this iteration: past the current coordinate if the operand has it (``here``)."""
        if self.segment is not None:
            return SetVar(self.position, self.segment)
        return SetVar(self.position, ONE if here == TRUE else Cast(here, I64), "+")

    def leap(self, current: Value, met: Value, search: str, stride: Value) -> Step:
        """Advance past the current coordinate if all operands have it (``met``), else up to it; operands that are there stay."""
        past = self.segment if self.segment is not None else add(self.position, ONE)
        found = self.level.search(self.position, self.high, current, search, stride)
        return SetVar(self.position, Select(met, past, found, I64))


@frozen(kw_only=True)
class OffsetCursor(Cursor):
    """An operand of which the non-empty subsections are stepped through; its position is the offset of a subsection.

    Attributes:
        level: the level of the offsets.
    """

    level: SubsectionLevel

    def move_on(self, here: Value) -> Step:
        onward = self.onward(add(self.position, ONE))
        return onward if here == TRUE else If(here, onward)

    def leap(self, current: Value, met: Value, search: str, stride: Value) -> Step:
        return self.onward(maximum(self.position, Select(met, add(current, ONE), current, I64)))

    def onward(self, offset: Value) -> Step:
        """Go to the first offset, from ``offset`` on, at which something is stored."""
        raise NotImplementedError


@frozen(kw_only=True)
class SubsectionCursor(OffsetCursor):
    """Subsections below one parent.

    Attributes:
        first: the position of the first coordinate in the subsection or behind it.
        low, last: the first position, and the end of positions.
    """

    first: Var
    low: Value
    last: Value

    def place(self, scope: Scope) -> Place:
        return self.level.within(scope.place(self.access), self.first)

    def onward(self, offset: Value) -> Step:
        entered = self.level.entered(self.first, self.low, self.last, self.position)
        following = self.level.following(self.first, self.last, self.position, self.high)
        return Steps((SetVar(self.position, offset), SetVar(self.first, entered), SetVar(self.position, following)))


@frozen(kw_only=True)
class AcrossCursor(OffsetCursor):
    """Subsections with many parents; ``Across`` knows where they begin below each parent."""

    parents: Across

    def place(self, scope: Scope) -> Place:
        return replace(passed(scope.place(self.access)), begins=None if self.level.wraps else self.parents.begins)

    def onward(self, offset: Value) -> Step:
        return self.parents.advance(self.position, offset, self.high, first=False)


def window_bounds(context: Context, scope: Scope, access: Access, level: Level, window: Window, steps: list[Step]) -> tuple[Value, Value]:
    """Return the positions of a level inside a window; a bound that cuts is found by search."""
    name = f"{context.tensors.key(access)}{scope.place(access).depth + 1}"
    low, high = bounds(scope, access, level)
    last = None if window.high == context.size(level.index) else window.high
    return level.cut(low, high, window.low, last, lambda wish, value: named(context, f"{wish}_{name}", value, steps))


def skip_equal(context: Context, scope: Scope, access: Access, level: Level, end: Var, high: Value, coordinate: Value) -> Step:
    """Advance ``end`` past the positions with the coordinate at which an access is in ``scope``; by search if no loop visits these
    positions."""
    if is_located(context, scope, access):
        return SetVar(end, level.search(end, high, add(coordinate, ONE), "gallop", ONE))
    same = every([compare("<", end, high), compare("==", level.coordinate(end), coordinate)])
    return While(same, Steps((SetVar(end, ONE, "+"),)))


def cursors_of(
    context: Context, scope: Scope, index: str, window: Window, operands: tuple[Access, ...], steps: list[Step]
) -> dict[Access, Cursor]:
    """Declare the position of every operand at its first coordinate in a window."""
    cursors = dict[Access, Cursor]()
    for access in operands:
        level = stepping_level(context, scope, access, index)
        assert level is not None
        level = anchored(context, level, steps)
        name = f"{context.tensors.key(access)}{scope.place(access).depth + 1}"
        if isinstance(level, SubsectionLevel):
            cursors[access] = offset_cursor(context, scope, index, window, access, level, f"offset_{name}", steps)
            continue
        low, high = window_bounds(context, scope, access, level, window, steps)
        high = named(context, f"end_{name}", high, steps)
        position = Var(context.names.local(f"p_{name}"), I64)
        steps.append(Declare(position, low))
        cursors[access] = Cursor(access, level, position, high)
    return cursors


def offset_cursor(
    context: Context, scope: Scope, index: str, window: Window, access: Access, level: SubsectionLevel, wish: str, steps: list[Step]
) -> OffsetCursor:
    """Declare the offset of the first non-empty subsection in a window, with a name like ``wish``, and the position where it begins.

    Liu et al., "Compiler support for sparse tensor convolutions", section 5.2: a subsection begins at an offset, and its length is the
    reach of the indices that get values later. The next subsection is at the least larger offset that reaches a stored coordinate.
    """
    if level.across:
        return _across_cursor(context, scope, window, access, level, wish, steps)
    name = f"{context.tensors.key(access)}{scope.place(access).depth + 1}"
    low, high = bounds(scope, access, level)
    low, last = named(context, f"first_{name}", low, steps), named(context, f"last_{name}", high, steps)
    end = named(context, f"{index}_end", window.high, steps)
    first, offset = Var(context.names.local(f"p_{name}"), I64), Var(context.names.local(wish), I64)
    steps.append(Declare(first, level.sought_first(low, last, window.low)))
    steps.append(Declare(offset, level.following(first, last, window.low, end)))
    return SubsectionCursor(access=access, level=level, position=offset, high=end, first=first, low=low, last=last)


def _across_cursor(
    context: Context, scope: Scope, window: Window, access: Access, level: SubsectionLevel, wish: str, steps: list[Step]
) -> AcrossCursor:
    """Declare the offset of the first subsection in a window that is non-empty below some parent."""
    end = named(context, f"{level.index}_end", window.high, steps)
    offset = Var(context.names.local(wish), I64)
    parents = across(context, scope, access, level, steps)
    steps += [Declare(offset, window.low), parents.advance(offset, window.low, end, first=True)]
    return AcrossCursor(access=access, level=level, position=offset, high=end, parents=parents)


def with_segment(context: Context, scope: Scope, cursor: Cursor, coordinate: Value, here: Value, steps: list[Step]) -> Cursor:
    """Declare the end of the positions with the current coordinate, for levels that are not unique."""
    if cursor.level.unique:
        return cursor
    name = f"q_{context.tensors.key(cursor.access)}{scope.place(cursor.access).depth + 1}"
    end = Var(context.names.local(name), I64)
    steps.append(Declare(end, cursor.position))
    ready = replace(cursor, segment=end)
    below = scope.at(cursor.access, ready.place(scope))
    steps.append(If(here, skip_equal(context, below, cursor.access, cursor.level, end, cursor.high, coordinate)))
    return ready
