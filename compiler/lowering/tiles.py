"""Loops over tiles, each of which narrows the window of the parent; or over the numbers of tiles, if the place in a tile is known first.

Guards are hoisted: if a loop inside a tile is vectorized or unrolled, full tiles get code of their own, and the rest
another copy (Senanayake et al., section 5.3 and the footnote of Figure 5).
"""

from __future__ import annotations

from ..concrete.nodes import Forall, Stmt, walk
from ..concrete.shapes import Tiles
from ..ir.arithmetic import ONE, ZERO, add, ceiling_quotient, compare, integer, maximum, minimum, multiply, subtract
from ..ir.nodes import I64, For, If, Step, Steps, Value, Var
from .coiterate import loop_mode
from .context import Context
from .known import lower_known
from .parents import with_parents
from .paths import with_fibres
from .recovery import extent_of, root_of
from .resolve import named
from .scope import Scope, Window
from .windows import MANY, divides, tiled, window, with_aliases


def lower_tiles(context: Context, scope: Scope, forall: Forall, tiles: Tiles, aliases: list[str]) -> list[Step]:
    """Return the loop over tiles; inside, the window of the parent is one tile."""
    root = root_of(context, scope, tiles.parent)
    parent = window(context, scope, root)
    length = subtract(parent.high, parent.low)
    size: Value = maximum(ceiling_quotient(length, integer(tiles.factor)), ONE) if tiles.size is None else integer(tiles.size)
    count = ceiling_quotient(length, size) if tiles.count is None or tiles.count > MANY else integer(tiles.count)
    is_divided = tiles.size is not None and divides(context, scope, tiles, root, parent)
    first, past = _own_range(scope, aliases[-1], count)
    before: list[Step] = []
    if tiles.size is None:
        size = named(context, f"{aliases[-1]}_tile", size, before)
    with context.names.block():
        variable = Var(context.names.local(forall.index), I64)
        inside: list[Step] = []
        low = named(context, f"{root}_low", add(parent.low, multiply(variable, size)), inside)
        inner = with_aliases(context, scope.inside(forall.index), aliases, variable)
        body = _tile_body(context, inner, forall, tiles, root, low, add(low, size), parent, is_divided, inside)
    return [*before, For(variable, first, past, Steps(tuple(body)), loop_mode(forall.tag))] if body else []


def _own_range(scope: Scope, number: str, count: Value) -> tuple[Value, Value]:
    """Return the range of tiles of a loop: all, or those that an outer tile leaves."""
    own = scope.windows.get(number)
    return (ZERO, count) if own is None else (own.low, minimum(own.high, count))


def _tile_body(
    context: Context, scope: Scope, forall: Forall, tiles: Tiles, root: str, low: Value, end: Value, parent: Window, is_divided: bool,
    before: list[Step],
) -> list[Step]:  # fmt: skip
    """Lower the inside of a tile, in two versions if full tiles are worth code of their own."""
    width = tiles.size

    def tile(high: Value, full: bool) -> list[Step]:
        with context.names.block():
            steps: list[Step] = []
            bounded = high if full else named(context, f"{root}_high", high, steps)
            part = with_fibres(context, scope, root, Window(low, bounded, width if full else None), steps)
            narrowed = with_parents(context, tiled(context, scope, tiles, root, part), forall, root, part, steps)
            inner = context.lower(forall.body, narrowed)
            return [*steps, *inner] if inner else []

    if is_divided:
        inner = tile(end, True)
        return [*before, *inner] if inner else []
    clipped = minimum(end, parent.high)
    if width is None or not _worth_cloning(context, forall.body, tiles):
        inner = tile(clipped, False)
        return [*before, *inner] if inner else []
    full, rest = tile(end, True), tile(clipped, False)
    if not full and not rest:
        return []
    return [*before, If(compare("<=", end, parent.high), Steps(tuple(full)), Steps(tuple(rest)))]


def _worth_cloning(context: Context, body: Stmt, tiles: Tiles) -> bool:
    """Whether the loop inside a tile profits from a constant number of iterations, since it is vectorized or unrolled."""
    inner = {tiles.inner, *context.graph.descendants(tiles.inner)}
    loops = [node for node in walk(body) if isinstance(node, Forall) and node.index in inner]
    return any(node.tag.is_vector or (node.tag.unroll and not _ends_with_rows(context, node)) for node in loops)


def _ends_with_rows(context: Context, loop: Forall) -> bool:
    """Whether a loop over stored positions adds to the rows of these positions, so that it ends with each row."""
    rows = context.graph.originals(loop.index)[:-1]
    return context.graph.space(loop.index) == "position" and any(
        not set(rows).isdisjoint(assign.target.indices) for assign in loop.body.assignments
    )


def lower_numbers(context: Context, scope: Scope, forall: Forall, tiles: Tiles, aliases: list[str]) -> list[Step]:
    """Return the loop over the numbers of tiles if the place in a tile is known: the parent is number * size + place."""
    parent = window(context, scope, root_of(context, scope, tiles.parent))
    count = ceiling_quotient(subtract(parent.high, parent.low), extent_of(context, tiles.inner))
    low, past = _own_range(scope, aliases[-1], count)
    return lower_by_value(context, scope, forall, Window(low, past), aliases)


def lower_by_value(
    context: Context, scope: Scope, forall: Forall, own: Window, aliases: list[str], *, is_whole: bool = False
) -> list[Step]:
    """Return a plain loop over a range of a derived index; its parent is computed from its values.

    Args:
        is_whole: whether every value gives a valid value of the parent.
    """
    with context.names.block():
        variable = Var(context.names.local(forall.index), I64)
        here = (scope.widen(aliases[-1]) if is_whole else scope.guarded()).inside(forall.index)
        inside = with_aliases(context, here, aliases, variable)
        body = lower_known(context, inside, ((aliases[-1], variable),), forall.body)
    return [For(variable, own.low, own.high, Steps(tuple(body)), loop_mode(forall.tag))] if body else []
