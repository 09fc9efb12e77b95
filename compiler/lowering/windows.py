"""The window of an index at one place of the nest, the range that tiles leave of it; and what follows when it gets a value.

Loops over tiles narrow the window of the index that they cut. Indices that only rename another one, or count from the beginning of
its tile, follow from its value (Senanayake et al., sections 5.1 and 5.2).
"""

from __future__ import annotations

from collections.abc import Collection, Container
from dataclasses import replace

from ..concrete.nodes import Stmt, targets
from ..concrete.shapes import Along, Between, Entries, Through, Tiles
from ..ir.arithmetic import ZERO, add, compare, integer, maximum, minimum, multiply, subtract
from ..ir.nodes import I64, Select, Step, Value
from ..levels.level import Level
from ..levels.segments import Segmented
from ..notation.nodes import Access
from .context import Context
from .recovery import Here, root_of, whole_range
from .resolve import Body, bounds
from .scope import Scope, Window

MANY = 4096
"""A loop with at least this many tiles, or iterations in a tile, ends with the parent's window, since empty iterations take time."""


def window(context: Context, scope: Scope, index: str) -> Window:
    """Return the window of an index here."""
    if index in scope.windows:
        return scope.windows[index]
    match context.graph.shape(index):
        case Entries() as entries:
            return all_positions(context, scope, entries)
        case Between() as between:
            return coordinate_range(context, scope, between)
        case Along() as along:
            return path_range(context, scope, along)
        case _:
            return _pieces(context, scope, index, whole_range(context, scope, index))


def _pieces(context: Context, scope: Scope, index: str, whole: Window) -> Window:
    """Return the range of an index that counts within its parent; a long one is limited to the parent's window."""
    relation = context.graph.maker(index)
    parent = relation.counts_in(index) if relation is not None else None
    if parent is None or (context.graph.constant_extent(index) or 0) <= MANY:
        return whole
    left = window(context, scope, root_of(context, scope, parent))
    return Window(whole.low, minimum(whole.high, subtract(left.high, left.low)))


def gone_through(context: Context, scope: Scope, index: str) -> list[str]:
    """Return an index and the chain of indices that its loop iterates in its place; the last one is iterated."""
    found = [index]
    while isinstance(shape := context.graph.shape(found[-1], scope.coordinates), Through):
        found.append(shape.variable)
    return found


def all_positions(context: Context, scope: Scope, entries: Entries) -> Window:
    """Return the positions of the last collapsed level below the operand's current place, inside a tile of coordinates."""
    return _ranges(context, scope, entries)[-1]


def path_range(context: Context, scope: Scope, along: Along) -> Window:
    """Return the range of items (entries and ends of fibres) below the operand's current place, inside a tile of coordinates."""
    *_, fibres, positions = _ranges(context, scope, entries_of(context, along.positions))
    return Window(add(fibres.low, positions.low), add(fibres.high, positions.high), fibres=(fibres.low, fibres.high))


def _ranges(context: Context, scope: Scope, entries: Entries) -> list[Window]:
    """Return the positions of every collapsed level, outermost first."""
    access, chain = position_chain(context, entries)
    place = scope.place(access)
    levels = context.tensors.storage(scope, access).levels[place.depth : place.depth + len(chain)]
    tile = tile_of(context, scope, entries)
    whole = context.on_gpu and tile is None and not place.depth  # host code knows lengths, but cannot read arrays
    if whole and isinstance(levels[0].kind, Segmented):
        low, high = ZERO, context.tensors.level_length(scope, access, 1)
    elif levels[0].steps:
        low, high = bounds(scope, access, levels[0])
        if tile is not None:
            first = levels[0].below(place)
            low, high = first.search(low, high, tile.low), first.search(low, high, tile.high)
    else:
        first = multiply(place.positions[-1], levels[0].extent) if place.positions else ZERO
        low, high = (ZERO, levels[0].extent) if tile is None else (tile.low, tile.high)
        low, high = add(first, low), add(first, high)
    found = [Window(low, high)]
    for depth, level in enumerate(levels[1:], place.depth + 2):
        whole = whole and low == ZERO and isinstance(level.kind, Segmented)
        if whole:
            high = context.tensors.level_length(scope, access, depth)
        elif not level.kind.shares_positions:  # such a level has the positions of the level above
            low, high = _below(level, low), _below(level, high)
        found.append(Window(low, high))
    return found


def _below(level: Level, parent: Value) -> Value:
    """Return the first position below a parent."""
    if parent == ZERO:
        return ZERO
    return level.kind.begin(level, parent)


def is_cut(context: Context, entries: Entries, loops: Collection[str], known: Container[str]) -> bool:
    """Whether loops are over tiles of entries, or of the coordinates that have them, so that inside there is a part of these only.

    Args:
        entries: the entries.
        loops: the indices of the loops.
        known: the indices whose values are known inside the loops.
    """
    graph, names = context.graph, {entries.variable}
    if entries.cut is not None:
        root, shape = graph.gone_through(entries.cut, known)
        if isinstance(shape, Between):
            return True
        names.add(root)
    return any(not names.isdisjoint(graph.ancestors(loop)) for loop in loops)


def tile_of(context: Context, scope: Scope, entries: Entries) -> Window | None:
    """Return the range that tiles leave of the coordinates whose entries are visited; None if it is whole."""
    if entries.cut is None:
        return None
    root = root_of(context, scope, entries.cut)
    if root not in scope.windows and not isinstance(context.graph.shape(root), Between):
        return None
    return window(context, scope, root)


