"""Indices that become known by value, not by the loop that iterates them: what follows from each of them.

A loop over the inner half of a split that stands outside the outer half is a plain loop; once both halves have values, so has what
was split, and everything that it was derived from (``recover_original`` of Senanayake et al., Figure 18), under the guards that
keep it in its range (section 5.3). A position leads to the coordinates of all levels above it.
"""

from __future__ import annotations

from dataclasses import replace

from ..concrete.nodes import Stmt
from ..concrete.relations import Pos, Relation, Split
from ..ir.arithmetic import ZERO, add, compare, every, is_constant, minimum, multiply, remainder, subtract
from ..ir.nodes import If, Step, Steps, Value
from ..levels.level import Level
from ..notation.nodes import Access
from .context import Context
from .recovery import extent_of, following, root_of
from .resolve import named, settle
from .scope import Place, Scope, Window
from .windows import position_chain, positions_of, tiled, window

Known = tuple[tuple[str, Value], ...]


def lower_known(context: Context, scope: Scope, pending: Known, statement: Stmt) -> list[Step]:
    """Lower a statement where some indices have values; first all that follows from these."""
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
        relation = context.graph.maker(index)
        inner: list[Step] = []
        further: Known = ()
        if isinstance(relation, Split):
            inside, further = _half(context, inside, relation, index, value, inner)
        elif relation is not None and context.graph.space(index) == "position" and not relation.renames:
            inside = _at_position(context, inside, positions_of(context, index), value, inner)
        elif relation is not None:
            further = following(context, inside, relation)
        body = lower_known(context, inside, (*further, *rest), statement)
        occupied = [value for value in _slots(context, relation, index, inside) if body]
        inner += [If(every(occupied), Steps(tuple(body)))] if occupied else body
    if not inner:
        return []
    return [*steps, If(every(conditions), Steps(tuple(inner)))] if conditions else [*steps, *inner]


def _slots(context: Context, relation: Relation | None, index: str, scope: Scope) -> list[Value]:
    """Return the condition that a position holds something, for levels with positions that do not."""
    if relation is None or relation.renames or isinstance(relation, Split) or context.graph.space(index) != "position":
        return []
    access, chain = position_chain(context, positions_of(context, index))
    level = next(level for level in context.storage(access).levels if level.index == chain[-1])
    position = scope.place(access).positions[-1]
    occupied = level.occupied(position, scope.coordinates[level.index])
    return [] if occupied is None else [occupied]


def _in_range(scope: Scope, index: str, value: Value) -> list[Value]:
    """Return the conditions that a value lies in what outer loops have left of its range."""
    own = scope.windows.get(index)
    if own is None:
        return []
    low = [] if is_constant(own.low, 0) else [compare(">=", value, own.low)]
    return [*low, compare("<", value, own.high)]


def _half(context: Context, scope: Scope, split: Split, half: str, value: Value, steps: list[Step]) -> tuple[Scope, Known]:
    """One half of a split is known: with the other one they give the parent; the outer alone is the number of a tile."""
    root = root_of(context, scope, split.parent)
    if half == split.inner and split.inner in scope.bases:
        return _whole(context, scope, root, add(scope.bases[split.inner], value))
    other = split.outer if half == split.inner else split.inner
    parent = window(context, scope, root)
    size = extent_of(context, split.inner)
    if other in scope.coordinates:
        outer, inner = (value, scope.coordinates[other]) if half == split.outer else (scope.coordinates[other], value)
        return _whole(context, scope, root, add(parent.low, add(multiply(outer, size), inner)))
    if half == split.inner:
        return scope, ()
    low = named(context, f"{root}_low", add(parent.low, multiply(value, size)), steps)
    high = named(context, f"{root}_high", minimum(add(low, size), parent.high), steps)
    return tiled(context, scope, split, root, Window(low, high)), ()


def _whole(context: Context, scope: Scope, parent: str, value: Value) -> tuple[Scope, Known]:
    """The parent of a split is known; the last tile may run over its end."""
    return scope.narrow(parent, window(context, scope, parent)), ((parent, value),)


def _at_position(context: Context, scope: Scope, relation: Pos, position: Value, steps: list[Step]) -> Scope:
    """Return the place of an operand at a position, and the coordinates that its levels store there."""
    access, chain = position_chain(context, relation)
    storage = context.storage(access)
    above = scope.place(access)
    levels = storage.levels[above.depth : above.depth + len(chain)]
    parent = above.positions[-1] if above.positions else ZERO
    positions: list[Value] = []
    for place in range(len(levels) - 1, -1, -1):
        level, depth = levels[place], above.depth + place
        positions.insert(0, position)
        up = named(context, f"p_{storage.name}{depth}", parent_at(context, access, depth, position), steps) if place else parent
        scope = scope.know(level.index, named(context, level.index, coordinate_at(level, position, up, first=place == 0), steps))
        position = up
    found = scope.stepping_shared() if access == context.shares else scope.guarded()
    return replace(found.found(access, Place((*above.positions, *positions))), revisited=True)


def coordinate_at(level: Level, position: Value, parent: Value, *, first: bool) -> Value:
    """Return the coordinate at a position of a level below a parent; of a dense level that is not the ``first`` it is a remainder."""
    if not level.kind.full:
        return level.under(parent).coordinate(position)
    return subtract(position, multiply(parent, level.extent)) if first else remainder(position, level.extent)


def parent_at(context: Context, access: Access, depth: int, position: Value) -> Value:
    """Return the position of the level above that a position of a level belongs to."""
    level = context.storage(access).levels[depth]
    return level.kind.parent(level, position, context.level_length(access, depth) if level.kind.has_segments else ZERO)
