"""Loops over stored positions of one operand, through as many of its levels as were collapsed.

A window of positions that spans several levels becomes a nest over all of them, clipped at both ends: the first parent is found
by binary search once, later ones follow one another (coordinate tracking; Senanayake et al., section 5.1).
"""

from __future__ import annotations

from dataclasses import replace

from ..concrete.nodes import Forall, LoopTag, Stmt
from ..concrete.relations import Coord, Pos
from ..errors import ScheduleError
from ..format import LevelKind
from ..loops.nodes import I64, Declare, For, Select, Var
from ..loops.nodes import Block as Steps
from ..loops.nodes import Expr as Value
from ..loops.nodes import Stmt as Step
from ..notation.nodes import Access
from .arithmetic import ZERO, add, compare, integer, maximum, minimum, subtract
from .coiterate import iterate, loop_mode, position_loop
from .context import Context
from .levels import Level, Stored
from .resolve import Body, named, settle
from .scope import Scope, Window
from .windows import opened, opening, position_chain, root_of, window


def lower_positions(context: Context, scope: Scope, forall: Forall, relation: Pos, aliases: list[str]) -> list[Step]:
    """A loop over stored positions of one operand, through all levels that were collapsed into it."""
    access, chain = position_chain(context, relation)
    storage = context.storage(access)
    depth = scope.place(access).depth
    levels = storage.levels[depth : depth + len(chain)]
    if relation.position not in scope.windows:
        return _whole_positions(context, scope, forall, chain, aliases, access)
    own = scope.windows[relation.position]
    steps: list[Step] = []
    with context.names.block():
        low, high = (
            named(context, f"{relation.position}_begin", own.low, steps),
            named(context, f"{relation.position}_end", own.high, steps),
        )
        inside = replace(scope, revisited=scope.revisited or len(chain) > 1)
        inner = _clipped(context, inside, forall, chain, levels, access, storage, low, high, steps, aliases)
    return [*steps, *inner] if inner else []


def _whole_positions(
    context: Context, scope: Scope, forall: Forall, chain: tuple[str, ...], aliases: list[str], access: Access
) -> list[Step]:
    """Positions that are not cut: the plain nest over the collapsed indices, driven by the operand."""
    statement: Stmt = forall.body
    for index in reversed(chain[1:]):
        statement = Forall(index, statement)
    return _driven(context, scope, chain[0], statement, forall.tag, access, None, aliases if len(chain) == 1 else [])


def _driven(
    context: Context, scope: Scope, index: str, statement: Stmt, tag: LoopTag, access: Access, clip: tuple[Value, Value] | None,
    aliases: list[str],
) -> list[Step]:  # fmt: skip
    """Iterate one level of the operand whose positions are counted; all others are located."""
    storage = context.storage(access)
    above = scope.place(access)
    level = storage.levels[above.depth]

    def body(inside: Scope) -> list[Step]:
        for alias in aliases:
            inside = inside.know(alias, inside.place(access).positions[-1])
        return opened(context, inside, statement, index)

    if level.kind is LevelKind.DENSE:
        low, high = clip if clip is not None else (ZERO, level.extent)
        return _dense_rows(context, scope, index, statement, tag, access, level, low, high, body)
    low, high = clip if clip is not None else level.bounds(above)
    return position_loop(context, scope, index, statement, tag, access, low, high, body)


def _dense_rows(
    context: Context,
    scope: Scope,
    index: str,
    statement: Stmt,
    tag: LoopTag,
    access: Access,
    level: Level,
    low: Value,
    high: Value,
    body: Body,
) -> list[Step]:
    """Coordinates [low, high) of a dense level: every position is its coordinate, counted from the parent's."""
    with context.names.block():
        variable = Var(context.names.local(index), I64)
        inside = settle(context, scope.know(index, variable).inside(index), statement, body)
    return [For(variable, low, high, Steps(tuple(inside)), loop_mode(tag))] if inside else []


