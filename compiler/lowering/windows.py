"""The range that an index has left at one place of the nest, and what follows when it becomes known.

Tile loops narrow the window of the index that they cut; everything that only renames an index, or counts from the begin of
its tile, follows from its value (Senanayake et al., sections 5.1 and 5.2).
"""

from __future__ import annotations

from dataclasses import replace

from ..concrete.nodes import Stmt, targets
from ..concrete.relations import Coord, Pos, Split
from ..ir.arithmetic import ZERO, add, compare, maximum, minimum, multiply, subtract
from ..ir.nodes import I64, Select, Step, Value
from ..levels.level import Level
from ..notation.nodes import Access
from .context import Context
from .recovery import root_of, whole_range
from .resolve import Body
from .scope import Scope, Window

MANY = 4096
"""Tiles, or iterations of a tile, beyond which a loop ends where there are no more: to run through empty ones takes time."""


def window(context: Context, scope: Scope, index: str) -> Window:
    """Return the range that an index has left here."""
    if index in scope.windows:
        return scope.windows[index]
    relation = context.graph.maker(index)
    if relation is not None and not isinstance(relation, Split) and context.graph.space(index) == "position":
        return all_positions(context, scope, positions_of(context, index))
    if isinstance(relation, Coord):
        return coordinate_range(context, scope, relation)
    if relation is not None and relation.renames and relation.parents[0] in scope.windows:
        return scope.windows[relation.parents[0]]
    own = whole_range(context, scope, index)
    if isinstance(relation, Split) and relation.factor > MANY and (index == relation.inner) == relation.constant_inner:
        whole = window(context, scope, root_of(context, scope, relation.parent))
        return Window(ZERO, minimum(own.high, subtract(whole.high, whole.low)))
    return own


def all_positions(context: Context, scope: Scope, relation: Pos) -> Window:
    """Return the positions of the last collapsed level that lie below the present place of the operand, in a tile of coordinates."""
    access, chain = position_chain(context, relation)
    place = scope.place(access)
    levels = context.storage(access).levels[place.depth : place.depth + len(chain)]
    tile = tile_of(context, scope, relation)
    if levels[0].steps:
        low, high = levels[0].bounds(place)
        if tile is not None:
            first = levels[0].below(place)
            low, high = first.search(low, high, tile.low), first.search(low, high, tile.high)
    else:
        first = multiply(place.positions[-1], levels[0].extent) if place.positions else ZERO
        low, high = (ZERO, levels[0].extent) if tile is None else (tile.low, tile.high)
        low, high = add(first, low), add(first, high)
    for level in (level for level in levels[1:] if not level.kind.shares_positions):  # which counts as the level above
        low, high = _below(level, low), _below(level, high)
    return Window(low, high)


def _below(level: Level, parent: Value) -> Value:
    """Return the first position below a parent."""
    if parent == ZERO:
        return ZERO
    return level.kind.begin(level, parent)


def tile_of(context: Context, scope: Scope, relation: Pos) -> Window | None:
    """Return the range of coordinates that tiles have left of what a relation counts the positions of; None where it is whole."""
    if relation.parent == relation.position:
        return None
    root = root_of(context, scope, relation.parent)
    if root not in scope.windows and not isinstance(context.graph.maker(root), Coord):
        return None
    return window(context, scope, root)


def tiled(context: Context, scope: Scope, split: Split, root: str, tile: Window) -> Scope:
    """Return the scope inside a tile of a split; pieces that were cut from its inner half before are pieces of the tile now."""
    own = scope.windows.get(split.inner)
    scope = scope.base(split.inner, tile.low)
    if own is None:
        return scope.narrow(root, tile)
    below = context.graph.descendants(split.inner)
    moved = {name: add(tile.low, base) for name, base in scope.bases.items() if name in below and name != split.inner}
    left = Window(add(tile.low, own.low), minimum(tile.high, add(tile.low, own.high)))
    return replace(scope, bases={**scope.bases, **moved}).narrow(root, left)


