"""Loops over stored positions of one operand, through as many of its levels as are collapsed.

A window of positions through several levels becomes a nest over all of them, clipped at both ends. The first parent is found
by one binary search, and later parents follow in order (coordinate tracking; Senanayake et al., section 5.1).
"""

from __future__ import annotations

from dataclasses import replace

from ..concrete.loop_tag import PLAIN, LoopTag
from ..concrete.nodes import Forall, Stmt
from ..concrete.shapes import Along, Between, Entries
from ..ir.arithmetic import ONE, ZERO, add, integer, maximum, minimum, multiply, subtract
from ..ir.nodes import I64, For, Step, Steps, Value, Var
from ..levels.level import Level
from ..notation.nodes import Access, accesses
from .accumulate import has_every_slot, is_one_by_one, through_levels
from .coiterate import iterate, loop_mode, position_loop
from .context import Context
from .known import coordinate_at, lower_known, parent_at
from .parents import are_nested, parents_of
from .paths import fibres_of
from .prefetching import prefetches
from .recovery import position_at
from .resolve import Body, named, settle
from .scope import Scope, Window
from .tracking import tracked
from .windows import entries_of, is_cut, opened, opening, position_chain, window, with_aliases


def lower_positions(context: Context, scope: Scope, forall: Forall, entries: Entries, aliases: list[str]) -> list[Step]:
    """Return a loop over stored positions of one operand, through all levels that are collapsed into it."""
    access, chain = position_chain(context, entries)
    storage = context.tensors.storage(scope, access)
    depth = scope.place(access).depth
    levels = storage.levels[depth : depth + len(chain)]
    if not is_cut(context, entries, scope.loops, scope.coordinates) and not is_one_by_one(context, forall, entries):
        if has_every_slot(context, forall, entries):
            return _each_row(context, scope, forall, chain, aliases, access)
        rest = through_levels(forall, chain)
        return _driven(context, scope, chain[0], rest, forall.tag, access, None, [] if len(chain) > 1 else aliases)
    own = window(context, scope, entries.variable)
    steps: list[Step] = []
    with context.names.block():
        low, high = (
            named(context, f"{entries.variable}_begin", own.low, steps),
            named(context, f"{entries.variable}_end", own.high, steps),
        )
        part = replace(own, low=low, high=high)
        inner = _clipped(context, scope, forall, chain, levels, access, part, steps, aliases)
    return [*steps, *inner] if inner else []


def _each_row(context: Context, scope: Scope, forall: Forall, chain: tuple[str, ...], aliases: list[str], access: Access) -> list[Step]:
    """Return the nest over the levels of an operand that drives it alone, for a statement with a slot for every position."""
    level = context.tensors.storage(scope, access).levels[scope.place(access).depth]
    index, below = chain[0], chain[1:]
    if not below:
        return _driven(context, scope, index, forall.body, _inner_tag(forall.tag), access, None, aliases)
    rest: Stmt = forall.body
    for name in reversed(below):
        rest = Forall(name, rest)
    clip = (ZERO, level.extent) if level.kind.full else level.bounds(scope.place(access))

    def body(inside: Scope) -> list[Step]:
        return opened(context, inside, rest, index, lambda deeper: _each_row(context, deeper, forall, below, aliases, access))

    return _row(context, scope, index, rest, access, clip, body, forall.tag)


def _driven(
    context: Context, scope: Scope, index: str, statement: Stmt, tag: LoopTag, access: Access, clip: tuple[Value, Value] | None,
    aliases: list[str],
) -> list[Step]:  # fmt: skip
    """Return the loop over one level of the operand whose positions are counted; all other operands are located."""
    storage = context.tensors.storage(scope, access)
    above = scope.place(access)
    level = storage.levels[above.depth]

    def body(inside: Scope) -> list[Step]:
        position = position_at(context, inside, access, above.depth + 1)
        assert position is not None
        inside = with_aliases(context, inside, aliases, position)
        return opened(context, inside, statement, index)

    if level.kind.full:
        first = multiply(above.positions[-1], level.extent) if above.positions else ZERO
        low, high = (subtract(clip[0], first), subtract(clip[1], first)) if clip is not None else (ZERO, level.extent)
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
    """Return the loop over coordinates [low, high) of a dense level, in which positions are coordinates plus the parent's offset."""
    with context.names.block():
        variable = Var(context.names.local(index), I64)
        above = scope.place(access)
        position = add(multiply(above.positions[-1], level.extent), variable) if above.positions else variable
        here = scope.know(index, variable).inside(index).at(access, above.deeper(position))
        inside = settle(context, here, statement, body)
    return [For(variable, low, high, Steps(tuple(inside)), loop_mode(tag))] if inside else []


