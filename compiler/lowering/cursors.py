"""Operands that are stepped through side by side: where each of them stands."""

from __future__ import annotations

from dataclasses import replace

from ..frozen import frozen
from ..ir.arithmetic import ONE, TRUE, compare, every
from ..ir.nodes import I64, Cast, Declare, If, SetVar, Step, Steps, Value, Var, While
from ..levels.level import Level
from ..notation.nodes import Access
from .context import Context
from .resolve import anchored, bounds, named, stepping_level
from .scope import Place, Scope, Window


@frozen
class Cursor:
    """A stepping operand in a while loop: its position variable, where it ends, and its coordinate in this iteration."""

    access: Access
    level: Level
    position: Var
    high: Value
    coordinate: Var | None = None
    segment: Var | None = None

    def place(self, scope: Scope) -> Place:
        """Return where the operand is with the position of this iteration."""
        return scope.place(self.access).deeper(self.position, self.segment)


def window_bounds(context: Context, scope: Scope, access: Access, level: Level, window: Window, steps: list[Step]) -> tuple[Value, Value]:
    """Return the positions of a level inside a window, found by search where the window cuts it."""
    name = f"{context.storage(access).name}{scope.place(access).depth + 1}"
    low, high = bounds(scope, access, level)
    last = None if window.high == context.size(level.index) else window.high
    return level.cut(low, high, window.low, last, lambda wish, value: named(context, f"{wish}_{name}", value, steps))


def skip_equal(level: Level, end: Var, high: Value, coordinate: Value) -> Step:
    """Advance ``end`` past the positions that hold the same coordinate."""
    same = every([compare("<", end, high), compare("==", level.coordinate(end), coordinate)])
    return While(same, Steps((SetVar(end, ONE, "+"),)))


def cursors_of(
    context: Context, scope: Scope, index: str, window: Window, operands: tuple[Access, ...], steps: list[Step]
) -> dict[Access, Cursor]:
    """Declare the position of every operand at its first coordinate in a window."""
    cursors = {}
    for access in operands:
        level = stepping_level(context, scope, access, index)
        assert level is not None
        level = anchored(context, level, steps)
        storage, depth = context.storage(access), scope.place(access).depth + 1
        low, high = window_bounds(context, scope, access, level, window, steps)
        high = named(context, f"end_{storage.name}{depth}", high, steps)
        position = Var(context.names.local(f"p_{storage.name}{depth}"), I64)
        steps.append(Declare(position, low))
        cursors[access] = Cursor(access, level, position, high)
    return cursors


def with_segment(context: Context, scope: Scope, cursor: Cursor, coordinate: Value, here: Value, steps: list[Step]) -> Cursor:
    """Declare where the positions with the present coordinate end, for levels that are not unique."""
    if cursor.level.unique:
        return cursor
    name = f"q_{context.storage(cursor.access).name}{scope.place(cursor.access).depth + 1}"
    end = Var(context.names.local(name), I64)
    steps.append(Declare(end, cursor.position))
    steps.append(If(here, skip_equal(cursor.level, end, cursor.high, coordinate)))
    return replace(cursor, segment=end)


def move_on(cursor: Cursor, here: Value) -> Step:
    """Go to the position after this iteration: past the present coordinate where it is the operand's own."""
    if cursor.segment is not None:
        return SetVar(cursor.position, cursor.segment)
    return SetVar(cursor.position, ONE if here == TRUE else Cast(here, I64), "+")
