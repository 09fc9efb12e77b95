"""Indices that get a value from other indices and not from a loop over them.

If the inner loop of a split is outside the outer one, it is a plain loop. When both have values, the index that was split follows, and
everything from which that was derived (``recover_original`` of Senanayake et al., Figure 18), with guards that
keep it in its range (section 5.3). From a position, the coordinates of all levels above it follow.
"""

from __future__ import annotations

from collections.abc import Callable

from ..concrete.nodes import Stmt
from ..concrete.shapes import Along, Entries, Shape, Through, Tiles
from ..ir.arithmetic import ZERO, add, compare, every, is_constant, minimum, multiply, remainder, subtract
from ..ir.nodes import If, Step, Steps, Value
from ..levels.level import Level
from ..levels.segments import Segmented, parent_among
from ..notation.nodes import Access
from .context import Context
from .paths import entry_at
from .recovery import extent_of, following, root_of
from .resolve import named, settle
from .scope import Place, Scope, Window
from .windows import divides, position_chain, tiled, window

Known = tuple[tuple[str, Value], ...]


def lower_known(context: Context, scope: Scope, pending: Known, statement: Stmt) -> list[Step]:
    """Lower a statement inside which some indices have values, after computing what follows from these."""
    if not pending:
        return settle(context, scope, statement, lambda inner: context.lower(statement, inner))
    (index, value), *rest = pending
    with context.names.block():
        steps: list[Step] = []
        value = named(context, index, value, steps)
        conditions = _in_range(scope, index, value)
        inside = scope.know(index, value)
        if conditions:
            inside = inside.guarded()
        shape = context.graph.shape(index, inside.coordinates)
        inner: list[Step] = []
        further: Known = ()
        occupied: list[Value] = []
        match shape:
            case Tiles():
                inside, further = _in_tile(context, inside, shape, value, inner)
            case Through(parent) if index in scope.bases:
                inside, further = _of_root(context, inside, parent, lambda _: add(scope.bases[index], value))
            case Entries():
                inside = _at_position(context, inside, shape, value, inner)
            case Along(positions):
                position, is_entry = entry_at(context, inside, shape, value, inner)
                occupied, further = [is_entry], ((positions, position),)
            case _:
                further = following(context, inside, index)
                inside = _kept_in_range(context, inside, further)
        body = lower_known(context, inside, (*further, *rest), statement)
        occupied += _slots(context, shape, inside)
        inner += [If(every(occupied), Steps(tuple(body)))] if occupied and body else body
    if not inner:
        return []
    return [*steps, If(every(conditions), Steps(tuple(inner)))] if conditions else [*steps, *inner]


def _slots(context: Context, shape: Shape | None, scope: Scope) -> list[Value]:
    """Return the condition that a position holds an entry, for levels with holes."""
    if not isinstance(shape, Entries):
        return []
    access, chain = position_chain(context, shape)
    level = next(level for level in context.tensors.storage(scope, access).levels if level.index == chain[-1])
    position = scope.place(access).positions[-1]
    occupied = level.occupied(position, scope.coordinates[level.index])
    return [] if occupied is None else [occupied]


def _in_range(scope: Scope, index: str, value: Value) -> list[Value]:
    """Return the conditions that a value is in the window of its index."""
    own = scope.windows.get(index)
    if own is None:
        return []
    low = [] if is_constant(own.low, 0) else [compare(">=", value, own.low)]
    return [*low, compare("<", value, own.high)]


def _kept_in_range(context: Context, scope: Scope, found: Known) -> Scope:
    """Return the scope in which recovered values are tested where they may lie outside the ranges of their indices."""
    for index, _ in found:
        if index not in scope.windows and context.graph.possibly_out_of_bounds(index, context.extents):
            scope = scope.narrow(index, window(context, scope, index))
    return scope


def _in_tile(context: Context, scope: Scope, tiles: Tiles, number: Value, steps: list[Step]) -> tuple[Scope, Known]:
    """Continue with the number of a tile: with the place in the tile it gives the parent's value, alone it narrows the parent's window."""
    size = extent_of(context, tiles.inner)
    if tiles.inner in scope.coordinates:
        place = scope.coordinates[tiles.inner]
        return _of_root(context, scope, tiles.parent, lambda parent: add(parent.low, add(multiply(number, size), place)))
    root = root_of(context, scope, tiles.parent)
    parent = window(context, scope, root)
    low = named(context, f"{root}_low", add(parent.low, multiply(number, size)), steps)
    if tiles.size is not None and divides(context, scope, tiles, root, parent):
        return tiled(context, scope, tiles, root, Window(low, add(low, size), tiles.size)), ()
    high = named(context, f"{root}_high", minimum(add(low, size), parent.high), steps)
    return tiled(context, scope, tiles, root, Window(low, high)), ()


def _of_root(context: Context, scope: Scope, index: str, value: Callable[[Window], Value]) -> tuple[Scope, Known]:
    """Continue with the value of the variable whose window tiles cut; the last tile may go past the end of the window."""
    root = root_of(context, scope, index)
    left = window(context, scope, root)
    return scope.narrow(root, left), ((root, value(left)),)


def _at_position(context: Context, scope: Scope, entries: Entries, position: Value, steps: list[Step]) -> Scope:
    """Return the scope with an operand at a position, and with the coordinates that its levels store there."""
    access, chain = position_chain(context, entries)
    storage = context.tensors.storage(scope, access)
    above = scope.place(access)
    levels = storage.levels[above.depth : above.depth + len(chain)]
    parent = above.positions[-1] if above.positions else ZERO
    around = scope.parents.get(entries.variable)
    positions: list[Value] = []
    for place in range(len(levels) - 1, -1, -1):
        level, depth = levels[place], above.depth + place
        positions.insert(0, position)
        within = around.levels[place - 1] if place and around is not None else None
        found = parent_at(context, scope, access, depth, position, within) if place else parent
        up = named(context, f"p_{storage.name}{depth}", found, steps) if place else parent
        scope = scope.know(level.index, named(context, level.index, coordinate_at(level, position, up, first=place == 0), steps))
        position = up
    reached = scope.stepping_shared() if access == context.shares else scope.guarded()
    return reached.found(access, Place((*above.positions, *positions)))


def coordinate_at(level: Level, position: Value, parent: Value, *, first: bool) -> Value:
    """Return the coordinate at a position of a level below a parent. For a dense level that is not the ``first`` it is a remainder."""
    if not level.kind.full:
        return level.under(parent).coordinate(position)
    return subtract(position, multiply(parent, level.extent)) if first else remainder(position, level.extent)


def parent_at(
    context: Context, scope: Scope, access: Access, depth: int, position: Value, within: tuple[Value, Value] | None = None
) -> Value:
    """Return the parent of a position of a level; ``within``: the range in which the parent is known to be."""
    level = context.tensors.storage(scope, access).levels[depth]
    if within is not None and isinstance(level.kind, Segmented):
        return parent_among(level, position, *within)
    return level.kind.parent(level, position, context.tensors.level_length(scope, access, depth))