def _clipped(
    context: Context, scope: Scope, forall: Forall, chain: tuple[str, ...], levels: tuple[Level, ...], access: Access, storage: Stored,
    low: Value, high: Value, before: list[Step], aliases: list[str],
) -> list[Step]:  # fmt: skip
    """Positions [low, high) of the last of several levels: a nest over all of them, cut at both ends.

    The first parent is found by binary search in the segments, later ones follow one another (coordinate tracking).
    """
    if len(levels) == 1:
        return _driven(context, scope, chain[0], forall.body, forall.tag, access, (low, high), aliases)
    *upper, last = levels
    if any(level.kind is not LevelKind.COMPRESSED or not level.unique for level in (last, *upper[1:])) or not upper[0].unique:
        raise ScheduleError(
            f"positions of {storage.name} cannot be cut through levels that are not dense or compressed; convert it to csr or csf first"
        )
    bounds = [(low, high)]
    for place in range(len(levels) - 1, 0, -1):
        depth = scope.place(access).depth + place
        level = levels[place]
        count = _level_length(context, storage, scope, access, depth)
        first = named(context, f"first_{storage.name}{depth}", _parent_of(level, count, bounds[0][0]), before)
        past = named(context, f"past_{storage.name}{depth}", _parent_past(level, count, bounds[0][1]), before)
        bounds.insert(0, (first, past))

    def nest(inside: Scope, place: int) -> list[Step]:
        level_low, level_high = bounds[place]
        if place > 0:
            segment_low, segment_high = levels[place].bounds(inside.place(access))
            level_low, level_high = maximum(segment_low, level_low), minimum(segment_high, level_high)
        if place == len(levels) - 1:
            return _driven(context, inside, chain[place], forall.body, _inner_tag(forall.tag), access, (level_low, level_high), aliases)
        rest = forall.body
        for name in reversed(chain[place + 1 :]):
            rest = Forall(name, rest)
        return _row(context, inside, chain[place], rest, access, (level_low, level_high), lambda deeper: nest(deeper, place + 1))

    return nest(scope, 0)


def _inner_tag(tag: LoopTag) -> LoopTag:
    return replace(tag, unit=None if tag.unit == "cpu_thread" else tag.unit)


def _row(context: Context, scope: Scope, index: str, statement: Stmt, access: Access, clip: tuple[Value, Value], body: Body) -> list[Step]:
    storage = context.storage(access)
    level = storage.levels[scope.place(access).depth]
    if level.kind is LevelKind.DENSE:
        return _dense_rows(context, scope, index, statement, LoopTag(), access, level, clip[0], clip[1], body)
    return position_loop(context, scope, index, statement, LoopTag(), access, clip[0], clip[1], body)


def _level_length(context: Context, storage: Stored, scope: Scope, access: Access, depth: int) -> Value:
    """Return how many positions level ``depth - 1`` has."""
    above = storage.levels[depth - 1]
    if above.kind is LevelKind.DENSE and depth == 1:
        return above.extent
    return context.size_parameter((storage.name, "length", depth - 1), f"{storage.name}{depth}_length")


def _parent_of(level: Level, count: Value, position: Value) -> Value:
    """Return the parent whose segment holds a position: the last p with pos[p] <= position."""
    found = Level(level.kind, level.index, level.extent, crd=level.pos, crd_type=level.pos_type)
    return subtract(found.search(integer(1), add(count, integer(1)), position, "upper_bound"), integer(1))


def _parent_past(level: Level, count: Value, position: Value) -> Value:
    """Return the first parent whose segment begins at or behind a position."""
    found = Level(level.kind, level.index, level.extent, crd=level.pos, crd_type=level.pos_type)
    return found.search(ZERO, count, position, "lower_bound")


def lower_coordinates(context: Context, scope: Scope, forall: Forall, relation: Coord, aliases: list[str]) -> list[Step]:
    """Back to coordinates: the range between the coordinates at both ends of the window of positions."""
    source = context.graph.position_relation(relation.position)
    access, chain = position_chain(context, source)
    if len(chain) != 1:
        raise ScheduleError(
            f"coord({relation.position}, {relation.coordinate}): {source.access.tensor} is collapsed over {', '.join(chain)}; "
            "positions of one index only lead back to coordinates"
        )
    storage = context.storage(access)
    level = storage.levels[scope.place(access).depth]
    low, high = level.bounds(scope.place(access))
    own = window(context, scope, root_of(context, scope, relation.position))
    steps: list[Step] = []
    with context.names.block():
        first = Var(context.names.local(f"{relation.coordinate}_low"), I64)
        last = Var(context.names.local(f"{relation.coordinate}_high"), I64)
        steps += _coordinate_range(level, own, low, high, first, last, context.size(chain[0]))
        inside = scope.narrow(chain[0], Window(first, last))
        inner = iterate(
            context,
            inside,
            chain[0],
            Window(first, last),
            forall.body,
            forall.tag,
            opening(context, forall.body, chain[0], [*aliases, chain[0]]),
        )
    return [*steps, *inner] if inner else []


def _coordinate_range(level: Level, own: Window, low: Value, high: Value, first: Var, last: Var, size: Value) -> list[Step]:
    begins = compare("<=", own.low, low)
    ends = compare(">=", own.high, high)
    return [
        Declare(first, Select(begins, ZERO, level.coordinate(own.low), I64)),
        Declare(last, Select(ends, size, level.coordinate(own.high), I64)),
    ]
