"""One loop over the union of several operands, for a body of several parts that each read few of them.

The cases of an iteration lattice grow exponentially, and with a body for each so does the code. If the body consists of
several parts, the loop runs while any operand has entries left, and a variable for every operand says whether it is stored;
each part tests the operands that it reads (``statements``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..concrete.lattice import Domain, least_points, met, stored_operands
from ..concrete.nodes import Stmt
from ..ir.arithmetic import balanced, compare, every, minimum, some
from ..ir.nodes import BOOL, I64, Declare, Select, Step, Steps, Value, Var, While
from ..notation.nodes import Access
from .context import Context
from .cursors import Cursor, cursors_of, with_segment
from .resolve import Body, settle
from .scope import Scope, Window


def united(
    context: Context, scope: Scope, index: str, window: Window, statement: Stmt, found: Domain, body: Body
) -> list[Step]:
    """Return the loop over all coordinates at which some point of a domain's lattice is present."""
    steps: list[Step] = []
    with context.names.block():
        cursors = cursors_of(context, scope, index, window, met([frozenset(stored_operands(found))]), steps)
        with context.names.block():
            before: list[Step] = []
            named = [_with_coordinate(context, cursor, index, before) for cursor in cursors.values()]
            current = Var(context.names.local(index), I64)
            before.append(Declare(current, balanced([_coordinate(cursor) for cursor in named], minimum)))
            present: dict[Access, Var] = {}
            for cursor in named:
                present[cursor.access] = Var(context.names.local(f"in_{context.tensors.key(cursor.access)}"), BOOL)
                before.append(Declare(present[cursor.access], compare("==", _coordinate(cursor), current)))
            ready = [with_segment(context, scope, cursor, current, present[cursor.access], before) for cursor in named]
            inner = undecided(context, scope.guarded().inside(index).know(index, current), statement, ready, present, body)
            after = [cursor.move_on(present[cursor.access]) for cursor in ready]
    return [*steps, While(_running(found, cursors), Steps((*before, *inner, *after)))] if inner else []


def undecided(
    context: Context, scope: Scope, statement: Stmt, cursors: list[Cursor], present: Mapping[Access, Var], body: Body
) -> list[Step]:
    """Return one body, in which operands are stored if their variables are true."""
    for cursor in cursors:
        scope = scope.doubt(cursor.access, cursor.place(scope), present[cursor.access])
    return settle(context, scope, statement, body)


def _with_coordinate(context: Context, cursor: Cursor, index: str, steps: list[Step]) -> Cursor:
    """Declare the current coordinate of an operand; past its end it is the extent, which is no coordinate."""
    coordinate = Var(context.names.local(f"{index}_{context.tensors.key(cursor.access)}"), I64)
    past = context.size(cursor.level.index)
    steps.append(Declare(coordinate, Select(cursor.running, cursor.level.coordinate(cursor.position), past, I64)))
    return replace(cursor, coordinate=coordinate)


def _coordinate(cursor: Cursor) -> Var:
    assert cursor.coordinate is not None
    return cursor.coordinate


def _running(found: Domain, cursors: Mapping[Access, Cursor]) -> Value:
    """Return the condition that all operands of some point have entries left; only the smallest points matter."""
    left = {access: cursor.running for access, cursor in cursors.items()}
    return some([every([left[access] for access in cursors if access in point]) for point in least_points(found)])
