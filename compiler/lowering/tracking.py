"""Loops over a share of stored positions on a GPU: a thread visits only parents that have entries in its share.

A loop from the first to the last parent would also visit those in between without entries: in a matrix with long runs of empty rows
these would take all the time of a thread whose share has 8 entries. Here galloping from the last parent finds the parent of the next
position, so that the time of a share is proportional to its entries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..ir.arithmetic import ONE, add, compare, every, maximum, minimum
from ..ir.nodes import I64, Declare, For, If, SetVar, Step, Steps, Value, Var, While
from ..ir.rewrite import flat
from ..levels.level import Level
from ..notation.nodes import Access
from .context import Context
from .parents import later_parent
from .resolve import Body
from .scope import Parents, Scope

Row = Callable[[Scope, int, tuple[Value, Value], Body], list[Step]]
"""Takes the place of an upper level among the levels, and one of its positions as a range, and returns the steps around lower levels."""
Entries = Callable[[Scope, Value, Value], list[Step]]


def tracked(
    context: Context, scope: Scope, access: Access, levels: tuple[Level, ...], parents: Parents, row: Row, entries: Entries
) -> list[Step]:
    """Return loops over the positions [parents.low, parents.high) of the last of nested levels, each level around the next.

    Every level has a cursor: that of the last level is the next position, those above are its parents.
    """
    name, above, last = context.tensors.storage(scope, access).name, scope.place(access).depth, len(levels) - 1
    firsts = tuple(first for first, _ in parents.levels)
    start = levels[last].bounds(scope.place(access).deeper(firsts[-1]))[0]  # not 0 if another library has entries before the first row
    begins = (*firsts, maximum(parents.low, start))
    cursors = [Var(context.names.local(f"at_{name}{above + place + 1}"), I64) for place in range(len(levels))]
    left = compare("<", cursors[last], parents.high)

    def left_out(place: int) -> Step:
        """Set the cursors below a position to the end of what is below it, unless they are there already."""
        cursor = cursors[place + 1]
        end = levels[place + 1].bounds(scope.place(access).deeper(cursors[place]))[1]
        if place + 1 == last:
            return SetVar(cursor, minimum(end, parents.high))
        deeper = [
            SetVar(below, level.bounds(scope.place(access).deeper(above))[0])
            for above, below, level in zip(cursors[place + 1 :], cursors[place + 2 :], levels[place + 2 :], strict=False)
        ]
        return If(compare("<", cursor, end), Steps((SetVar(cursor, end), *deeper)))

    def nest(inside: Scope, place: int) -> list[Step]:
        cursor = cursors[place]
        segment = levels[place].bounds(inside.place(access))[1] if place else None
        if place == last:
            assert segment is not None, "one level alone has no parents"
            end = Var(context.names.local(f"end_{name}{above + place + 1}"), I64)
            found = entries(inside, cursor, end)
            return [Declare(end, minimum(segment, parents.high)), *found, SetVar(cursor, end)] if found else []
        found = row(inside, place, (cursor, add(cursor, ONE)), lambda deeper: nest(deeper, place + 1))
        if not found:
            return []
        if not _surely_sets(found, cursors[last]):  # it sets the cursor only if another operand has the coordinate
            found = [*found, left_out(place)]
        count = context.tensors.level_length(scope, access, above + place + 1)
        later = SetVar(cursor, later_parent(levels[place + 1], cursors[place + 1], add(cursor, ONE), count))
        running = [left] if segment is None else [left, compare("<", cursor, segment)]
        return [While(every(running), Steps((*found, If(left, Steps((later,))))))]

    loops = nest(scope, 0)
    return [*(Declare(cursor, begin) for cursor, begin in zip(cursors, begins, strict=True)), *loops] if loops else []


def _surely_sets(steps: Iterable[Step], variable: Var) -> bool:
    """Whether statements certainly set a variable; loops count if they certainly run."""
    for step in flat(steps):
        match step:
            case SetVar(target) if target == variable:
                return True
            case While(body=body) if _surely_sets((body,), variable):
                return True
            case For(low=low, high=high, body=body) if high == add(low, ONE) and _surely_sets((body,), variable):
                return True
    return False
