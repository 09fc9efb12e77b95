"""Loops over the halves of a split: tiles that cut the window of their parent, and strides where the inner half comes first.

Guards are hoisted: where a loop inside a tile goes to lanes or is unrolled, full tiles get code of their own and the rest
another copy (Senanayake et al., section 5.3 and Figure 5's footnote).
"""

from __future__ import annotations

from ..concrete.nodes import Forall, Stmt, walk
from ..concrete.relations import Split
from ..ir.arithmetic import ONE, ZERO, add, ceiling_quotient, compare, integer, maximum, minimum, multiply, subtract
from ..ir.nodes import I64, For, If, Step, Steps, Value, Var
from .coiterate import loop_mode
from .context import Context
from .known import lower_known
from .recovery import extent_of, root_of
from .resolve import named
from .scope import Scope, Window
from .windows import MANY, tiled, window, with_aliases


def lower_tiles(context: Context, scope: Scope, forall: Forall, split: Split, aliases: list[str]) -> list[Step]:
    """The loop over the tiles of a split: the window of the parent shrinks to one tile."""
    root = root_of(context, scope, split.parent)
    parent = window(context, scope, root)
    length = subtract(parent.high, parent.low)
    size: Value = integer(split.factor) if split.constant_inner else maximum(ceiling_quotient(length, integer(split.factor)), ONE)
    count = ceiling_quotient(length, size) if split.constant_inner or split.factor > MANY else integer(split.factor)
    divides = split.constant_inner and _divides(context, scope, split, root, parent)
    first, past = _own_range(scope, split.outer, count)
    before: list[Step] = []
    if not split.constant_inner:
        size = named(context, f"{split.outer}_tile", size, before)
    with context.names.block():
        variable = Var(context.names.local(forall.index), I64)
        inside: list[Step] = []
        low = named(context, f"{root}_low", add(parent.low, multiply(variable, size)), inside)
        inner = with_aliases(context, scope.inside(forall.index), aliases, variable)
        body = _tile_body(context, inner, forall, split, root, low, add(low, size), parent, divides, inside)
    return [*before, For(variable, first, past, Steps(tuple(body)), loop_mode(forall.tag))] if body else []


def _own_range(scope: Scope, half: str, count: Value) -> tuple[Value, Value]:
    """Return what half of a split a loop runs through: all of it, or what a split of that half itself leaves."""
    own = scope.windows.get(half)
    return (ZERO, count) if own is None else (own.low, minimum(own.high, count))


def _divides(context: Context, scope: Scope, split: Split, root: str, parent: Window) -> bool:
    """Whether every tile is full: the range is a known multiple of the factor."""
    if parent.width is not None:
        return parent.width % split.factor == 0
    return root not in scope.windows and context.graph.divisible(split.parent, split.factor, context.extents)


def _tile_body(
    context: Context, scope: Scope, forall: Forall, split: Split, root: str, low: Value, end: Value, parent: Window, divides: bool,
    before: list[Step],
) -> list[Step]:  # fmt: skip
    """Lower what is inside a tile; where full tiles are worth code of their own, once for them and once for the rest."""
    width = split.factor if split.constant_inner else None

    def tile(high: Value, full: bool) -> list[Step]:
        with context.names.block():
            steps: list[Step] = []
            bounded = high if full else named(context, f"{root}_high", high, steps)
            narrowed = tiled(context, scope, split, root, Window(low, bounded, width if full else None))
            inner = context.lower(forall.body, narrowed)
            return [*steps, *inner] if inner else []

    if divides:
        inner = tile(end, True)
        return [*before, *inner] if inner else []
    clipped = minimum(end, parent.high)
    if width is None or not _worth_cloning(context, forall.body, split):
        inner = tile(clipped, False)
        return [*before, *inner] if inner else []
    full, rest = tile(end, True), tile(clipped, False)
    if not full and not rest:
        return []
    return [*before, If(compare("<=", end, parent.high), Steps(tuple(full)), Steps(tuple(rest)))]


def _worth_cloning(context: Context, body: Stmt, split: Split) -> bool:
    """Whether the loop inside a tile profits from a constant number of iterations: it goes to lanes or is unrolled."""
    inner = {split.inner, *context.graph.descendants(split.inner)}
    loops = [node for node in walk(body) if isinstance(node, Forall) and node.index in inner]
    return any(node.tag.unit == "cpu_vector" or node.tag.unroll for node in loops)


def lower_strided(context: Context, scope: Scope, forall: Forall, split: Split, index: str, aliases: list[str]) -> list[Step]:
    """One half of a split whose inner loop stands outside: the parent is outer * size + inner once both are known."""
    if index == split.inner:
        count = extent_of(context, split.inner)
        if split.constant_inner and split.factor > MANY:
            whole = window(context, scope, root_of(context, scope, split.parent))
            count = minimum(count, subtract(whole.high, whole.low))
    else:
        parent = window(context, scope, root_of(context, scope, split.parent))
        count = ceiling_quotient(subtract(parent.high, parent.low), extent_of(context, split.inner))
    low, past = _own_range(scope, index, count)
    return lower_by_value(context, scope, forall, Window(low, past), aliases)


def lower_by_value(context: Context, scope: Scope, forall: Forall, own: Window, aliases: list[str]) -> list[Step]:
    """A plain loop over a range of a derived index; what it was made from is recovered from its values."""
    with context.names.block():
        variable = Var(context.names.local(forall.index), I64)
        inside = with_aliases(context, scope.inside(forall.index), aliases[:-1], variable).guarded()
        body = lower_known(context, inside, ((aliases[-1], variable),), forall.body)
    return [For(variable, own.low, own.high, Steps(tuple(body)), loop_mode(forall.tag))] if body else []
