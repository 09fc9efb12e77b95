"""Loops that merge several operands: while loops for the points of an iteration lattice, with two fingers or galloping.

Each loop runs until one of its operands is exhausted, and has a case for every smaller point (Kjolstad et al., "The tensor
algebra compiler", section 5.2).
"""

from __future__ import annotations

from dataclasses import replace

from ..concrete.lattice import Point, met, smallest
from ..concrete.loop_tag import LoopTag
from ..concrete.nodes import Stmt
from ..ir.arithmetic import TRUE, balanced, compare, every, maximum, minimum, subtract
from ..ir.nodes import BOOL, I64, Call, Declare, If, Step, Steps, Value, Var, While
from ..notation.nodes import Access
from .context import Context
from .cursors import Cursor, OffsetCursor, cursors_of, with_segment
from .origins import coordinates_of, originating
from .resolve import Body, named, settle
from .rooms import room
from .scope import Scope, Window

_INLINED = 16  # up to this many operands searches are inlined; with more they are calls, since compilers would take seconds
_SPELT_OUT = 4  # up to this many operands the condition that all have the coordinate is repeated; with more it is a variable


def merged(
    context: Context, scope: Scope, index: str, window: Window, statement: Stmt, tag: LoopTag, lattice: tuple[Point, ...], body: Body
) -> list[Step]:
    """Return while loops for the points of a lattice, the largest first."""
    operands = met(lattice)
    steps: list[Step] = []
    with context.names.block():
        cursors = cursors_of(context, scope, index, window, operands, steps)
        loops: list[Step] = []
        made, scope = _room(scope, statement, index, list(cursors.values()))
        for point in lattice:
            smaller = tuple(other for other in lattice if other <= point)
            with context.names.block():
                around = _point_loop(context, scope, index, statement, tag, cursors, operands, point, smaller, body)
                loops += originating(around, coordinates_of(index, smallest(smaller), cut=False))
    return [*steps, *made, *loops] if loops else []


def _room(scope: Scope, statement: Stmt, index: str, cursors: list[Cursor]) -> tuple[list[Step], Scope]:
    """Make room for all entries that the operands can give. For subsections that is not possible, since their number is not known."""
    if any(isinstance(cursor, OffsetCursor) for cursor in cursors):
        return [], scope
    return room(scope, statement, index, [(cursor.position, cursor.high) for cursor in cursors])


def _point_loop(
    context: Context, scope: Scope, index: str, statement: Stmt, tag: LoopTag, cursors: dict[Access, Cursor],
    operands: tuple[Access, ...], point: Point, smaller: tuple[Point, ...], body: Body,
) -> list[Step]:  # fmt: skip
    mine = [cursors[access] for access in operands if access in point]
    inside: list[Step] = []
    named_cursors = []
    for cursor in mine:
        name = index if len(mine) == 1 else f"{index}_{context.tensors.key(cursor.access)}"
        coordinate = Var(context.names.local(name), I64)
        inside.append(Declare(coordinate, cursor.level.coordinate(cursor.position)))
        named_cursors.append(replace(cursor, coordinate=coordinate))
    galloping = len(smaller) == 1 and len(mine) > 1 and tag.merge in (None, "gallop")
    if not galloping and _comparable(named_cursors, smaller):
        return _pair(context, scope, index, statement, inside, named_cursors, smaller, body)
    current, here = _coordinate(named_cursors[0]), dict[Access, Value]({mine[0].access: TRUE})
    if len(mine) > 1:
        current = Var(context.names.local(index), I64)
        inside.append(Declare(current, balanced([_coordinate(cursor) for cursor in named_cursors], maximum if galloping else minimum)))
        here = {cursor.access: compare("==", _coordinate(cursor), current) for cursor in named_cursors}
    segmented = [with_segment(context, scope, cursor, current, here[cursor.access], inside) for cursor in named_cursors]
    by_access = {cursor.access: cursor for cursor in segmented}
    known = scope.guarded().inside(index).know(index, current)
    branches = cases(context, known, statement, operands, smaller, by_access, here, body)
    if not branches:
        return []
    inside += branches
    met = every(list(here.values()))
    if galloping and len(mine) > _SPELT_OUT:
        inside.append(Declare(whether := Var(context.names.local("all"), BOOL), met))
        met = whether
    running = every([cursor.running for cursor in mine])
    if not galloping:
        steps = [cursor.move_on(here[cursor.access]) for cursor in segmented]
        return [While(running, Steps((*inside, *steps)))]
    before, strides = _strides(context, mine)
    search = "gallop" if len(mine) <= _INLINED else "far_gallop"
    steps = [cursor.leap(current, met, search, stride) for cursor, stride in zip(segmented, strides, strict=True)]
    return [Steps((*before, While(running, Steps((*inside, *steps)))))]