def divides(context: Context, scope: Scope, tiles: Tiles, root: str, parent: Window) -> bool:
    """Return whether every tile is full: the range is a known multiple of the factor."""
    if parent.width is not None:
        return parent.width % tiles.factor == 0
    return root not in scope.windows and context.graph.divisible(tiles.parent, tiles.factor, context.extents)


def tiled(context: Context, scope: Scope, tiles: Tiles, root: str, tile: Window) -> Scope:
    """Return the scope inside a tile; pieces of the place in a tile that were cut before become pieces of this tile."""
    own = scope.windows.get(tiles.inner)
    scope = scope.base(tiles.inner, tile.low)
    if own is None:
        return scope.narrow(root, tile)
    below = context.graph.descendants(tiles.inner)
    moved = {name: add(tile.low, base) for name, base in scope.bases.items() if name in below and name != tiles.inner}
    low = add(tile.low, own.low)
    left = Window(low, minimum(tile.high, add(tile.low, own.high)))
    if tile.width is not None and own.width is not None:  # a whole piece of a whole tile ends before the tile does
        left = Window(low, add(low, integer(own.width)), own.width)
    return replace(scope, bases={**scope.bases, **moved}).narrow(root, left)


def coordinate_range(context: Context, scope: Scope, between: Between) -> Window:
    """Return the range of coordinates between those at both ends of a window of positions.

    Those before the first and after the last stored one belong to the first and the last tile.
    """
    source = entries_of(context, context.graph.position_relation(between.positions).position)
    access, chain = position_chain(context, source)
    place, tile = scope.place(access), tile_of(context, scope, source) or Window(ZERO, context.size(chain[0]))
    level = context.tensors.storage(scope, access).levels[place.depth].below(place)
    if level.index != chain[0]:  # the statement does not read the access, so that no window of positions cuts its loop
        return tile
    whole = all_positions(context, scope, source)
    own = window(context, scope, root_of(context, scope, between.positions))
    if level.kind.full:
        first = multiply(place.positions[-1], level.extent) if place.positions else ZERO
        return Window(subtract(own.low, first), subtract(own.high, first))
    within = Select(compare("<", own.low, whole.high), level.coordinate(own.low), tile.high, I64)
    low = Select(compare("<=", own.low, whole.low), tile.low, within, I64)
    high = Select(compare(">=", own.high, whole.high), tile.high, level.coordinate(own.high), I64)
    return Window(low, high)


def narrowed(context: Context, scope: Scope, index: str, part: Window) -> Scope:
    """Return the scope in which an index, which counts from 0 in its tile, has a part of its range as window."""
    root = root_of(context, scope, index)
    index = renamed(context, index)
    base = scope.bases.get(index)
    if base is not None and root != index:
        high = minimum(window(context, scope, root).high, add(base, part.high))
        return scope.narrow(root, Window(add(base, part.low), high))
    if root not in scope.windows and not isinstance(context.graph.shape(root), Between):
        return scope.narrow(root, part)
    whole = window(context, scope, root)
    return scope.narrow(root, Window(maximum(whole.low, part.low), minimum(whole.high, part.high)))


def entries_of(context: Context, index: str) -> Entries:
    """Return the entries over which a loop over positions runs."""
    shape = context.graph.shape(index)
    assert isinstance(shape, Entries), f"{index} does not count entries"
    return shape


def position_chain(context: Context, entries: Entries) -> tuple[Access, tuple[str, ...]]:
    """Return the access whose positions are counted, and the indices of the levels that are collapsed."""
    return context.tensors.operand(entries.access), context.graph.originals(entries.variable)


def with_aliases(context: Context, scope: Scope, aliases: list[str], value: Value) -> Scope:
    """Return the scope with a value for the last of some indices, and for those before it, each of which iterates the next."""
    through = aliases[-1] if aliases else ""
    for alias in reversed(aliases):
        if isinstance(context.graph.shape(alias), Along):  # tiles of it count items, not positions
            value, through = context.graph.made_by(alias).recover_child(alias, Here(context, scope)), alias
        base = scope.bases.get(renamed(context, alias))
        scope = scope.know(alias, subtract(value, base) if base is not None else _own_value(context, scope, alias, value, through))
    return scope


def _own_value(context: Context, scope: Scope, alias: str, value: Value, through: str) -> Value:
    """Return the value of an index that iterates another one, given the value of that one."""
    relation = context.graph.maker(alias)
    if alias == through or relation is None or relation.renames:
        return value
    return relation.recover_child(alias, Here(context, scope))


def renamed(context: Context, index: str) -> str:
    """Return the variable for which an index is another name."""
    while (relation := context.graph.maker(index)) is not None and relation.renames:
        index = relation.parents[0]
    return index


def opening(context: Context, statement: Stmt, index: str, aliases: list[str]) -> Body:
    """Return the body of a loop over an original index; a level of an assembled result is opened before and closed after it."""

    def body(scope: Scope) -> list[Step]:
        value = scope.coordinates[index]
        inner_scope = with_aliases(context, scope, aliases, value)
        return opened(context, inner_scope, statement, index)

    return body


def opened(context: Context, scope: Scope, statement: Stmt, index: str, body: Body | None = None) -> list[Step]:
    """Lower a statement in which an original index has just got its value; ``body`` replaces the lowering of the statement itself."""
    lower = body or (lambda inside: context.lower(statement, inside))
    assembly = scope.assembly
    writes = assembly is not None and context.result.tensor in targets(statement) and assembly.stores(index)
    if assembly is None or not writes:
        return lower(scope)
    before, after = assembly.open(index, dict(scope.coordinates), context.names)
    inner = lower(scope)
    return [*before, *inner, *after] if inner else []
