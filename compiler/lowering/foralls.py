"""Loops over original and derived indices: what each one iterates, and what becomes known in it.

The provenance of an index says which loop to make (Senanayake et al., section 5): the outer index of a split runs over tiles and
narrows the window of its parent; the inner one iterates the parent inside its tile; a position index iterates stored
entries; a collapsed one the nest of its parts, clipped at both ends of its window.
"""

from __future__ import annotations

from dataclasses import replace

from ..concrete.nodes import Forall, targets
from ..concrete.relations import Collapse, Coord, Pos, Split
from ..ir.arithmetic import ONE, ZERO, ceiling_quotient, maximum, minimum, multiply, quotient, subtract
from ..ir.nodes import Step
from ..notation.printer import show
from .coiterate import iterate
from .context import Context
from .origins import originating
from .positions import lower_coordinates, lower_positions
from .recovery import coordinate, extent_of
from .resolve import named
from .scope import Clip, Scope, Window
from .threads import dealt, inserted, inserts
from .tiles import lower_by_value, lower_strided, lower_tiles
from .windows import narrowed, opening, positions_of, window
from .workspaces import BitmapWorkspace, HashedWorkspace, ListWorkspace


def lower_forall(context: Context, scope: Scope, forall: Forall) -> list[Step]:
    """Return the loop of a forall, dealt out to threads where its tag says so."""
    if forall.tag.unit == "cpu_vector" and _adds_entries(context, forall):
        forall = replace(forall, tag=replace(forall.tag, unit=None))  # entries are counted one after another, not in lanes
    if inserts(context, scope, forall):
        return inserted(context, scope, forall, _loop)
    return dealt(context, scope, forall, _loop) if forall.tag.is_dealt else _loop(context, scope, forall)


def _adds_entries(context: Context, forall: Forall) -> bool:
    """Whether a loop puts entries into a list: of a workspace that keeps them, or of an assembled result."""
    held = (context.held.get(name) for name in targets(forall))
    lists = any(isinstance(found, (ListWorkspace, BitmapWorkspace, HashedWorkspace)) for found in held)
    return lists or (context.assembly is not None and context.result.tensor in targets(forall))


def _loop(context: Context, scope: Scope, forall: Forall) -> list[Step]:
    """Follow the provenance of an index up to what its loop iterates."""
    if forall.index in scope.clips:
        return _clipped(context, scope, forall, scope.clips[forall.index])
    index, aliases = forall.index, [forall.index]
    while True:
        relation = context.graph.maker(index)
        if relation is not None and relation.renames:
            index = relation.parents[0]
        elif isinstance(relation, Split) and index == relation.inner and relation.outer in scope.coordinates:
            index = relation.parent
        else:
            break
        aliases.append(index)
    match relation:
        case Split() if index == relation.outer and relation.inner not in scope.coordinates:
            return originating(lower_tiles(context, scope, forall, relation, aliases), f"tiles of {relation.parent}")
        case Split():
            return originating(lower_strided(context, scope, forall, relation, index, aliases), f"{index} of {relation.parent}")
        case Collapse() if context.graph.space(index) == "position":
            return lower_positions(context, scope, forall, positions_of(context, index), aliases)
        case Collapse():
            return lower_collapsed(context, scope, forall, relation, aliases)
        case Pos():
            origin = f"{relation.parent} stored in {show(relation.access)}"
            return originating(lower_positions(context, scope, forall, relation, aliases), origin)
        case Coord():
            return lower_coordinates(context, scope, forall, relation, aliases)
        case None:
            return _original(context, scope, forall, index, aliases)
        case _:
            return originating(lower_by_value(context, scope, forall, window(context, scope, index), aliases), str(relation))


def _original(context: Context, scope: Scope, forall: Forall, index: str, aliases: list[str]) -> list[Step]:
    body = opening(context, forall.body, index, aliases)
    return iterate(context, scope, index, window(context, scope, index), forall.body, forall.tag, body)


def lower_collapsed(context: Context, scope: Scope, forall: Forall, relation: Collapse, aliases: list[str]) -> list[Step]:
    """A collapsed coordinate loop: the nest of its parts, each clipped where the window cuts its first or last row."""
    outer_tag = replace(forall.tag, unit=forall.tag.unit if forall.tag.is_dealt else None, unroll=None)
    inner_tag = replace(forall.tag, unit=None, race=None, chunking=None, chunk=None, unroll=None)
    rows = Forall(relation.outer, Forall(relation.inner, forall.body, inner_tag), outer_tag)
    if relation.fused not in scope.windows:
        return _loop(context, scope, rows)
    own = window(context, scope, relation.fused)
    steps: list[Step] = []
    with context.names.block():
        extent = named(context, f"{relation.inner}_extent", maximum(extent_of(context, relation.inner), ONE), steps)
        low, high = named(context, f"{relation.fused}_low", own.low, steps), named(context, f"{relation.fused}_high", own.high, steps)
        inside = narrowed(context, scope, relation.outer, Window(quotient(low, extent), ceiling_quotient(high, extent)))
        inside = replace(inside.clip(relation.inner, Clip(relation.outer, low, high, extent)), revisited=True)
        inner = _loop(context, inside, rows)
    return [*steps, *inner] if inner else []


def _clipped(context: Context, scope: Scope, forall: Forall, clip: Clip) -> list[Step]:
    """One row of a collapsed loop that a tile cuts: the tile's first and last row are not whole."""
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