def _comparable(cursors: list[Cursor], smaller: tuple[Point, ...]) -> bool:
    """Whether two operands are merged of which at least one also counts alone, so that comparing their coordinates decides the case."""
    return len(cursors) == 2 and len(smaller) > 1 and all(cursor.level.unique for cursor in cursors)


def _pair(
    context: Context, scope: Scope, index: str, statement: Stmt, inside: list[Step], cursors: list[Cursor],
    smaller: tuple[Point, ...], body: Body,
) -> list[Step]:  # fmt: skip
    """Return the cases for two operands, at one coordinate or one before the other: two comparisons; each branch advances what it used."""
    branches = []
    for ahead in (cursors, cursors[:1], cursors[1:]):
        point = frozenset(cursor.access for cursor in ahead)
        known = scope.guarded().inside(index).know(index, _coordinate(ahead[0]))
        known = known.without(frozenset(cursor.access for cursor in cursors) - point)
        for cursor in ahead:
            known = known.found(cursor.access, cursor.place(known))
        with context.names.block():
            steps = settle(context, known, statement, body) if point in smaller else []
        branches.append((steps, [cursor.move_on(TRUE) for cursor in ahead]))
    if not any(steps for steps, _ in branches):
        return []
    both, left, right = (Steps((*steps, *moves)) for steps, moves in branches)
    first, second = map(_coordinate, cursors)
    chain = If(compare("==", first, second), both, If(compare("<", first, second), left, right))
    running = every([cursor.running for cursor in cursors])
    return [While(running, Steps((*inside, chain)))]


def _coordinate(cursor: Cursor) -> Var:
    assert cursor.coordinate is not None
    return cursor.coordinate


def cases(
    context: Context, scope: Scope, statement: Stmt, operands: tuple[Access, ...], smaller: tuple[Point, ...],
    cursors: dict[Access, Cursor], here: dict[Access, Value], body: Body,
) -> list[Step]:  # fmt: skip
    """Return an if for every point, larger points first. Operands outside the point are absent in its case."""
    branches: list[tuple[Value, list[Step]]] = []
    for point in smaller:
        inside = scope.without(frozenset(operands) - point)
        for access in operands:
            if access in point:
                inside = inside.found(access, cursors[access].place(inside))
        with context.names.block():
            steps = settle(context, inside, statement, body)
        branches.append((every([here[access] for access in operands if access in point]), steps))
    if not any(steps for _, steps in branches):
        return []
    if len(branches) == 1 and len(cursors) == 1:
        return branches[0][1]
    chain: Step | None = None
    for condition, steps in reversed(branches):
        chain = If(condition, Steps(tuple(steps)), chain)
    return [chain] if chain is not None else []


def _strides(context: Context, cursors: list[Cursor]) -> tuple[list[Step], list[Var]]:
    """Return the first strides of galloping: how many coordinates each operand has for one of the shortest operand.

    Searching m coordinates among n then takes m * log2(n / m) comparisons and a few more for each, for any distribution.
    """
    steps: list[Step] = []
    lengths = [subtract(cursor.high, cursor.position) for cursor in cursors]
    shortest = named(context, "shortest", balanced(lengths, minimum), steps)
    strides = []
    for cursor, length in zip(cursors, lengths, strict=True):
        stride = Var(context.names.local(f"stride_{context.tensors.key(cursor.access)}"), I64)
        steps.append(Declare(stride, Call("gallop_stride", (length, shortest), I64)))
        strides.append(stride)
    return steps, strides
