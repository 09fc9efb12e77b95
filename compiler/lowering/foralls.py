"""Loops over original and derived indices: over what each iterates, and which values follow.

The relation that made an index gives its loop a shape (``concrete.shapes``; Senanayake et al., section 5). Tiles narrow the window of the
index that they cut. An index inside a tile iterates over the parent's window. A position loop iterates over stored entries. A nest, for
collapsed indices, is clipped at both ends of its window.
"""

from __future__ import annotations

from dataclasses import replace

from ..concrete.nodes import Forall, targets
from ..concrete.shapes import Along, Between, Entries, Nest, Tiles
from ..ir.arithmetic import ONE, ZERO, ceiling_quotient, maximum, minimum, multiply, quotient, subtract
from ..ir.nodes import Step
from ..notation.printer import show
from ..workspaces import keeps_entries
from .accumulate import is_by_pairs, nested
from .blas import called
from .coiterate import iterate
from .context import Context
from .insertion import inserted, inserts
from .origins import originating
from .pieces import appended, appends
from .positions import lower_coordinates, lower_path, lower_positions
from .recovery import coordinate, extent_of
from .resolve import named
from .scope import Clip, Scope, Window
from .shared_insertion import shared, shares
from .threads import dealt
from .tiles import lower_by_value, lower_numbers, lower_tiles
from .windows import gone_through, narrowed, opening, window


def lower_forall(context: Context, scope: Scope, forall: Forall) -> list[Step]:
    """Return the loop of a forall, dealt out to threads if its tag says so."""
    if forall.tag.routine is not None:
        return called(context, scope, forall)
    if forall.tag.is_vector and _adds_entries(context, scope, forall):
        forall = replace(forall, tag=replace(forall.tag, unit=None))  # entries are counted one after another, not in lanes
    if inserts(context, scope, forall):
        return inserted(context, scope, forall, _loop)
    if appends(context, scope, forall):
        return appended(context, scope, forall, _loop)
    if shares(context, scope, forall):
        return shared(context, scope, forall, _loop)
    return dealt(context, scope, forall, _loop) if forall.tag.is_dealt else _loop(context, scope, forall)


def _adds_entries(context: Context, scope: Scope, forall: Forall) -> bool:
    """Whether a loop adds entries to a list: that of a workspace that keeps its entries, or of an assembled result."""
    lists = any(found is not None and keeps_entries(found.kind) for found in map(scope.held, targets(forall)))
    return lists or (context.assembly is not None and context.result.tensor in targets(forall))


def _loop(context: Context, scope: Scope, forall: Forall) -> list[Step]:
    """Return the loop over an index, of the shape that follows from its provenance."""
    if forall.index in scope.clips:
        return _clipped(context, scope, forall, scope.clips[forall.index])
    aliases = gone_through(context, scope, forall.index)
    index = aliases[-1]
    shape = context.graph.shape(index, scope.coordinates)
    match shape:
        case Tiles(parent, inner) if inner in scope.coordinates:
            return originating(lower_numbers(context, scope, forall, shape, aliases), f"{index} of {parent}")
        case Tiles(parent):
            return originating(lower_tiles(context, scope, forall, shape, aliases), f"tiles of {parent}")
        case Nest():
            return lower_nest(context, scope, forall, shape, aliases)
        case Entries(_, access, cut):
            steps = lower_positions(context, scope, forall, shape, aliases)
            return steps if cut is None else originating(steps, f"{cut} stored in {show(access)}")
        case Along():
            return originating(lower_path(context, scope, forall, shape, aliases), str(context.graph.made_by(index)))
        case Between():
            return lower_coordinates(context, scope, forall, shape, aliases)
        case None:
            return _original(context, scope, forall, index, aliases)
        case _:
            origin = str(context.graph.made_by(index))
            return originating(lower_by_value(context, scope, forall, window(context, scope, index), aliases), origin)


def _original(context: Context, scope: Scope, forall: Forall, index: str, aliases: list[str]) -> list[Step]:
    body = opening(context, forall.body, index, aliases)
    return iterate(context, scope, index, window(context, scope, index), forall.body, forall.tag, body)


def lower_nest(context: Context, scope: Scope, forall: Forall, nest: Nest, aliases: list[str]) -> list[Step]:
    """Return the loops of a collapsed index: a nest, clipped if the window cuts its first or last row.

    The loop over each row may stand in the body already, around a sum.
    """
    if is_by_pairs(context, forall, nest):
        origin = str(context.graph.made_by(nest.fused))
        steps = lower_by_value(context, scope, forall, window(context, scope, nest.fused), aliases, is_whole=True)
        return originating(steps, origin)
    rows = nested(forall, nest)
    if nest.fused not in scope.windows:
        return _loop(context, scope, rows)
    own = window(context, scope, nest.fused)
    steps: list[Step] = []
    with context.names.block():
        extent = named(context, f"{nest.inner}_extent", maximum(extent_of(context, nest.inner), ONE), steps)
        low, high = named(context, f"{nest.fused}_low", own.low, steps), named(context, f"{nest.fused}_high", own.high, steps)
        inside = narrowed(context, scope, nest.outer, Window(quotient(low, extent), ceiling_quotient(high, extent)))
        inside = inside.clip(nest.inner, Clip(nest.outer, low, high, extent))
        inner = _loop(context, inside, rows)
    return [*steps, *inner] if inner else []


def _clipped(context: Context, scope: Scope, forall: Forall, clip: Clip) -> list[Step]:
    """Return the loop over one row of a collapsed loop in a tile, whose first and last rows may be cut."""
    row_number = coordinate(context, scope, clip.outer)
    assert row_number is not None, f"{clip.outer} is not known in the row"
    row = multiply(row_number, clip.extent)
    steps: list[Step] = []
    with context.names.block():
        first = named(context, f"{forall.index}_low", maximum(subtract(clip.low, row), ZERO), steps)
        last = named(context, f"{forall.index}_high", minimum(subtract(clip.high, row), clip.extent), steps)
        inside = narrowed(context, scope.unclipped(forall.index), forall.index, Window(first, last))
        inner = _loop(context, inside, forall)
    return [*steps, *inner] if inner else []
