"""Loops over original and derived indices: what each one iterates, and what becomes known in it.

The provenance of an index says which loop to make (Senanayake et al., section 5): the outer index of a split runs over tiles and
narrows the window of its parent; the inner one iterates the parent inside its tile; a position index iterates stored
entries; a collapsed one the nest of its parts, clipped at both ends of its window.
"""

from __future__ import annotations

from dataclasses import replace

from ..concrete.nodes import Forall, LoopTag
from ..concrete.relations import Bound, Collapse, Coord, Pos, Rename, Split
from ..errors import ScheduleError
from ..loops.nodes import Expr as Value
from ..loops.nodes import Stmt as Step
from ..notation.printer import show
from .arithmetic import ZERO, ceiling_quotient, maximum, minimum, multiply, quotient, subtract
from .coiterate import iterate
from .context import Context
from .origins import originating
from .positions import lower_coordinates, lower_positions
from .resolve import named
from .scope import Scope, Window
from .threads import inserted, inserts, threaded
from .tiles import lower_strided, lower_tiles
from .windows import opening, window


def lower_forall(context: Context, scope: Scope, forall: Forall) -> list[Step]:
    """Return the loop of a forall, dealt out to threads where its tag says so."""
    if forall.tag.unit in ("gpu_block", "gpu_warp", "gpu_thread"):
        raise ScheduleError(f"parallelize({forall.index}, {forall.tag.unit}): this unit is of the GPU, but the target is the CPU")
    if inserts(context, scope, forall):
        return inserted(context, scope, forall, _loop)
    return threaded(context, scope, forall, _loop) if forall.tag.unit == "cpu_thread" else _loop(context, scope, forall)


def _loop(context: Context, scope: Scope, forall: Forall) -> list[Step]:
    """Follow the provenance of an index up to what its loop iterates."""
    index, aliases = forall.index, [forall.index]
    while True:
        relation = context.graph.made_by(index) if context.graph.is_derived(index) else None
        if isinstance(relation, (Bound, Rename)):
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
        case Collapse():
            return lower_collapsed(context, scope, forall, relation, aliases)
        case Pos():
            origin = f"{relation.parent} stored in {show(relation.access)}"
            return originating(lower_positions(context, scope, forall, relation, aliases), origin)
        case Coord():
            return lower_coordinates(context, scope, forall, relation, aliases)
        case _:
            return _original(context, scope, forall, index, aliases)


def _original(context: Context, scope: Scope, forall: Forall, index: str, aliases: list[str]) -> list[Step]:
    body = opening(context, forall.body, index, aliases)
    return iterate(context, scope, index, window(context, scope, index), forall.body, forall.tag, body)


def lower_collapsed(context: Context, scope: Scope, forall: Forall, relation: Collapse, aliases: list[str]) -> list[Step]:
    """A collapsed coordinate loop: the nest of its parts, each clipped where the window cuts its first or last row."""
    whole = relation.fused not in scope.windows
    if whole:
        return _nest_of(context, scope, forall, relation, aliases, None, None)
    own = window(context, scope, relation.fused)
    steps: list[Step] = []
    with context.names.block():
        extent = named(context, f"{relation.inner}_extent", context.extent(relation.inner), steps)
        low, high = named(context, f"{relation.fused}_low", own.low, steps), named(context, f"{relation.fused}_high", own.high, steps)
        inner = _nest_of(context, scope, forall, relation, aliases, (low, high), extent)
    return [*steps, *inner] if inner else []


def _nest_of(
    context: Context, scope: Scope, forall: Forall, relation: Collapse, aliases: list[str], clip: tuple[Value, Value] | None,
    extent: Value | None,
) -> list[Step]:  # fmt: skip
    plain = LoopTag()
    inner_loop = Forall(relation.inner, forall.body, plain)
    if clip is None or extent is None:
        tag = forall.tag if forall.tag.unit == "cpu_thread" else plain
        return _loop(context, scope, Forall(relation.outer, inner_loop, tag))
    low, high = clip
    rows = Window(quotient(low, extent), ceiling_quotient(high, extent))
    narrowed = replace(scope.narrow(relation.outer, rows), revisited=True)

    def body(inside: Scope) -> list[Step]:
        row = multiply(inside.coordinates[relation.outer], extent)
        columns = Window(maximum(subtract(low, row), ZERO), minimum(subtract(high, row), extent))
        steps: list[Step] = []
        first = named(context, f"{relation.inner}_low", columns.low, steps)
        last = named(context, f"{relation.inner}_high", columns.high, steps)
        clipped = inside.narrow(relation.inner, Window(first, last))
        inner = context.lower(inner_loop, clipped)
        return [*steps, *inner] if inner else []

    if context.graph.is_derived(relation.outer):
        raise ScheduleError(
            f"collapse({relation.outer}, {relation.inner}, {relation.fused}): tiles of {relation.fused} cannot be cut, "
            f"{relation.outer} is derived"
        )

    return iterate(context, narrowed, relation.outer, rows, forall.body, plain, body)