def _clipped(
    context: Context, scope: Scope, forall: Forall, chain: tuple[str, ...], levels: tuple[Level, ...], access: Access, part: Window,
    before: list[Step], aliases: list[str],
) -> list[Step]:  # fmt: skip
    """Return the loops for a part of the positions of the last of several levels: a nest over all levels, cut at both ends.

    The first parent is found by binary search in the segments, unless it is known; later ones follow in order (coordinate tracking).
    """
    low, high = part.low, part.high
    if len(levels) == 1:
        return _driven(context, scope, chain[0], forall.body, forall.tag, access, (low, high), aliases)
    if not are_nested(levels) or _is_each_apart(forall, levels) or _needs_no_rows(context, scope, forall, access, chain):
        return _each_position(context, scope, forall, aliases, low, high)
    parents = parents_of(context, scope, aliases[-1], access, levels, part, before)

    def entries(inside: Scope, begin: Value, end: Value) -> list[Step]:
        return _driven(context, inside, chain[-1], forall.body, _inner_tag(forall.tag), access, (begin, end), aliases)

    def row(inside: Scope, place: int, clip: tuple[Value, Value], body: Body) -> list[Step]:
        rest = forall.body
        for name in reversed(chain[place + 1 :]):
            rest = Forall(name, rest)
        return _row(context, inside, chain[place], rest, access, clip, body)

    if context.on_gpu and aliases[-1] in scope.windows:  # else rows are whole
        return tracked(context, scope, access, levels, parents, row, entries)
    bounds = (*parents.levels, (low, high))

    def nest(inside: Scope, place: int) -> list[Step]:
        level_low, level_high = bounds[place]
        if place > 0:
            segment_low, segment_high = levels[place].bounds(inside.place(access))
            level_low, level_high = maximum(segment_low, level_low), minimum(segment_high, level_high)
        if place == len(levels) - 1:
            return entries(inside, level_low, level_high)
        return row(inside, place, (level_low, level_high), lambda deeper: nest(deeper, place + 1))

    return nest(scope, 0)


def _is_each_apart(forall: Forall, levels: tuple[Level, ...]) -> bool:
    """Whether single positions are dealt out to units of a GPU: with whole fibres, one unit would have all the work of a long one."""
    return forall.tag.is_on_gpu and len(levels) > 1


def _needs_no_rows(context: Context, scope: Scope, forall: Forall, access: Access, chain: tuple[str, ...]) -> bool:
    """Whether the statement of a loop on a GPU depends only on the last coordinate of a position, so that no loop over rows is needed."""
    if not (context.on_gpu and scope.parallel):
        return False
    read = (each for assign in forall.body.assignments for each in (assign.target, *accesses(assign.value)) if each != access)
    used = {index for each in read for index in each.indices if context.graph.space(index) != "position"}
    return not {original for index in used for original in context.graph.originals(index)}.intersection(chain[:-1])


def _each_position(context: Context, scope: Scope, forall: Forall, aliases: list[str], low: Value, high: Value) -> list[Step]:
    """Return the loop over positions [low, high) of levels that are not nested, as in COO: each position gives all coordinates."""
    with context.names.block():
        variable = Var(context.names.local(forall.index), I64)
        inside = with_aliases(context, scope.widen(aliases[-1]).inside(forall.index), aliases, variable)
        inner = lower_known(context, inside, ((aliases[-1], variable),), forall.body)
        access, chain = position_chain(context, entries_of(context, aliases[-1]))
        depth = scope.place(access).depth + len(chain) - 1
        level = context.tensors.storage(scope, access).levels[depth]

        def ahead(distance: int) -> Value:
            later = minimum(add(variable, integer(distance)), subtract(high, ONE))
            parent = parent_at(context, scope, access, depth, later) if level.kind.relative else ZERO
            return coordinate_at(level, later, parent, first=False)

        early = prefetches(context, scope, chain[-1], forall.body, forall.tag, ahead, (access, variable, len(chain)))
    return [For(variable, low, high, Steps((*early, *inner)), loop_mode(forall.tag))] if inner else []


def _inner_tag(tag: LoopTag) -> LoopTag:
    return replace(tag, unit=None if tag.is_dealt else tag.unit)


def _row(
    context: Context, scope: Scope, index: str, statement: Stmt, access: Access, clip: tuple[Value, Value], body: Body,
    tag: LoopTag = PLAIN,
) -> list[Step]:  # fmt: skip
    storage = context.tensors.storage(scope, access)
    level = storage.levels[scope.place(access).depth]
    if level.kind.full:
        above = scope.place(access)
        first = multiply(above.positions[-1], level.extent) if above.positions else ZERO
        low, high = subtract(clip[0], first), subtract(clip[1], first)
        return _dense_rows(context, scope, index, statement, tag, access, level, low, high, body)
    return position_loop(context, scope, index, statement, tag, access, clip[0], clip[1], body)


def lower_path(context: Context, scope: Scope, forall: Forall, along: Along, aliases: list[str]) -> list[Step]:
    """Return the loop over the entries of a merge path in its window."""
    path, entries = aliases[-1], entries_of(context, along.positions)
    through = [*aliases, along.positions]
    if path not in scope.windows:
        return lower_positions(context, scope, forall, entries, through)
    steps: list[Step] = []
    with context.names.block():
        own = window(context, scope, path)
        low, high = named(context, f"{path}_begin", own.low, steps), named(context, f"{path}_end", own.high, steps)
        part = replace(own, low=low, high=high)
        first, last = part.fibres or fibres_of(context, scope, path, along, part, steps)
        left = Window(subtract(low, first), subtract(high, last), fibres=(first, last))
        inner = lower_positions(context, scope.narrow(along.positions, left), forall, entries, through)
    return [*steps, *inner] if inner else []


def lower_coordinates(context: Context, scope: Scope, forall: Forall, between: Between, aliases: list[str]) -> list[Step]:
    """Return the loop over the coordinates between those at both ends of the window of positions."""
    (index,) = context.graph.originals(between.positions)
    own = window(context, scope, between.coordinate)
    steps: list[Step] = []
    with context.names.block():
        low = named(context, f"{between.coordinate}_low", own.low, steps)
        high = named(context, f"{between.coordinate}_high", own.high, steps)
        body = opening(context, forall.body, index, aliases)
        left = Window(low, high)
        inner = iterate(context, scope.narrow(index, left), index, left, forall.body, forall.tag, body)
    return [*steps, *inner] if inner else []