def coordinate_range(context: Context, scope: Scope, relation: Coord) -> Window:
    """Return the coordinates between those at both ends of what is left of a range of positions.

    Those before the first and after the last stored one belong to the first and the last tile.
    """
    source = context.graph.position_relation(relation.position)
    access, chain = position_chain(context, source)
    whole = all_positions(context, scope, source)
    own = window(context, scope, root_of(context, scope, relation.position))
    level = context.storage(access).levels[scope.place(access).depth].below(scope.place(access))
    tile = tile_of(context, scope, source) or Window(ZERO, context.size(chain[0]))
    if level.kind.full:
        first = multiply(scope.place(access).positions[-1], level.extent) if scope.place(access).positions else ZERO
        return Window(subtract(own.low, first), subtract(own.high, first))
    within = Select(compare("<", own.low, whole.high), level.coordinate(own.low), tile.high, I64)
    low = Select(compare("<=", own.low, whole.low), tile.low, within, I64)
    high = Select(compare(">=", own.high, whole.high), tile.high, level.coordinate(own.high), I64)
    return Window(low, high)


def narrowed(context: Context, scope: Scope, index: str, part: Window) -> Scope:
    """Return the scope in which an index has a part of its range left; it counts from 0 in its tile."""
    root = root_of(context, scope, index)
    index = renamed(context, index)
    base = scope.bases.get(index)
    if base is not None and root != index:
        high = minimum(window(context, scope, root).high, add(base, part.high))
        return scope.narrow(root, Window(add(base, part.low), high))
    if root not in scope.windows and not isinstance(context.graph.maker(root), Coord):
        return scope.narrow(root, part)
    whole = window(context, scope, root)
    return scope.narrow(root, Window(maximum(whole.low, part.low), minimum(whole.high, part.high)))


def positions_of(context: Context, index: str) -> Pos:
    """Return the relation of a loop over positions; where coordinates were joined to it, of all levels together."""
    relation = context.graph.made_by(index)
    return relation if isinstance(relation, Pos) else Pos(index, index, context.graph.position_access(index))


def position_chain(context: Context, relation: Pos) -> tuple[Access, tuple[str, ...]]:
    """Return the access whose positions are counted, and the indices of the levels that are collapsed."""
    return context.operand(relation.access), context.graph.originals(relation.position)


def with_aliases(context: Context, scope: Scope, aliases: list[str], value: Value) -> Scope:
    """Make an index and everything that only renames it, or counts from its tile's begin, known."""
    for alias in aliases:
        base = scope.bases.get(renamed(context, alias))
        scope = scope.know(alias, value if base is None else subtract(value, base))
    return scope


def renamed(context: Context, index: str) -> str:
    """Return the variable that an index is another name of."""
    while (relation := context.graph.maker(index)) is not None and relation.renames:
        index = relation.parents[0]
    return index


def opening(context: Context, statement: Stmt, index: str, aliases: list[str]) -> Body:
    """Return the body of a loop over an original index; a level of an assembled result opens and closes around it."""

    def body(scope: Scope) -> list[Step]:
        value = scope.coordinates[index]
        inner_scope = with_aliases(context, scope, aliases, value)
        return opened(context, inner_scope, statement, index)

    return body


def opened(context: Context, scope: Scope, statement: Stmt, index: str, body: Body | None = None) -> list[Step]:
    """Lower a statement in which an original index has just become known; ``body`` where it is not lowered as it stands."""
    lower = body or (lambda inside: context.lower(statement, inside))
    assembly = context.assembly
    writes = assembly is not None and context.result.tensor in targets(statement) and assembly.stores(index)
    if assembly is None or not writes:
        return lower(scope)
    before, after = assembly.open(index, dict(scope.coordinates), context.names)
    inner = lower(scope)
    return [*before, *inner, *after] if inner else []
