"""Loops over one index: dense, over one operand, or over several that meet, as the iteration lattice says.

A lattice without stored operands is a loop over the range; one point with one operand is a loop over its positions; several
points become while loops, each until one of its operands is exhausted, with a case for every smaller point in it
(Kjolstad et al., "The tensor algebra compiler", section 5.2). Windows of tiles bound all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from ..concrete.nodes import LoopTag, Stmt, targets
from ..errors import ScheduleError
from ..format import LevelKind
from ..loops.nodes import BOOL, I64, Call, Declare, For, If, Select, SetVar, Unroll, Var, Vector, While
from ..loops.nodes import Block as Steps
from ..loops.nodes import Expr as Value
from ..loops.nodes import Stmt as Step
from ..notation.nodes import Access
from ..notation.printer import show
from .arithmetic import ONE, ZERO, add, compare, every, integer, maximum, minimum, subtract
from .context import Context
from .cursors import Cursor, cursors_of, next_position, skip_equal, window_bounds, with_segment
from .domain import NOWHERE, Domain, Point, met, points, stored, without
from .levels import Level
from .origins import coordinates_of, originating
from .prefetching import prefetches
from .resolve import Body, domain, has_parts, named, settle, stepping_level
from .scope import Scope, Window
from .unions import undecided, united


def iterate(context: Context, scope: Scope, index: str, window: Window, statement: Stmt, tag: LoopTag, body: Body) -> list[Step]:
    """Return the loops over the values of an original index in a window.

    ``body`` is called with a scope in which the index is known and every stepped operand is resolved one level deeper.
    """
    found = _ordered(context, scope, index, statement, domain(context, scope, statement, index))
    if found == NOWHERE:
        return []
    operands = stored(found)
    if tag.merge == "locate":
        operands = _led(context, scope, index, operands) if frozenset() not in points(found) else ()
    if tag.unit == "cpu_thread":
        operands = tuple(access for access in operands if _independent(context, scope, index, access))
    lattice = tuple(dict.fromkeys(point & frozenset(operands) for point in points(found)))
    if tag.unit == "cpu_thread" and len(operands) > 1:
        names = " and ".join(show(access) for access in operands)
        raise ScheduleError(
            f"parallelize({index}, cpu_thread): {names} are merged in this loop, so its iterations depend on one another; split it first"
        )
    steps = _strategy(context, scope, index, window, statement, tag, operands, lattice, body)
    cut = window.low != ZERO or window.high != context.size(index)
    return originating(steps, coordinates_of(index, lattice, cut))


def _strategy(
    context: Context, scope: Scope, index: str, window: Window, statement: Stmt, tag: LoopTag, operands: tuple[Access, ...],
    lattice: tuple[Point, ...], body: Body,
) -> list[Step]:  # fmt: skip
    """Return the loops of the kind that the lattice asks for."""
    if not operands or (frozenset() in lattice and tag.unit == "cpu_thread"):
        return _range_loop(context, scope, index, window, statement, tag, body)
    if len(lattice) > 1 and has_parts(statement) and frozenset() not in lattice:
        return united(context, scope, index, window, statement, lattice, body)
    if frozenset() in lattice:
        return _accompanied(context, scope, index, window, statement, operands, body)
    if len(operands) == 1:
        return _single(context, scope, index, window, statement, tag, operands[0], body)
    return _merged(context, scope, index, window, statement, tag, lattice, body)


def _independent(context: Context, scope: Scope, index: str, access: Access) -> bool:
    """Whether steps through an operand do not depend on one another; equal keys of a workspace have to be skipped."""
    level = stepping_level(context, scope, access, index)
    return level is not None and (level.unique or access.tensor not in context.workspaces)


def _led(context: Context, scope: Scope, index: str, operands: tuple[Access, ...]) -> tuple[Access, ...]:
    """Return the operand that is stepped through where all others are located: one that stores each coordinate once."""
    levels = ((access, stepping_level(context, scope, access, index)) for access in operands)
    return next(((access,) for access, level in levels if level is not None and level.unique), ())


def _ordered(context: Context, scope: Scope, index: str, statement: Stmt, found: Domain) -> Domain:
    """Return the domain without the operands whose coordinates come unsorted where sorted ones are needed: they are located.

    One that nothing else is merged with may be stepped through, unless the loop appends to a level of the result.
    """
    operands = stored(found)
    unsorted = [access for access in operands if _next_kind(context, scope, access) is LevelKind.HASHED]
    if not unsorted:
        return found
    appends = context.assembly is not None and context.assembly.stores(index) and context.result.tensor in targets(statement)
    if not appends and len(points(found)) == 1 and len(unsorted) == len(operands):
        return without(found, frozenset(unsorted[1:]))
    return without(found, frozenset(unsorted))


def _next_kind(context: Context, scope: Scope, access: Access) -> LevelKind:
    return context.storage(access).levels[scope.place(access).depth].kind


def loop_mode(tag: LoopTag) -> Vector | Unroll | None:
    """Return the tag of a loop that is not dealt out to threads."""
    if tag.unit == "cpu_vector":
        return Vector()
    return Unroll(tag.unroll) if tag.unroll else None


@contextmanager
def _room(context: Context, statement: Stmt, index: str, ranges: list[tuple[Value, Value]]) -> Iterator[list[Step]]:
    """Make room once for what a loop through these ranges can append; the steps yielded stand before the loop."""
    assembly = context.assembly
    if assembly is None or not assembly.appends_once(statement, index):
        yield []
        return
    count: Value = ZERO
    for low, high in ranges:
        count = add(count, subtract(high, low))
    assembly.reserved = True
    try:
        yield assembly.reserve(count)
    finally:
        assembly.reserved = False


def _range_loop(context: Context, scope: Scope, index: str, window: Window, statement: Stmt, tag: LoopTag, body: Body) -> list[Step]:
    with context.names.block(), _room(context, statement, index, [(window.low, window.high)]) as room:
        variable = Var(context.names.local(index), I64)
        early = prefetches(context, scope, index, statement, tag, lambda distance: add(variable, integer(distance)))
        inside = settle(context, scope.know(index, variable).inside(index), statement, body)
        inside = [*early, *inside] if inside else []
    return [*room, For(variable, window.low, window.high, Steps(tuple(inside)), loop_mode(tag))] if inside else []


def _single(
    context: Context, scope: Scope, index: str, window: Window, statement: Stmt, tag: LoopTag, access: Access, body: Body
) -> list[Step]:
    level = stepping_level(context, scope, access, index)
    assert level is not None
    steps: list[Step] = []
    with context.names.block():
        low, high = window_bounds(context, scope, access, level, window, steps)
        return steps + position_loop(context, scope, index, statement, tag, access, low, high, body)


def position_loop(
    context: Context, scope: Scope, index: str, statement: Stmt, tag: LoopTag, access: Access, low: Value, high: Value, body: Body
) -> list[Step]:
    """Return the loop over positions [low, high) of the next level of one operand."""
    storage = context.storage(access)
    above = scope.place(access)
    level = storage.levels[above.depth]
    wish = f"p_{storage.name}{above.depth + 1}"
    with context.names.block():
        position = Var(context.names.local(wish), I64)
        coordinate = Var(context.names.local(index), I64)
        steps: list[Step] = [Declare(coordinate, level.coordinate(position))]
        guarded = scope.stepping_shared() if access == context.shares else scope.guarded()
        inside = guarded.inside(index).know(index, coordinate)
        if level.unique:
            with _room(context, statement, index, [(low, high)]) as room:
                inner = settle(context, inside.found(access, above.deeper(position)), statement, body)
            if not inner:
                return []
            steps += _prefetched_rows(context, scope, index, statement, tag, access, level, position)
            if level.kind is LevelKind.HASHED:
                inner = [If(compare(">=", coordinate, ZERO), Steps(tuple(inner)))]
            return [*room, For(position, low, high, Steps((*steps, *inner)), loop_mode(tag))]
        high = named(context, f"end_{storage.name}{above.depth + 1}", high, before := [])
        end = Var(context.names.local(f"q_{storage.name}{above.depth + 1}"), I64)
        inner = settle(context, inside.found(access, above.deeper(position, end)), statement, body)
        skip = skip_equal(level, end, high, coordinate)
        whole = Steps((*steps, Declare(end, add(position, ONE)), skip, *inner, SetVar(position, end)))
        return [*before, Declare(position, low), While(compare("<", position, high), whole)] if inner else []


def _prefetched_rows(
    context: Context, scope: Scope, index: str, statement: Stmt, tag: LoopTag, access: Access, level: Level, position: Var
) -> list[Step]:
    """Prefetch by coordinates that stand further on in the level, also in the segments of later parents."""
    if not tag.prefetch:
        return []
    depth = scope.place(access).depth
    key = context.storage(access).name
    last = subtract(context.size_parameter((key, "length", depth), f"{key}{depth + 1}_length"), ONE)
    return prefetches(
        context, scope, index, statement, tag, lambda distance: level.coordinate(minimum(add(position, integer(distance)), last))
    )


def _accompanied(
    context: Context, scope: Scope, index: str, window: Window, statement: Stmt, operands: tuple[Access, ...], body: Body
) -> list[Step]:
    """A loop over the whole range, along which stored operands are stepped."""
    steps: list[Step] = []
    with context.names.block():
        cursors = cursors_of(context, scope, index, window, operands, steps)
        with context.names.block():
            variable = Var(context.names.local(index), I64)
            before: list[Step] = []
            present: dict[Access, Var] = {}
            for access, cursor in cursors.items():
                here = Var(context.names.local(f"in_{context.storage(access).name}"), BOOL)
                hit = every([compare("<", cursor.position, cursor.high), compare("==", cursor.level.coordinate(cursor.position), variable)])
                before.append(Declare(here, hit))
                present[access] = here
            cursors = {
                access: with_segment(context, scope, cursor, variable, present[access], before) for access, cursor in cursors.items()
            }
            inside = scope.know(index, variable).inside(index)
            if has_parts(statement):
                inner = undecided(context, inside, statement, list(cursors.values()), present, body)
            else:
                inner = _branches(context, inside, statement, list(cursors.values()), present, body)
            after = [SetVar(cursor.position, next_position(cursor, present[access])) for access, cursor in cursors.items()]
        if not inner:
            return []
        return [*steps, For(variable, window.low, window.high, Steps((*before, *inner, *after)))]


def _branches(context: Context, scope: Scope, statement: Stmt, cursors: list[Cursor], present: dict[Access, Var], body: Body) -> list[Step]:
    """Test the operands one after another, each present or absent."""
    if not cursors:
        return settle(context, scope, statement, body)
    cursor, *rest = cursors
    inside = scope.guarded()
    with context.names.block():
        then = _branches(context, inside.found(cursor.access, cursor.place(inside)), statement, rest, present, body)
    with context.names.block():
        otherwise = _branches(context, inside.without(frozenset({cursor.access})), statement, rest, present, body)
    if not then and not otherwise:
        return []
    return [If(present[cursor.access], Steps(tuple(then)), Steps(tuple(otherwise)) if otherwise else None)]


def _merged(
    context: Context, scope: Scope, index: str, window: Window, statement: Stmt, tag: LoopTag, lattice: tuple[Point, ...], body: Body
) -> list[Step]:
    """While loops for the points of a lattice, the largest first."""
    operands = met(lattice)
    steps: list[Step] = []
    with context.names.block():
        cursors = cursors_of(context, scope, index, window, operands, steps)
        loops: list[Step] = []
        with _room(context, statement, index, [(cursor.position, cursor.high) for cursor in cursors.values()]) as room:
            for point in lattice:
                smaller = tuple(other for other in lattice if other <= point)
                with context.names.block():
                    around = _point_loop(context, scope, index, statement, tag, cursors, operands, point, smaller, body)
                    loops += originating(around, coordinates_of(index, smaller, cut=False))
    return [*steps, *room, *loops] if loops else []


def _point_loop(
    context: Context, scope: Scope, index: str, statement: Stmt, tag: LoopTag, cursors: dict[Access, Cursor],
    operands: tuple[Access, ...], point: Point, smaller: tuple[Point, ...], body: Body,
) -> list[Step]:  # fmt: skip
    mine = [cursors[access] for access in operands if access in point]
    inside: list[Step] = []
    named_cursors = []
    for cursor in mine:
        coordinate = Var(context.names.local(f"{index}_{context.storage(cursor.access).name}"), I64)
        inside.append(Declare(coordinate, cursor.level.coordinate(cursor.position)))
        named_cursors.append(replace(cursor, coordinate=coordinate))
    galloping = len(smaller) == 1 and len(mine) > 1 and tag.merge in (None, "gallop")
    current = Var(context.names.local(index), I64)
    inside.append(Declare(current, _extreme(named_cursors, maximum if galloping else minimum)))
    here = {cursor.access: compare("==", _coordinate(cursor), current) for cursor in named_cursors}
    segmented = [with_segment(context, scope, cursor, current, here[cursor.access], inside) for cursor in named_cursors]
    by_access = {cursor.access: cursor for cursor in segmented}
    known = scope.guarded().inside(index).know(index, current)
    cases = _cases(context, known, statement, operands, smaller, by_access, here, body)
    if not cases:
        return []
    inside += cases
    met = every(list(here.values()))
    running = every([compare("<", cursor.position, cursor.high) for cursor in mine])
    if not galloping:
        steps = [SetVar(cursor.position, next_position(cursor, here[cursor.access])) for cursor in segmented]
        return [While(running, Steps((*inside, *steps)))]
    before, strides = _strides(context, mine)
    steps = [_leap(cursor, current, met, stride) for cursor, stride in zip(segmented, strides, strict=True)]
    return [Steps((*before, While(running, Steps((*inside, *steps)))))]


def _coordinate(cursor: Cursor) -> Var:
    assert cursor.coordinate is not None
    return cursor.coordinate


def _extreme(cursors: list[Cursor], choose: object) -> Value:
    value: Value = _coordinate(cursors[0])
    for cursor in cursors[1:]:
        value = choose(value, _coordinate(cursor))  # type: ignore[operator]  # minimum or maximum
    return value


def _cases(
    context: Context, scope: Scope, statement: Stmt, operands: tuple[Access, ...], smaller: tuple[Point, ...],
    cursors: dict[Access, Cursor], here: dict[Access, Value], body: Body,
) -> list[Step]:  # fmt: skip
    """An if for every point, larger ones first; operands outside the point hold nothing that matters there."""
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
    """Return the first steps of galloping, from how many coordinates each operand has for one of the shortest.

    Looking for m coordinates among n then takes m * log2(n / m) comparisons and a few more for each, whatever their distances.
    """
    steps: list[Step] = []
    lengths = [subtract(cursor.high, cursor.position) for cursor in cursors]
    shortest = lengths[0]
    for length in lengths[1:]:
        shortest = minimum(shortest, length)
    shortest = named(context, "shortest", shortest, steps)
    strides = []
    for cursor, length in zip(cursors, lengths, strict=True):
        stride = Var(context.names.local(f"stride_{context.storage(cursor.access).name}"), I64)
        steps.append(Declare(stride, Call("gallop_stride", (length, shortest), I64)))
        strides.append(stride)
    return steps, strides


def _leap(cursor: Cursor, current: Var, met: Value, stride: Var) -> Step:
    """Move on: past the present coordinate where all have met in it, else to it, which keeps those that have reached it."""
    past = cursor.segment if cursor.segment is not None else add(cursor.position, ONE)
    search = cursor.level.search(cursor.position, cursor.high, current, "gallop", stride)
    return SetVar(cursor.position, Select(met, past, search, I64))
