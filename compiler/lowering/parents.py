"""Finds the parents, in the levels above, of a range of positions by binary search, among the parents of the tile around it.

Each block and warp of a GPU searches once for the parents of all its positions; its threads search for their own parents among these
(Senanayake et al., Figure 2e, where ``i_blockStarts`` bounds the search of a thread).
"""

from __future__ import annotations

from ..concrete.nodes import Forall, Stmt, walk
from ..concrete.shapes import Entries
from ..ir.arithmetic import ONE, ZERO, add, minimum
from ..ir.nodes import Step, Value
from ..levels.level import Level
from ..levels.segments import Segmented, parent_after, parent_among, parent_past
from ..notation.nodes import Access
from .context import Context
from .resolve import named
from .scope import Parents, Scope, Window
from .windows import position_chain


def are_nested(levels: tuple[Level, ...]) -> bool:
    """Whether each level except the first stores one segment, in order, for each position of the level above."""
    *upper, last = levels
    return all(level.kind.has_fibres and level.unique for level in (last, *upper[1:])) and upper[0].unique


def parents_of(
    context: Context, scope: Scope, index: str, access: Access, levels: tuple[Level, ...], part: Window, steps: list[Step]
) -> Parents:
    """Return the parents of a range of positions of the last of nested levels; ``index`` runs through the positions."""
    low, high, around = part.low, part.high, scope.parents.get(index)
    if around is not None and (around.low, around.high) == (low, high):
        return around
    storage, found = context.tensors.storage(scope, access), list[tuple[Value, Value]]()
    for place in range(len(levels) - 1, 0, -1):
        depth, level = scope.place(access).depth + place, levels[place]
        count = context.tensors.level_length(scope, access, depth)
        if place == len(levels) - 1 and part.fibres is not None:
            first = later_parent(level, low, part.fibres[0], count)
            past = minimum(add(part.fibres[1], ONE), count)
        elif around is not None and isinstance(level.kind, Segmented):
            within = around.levels[place - 1]
            first, past = parent_among(level, low, *within), parent_past(level, high, *within)
        else:
            first, past = level.kind.parent(level, low, count), parent_past(level, high, ZERO, count)
        low = named(context, f"first_{storage.name}{depth}", first, steps)
        high = named(context, f"past_{storage.name}{depth}", past, steps)
        found.insert(0, (low, high))
    return Parents(part.low, part.high, tuple(found))


def later_parent(level: Level, position: Value, before: Value, parents: Value) -> Value:
    """Return the parent of a position, which is ``before`` or a near later one."""
    if isinstance(level.kind, Segmented):
        return parent_after(level, position, before, parents)
    return level.kind.parent(level, position, parents)


def with_parents(context: Context, scope: Scope, forall: Forall, index: str, part: Window, steps: list[Step]) -> Scope:
    """Return the scope inside a tile of positions, with their parents if a block or warp of a GPU searches for these."""
    shape = context.graph.shape(index)
    deals = forall.tag.member in ("block", "warp") and any(_deals(node) for node in walk(forall.body))
    if not deals or not isinstance(shape, Entries):
        return scope
    access, chain = position_chain(context, shape)
    depth = scope.place(access).depth
    levels = context.tensors.storage(scope, access).levels[depth : depth + len(chain)]
    if len(levels) == 1 or not are_nested(levels):
        return scope
    return scope.lie_below(index, parents_of(context, scope, index, access, levels, part, steps))


def _deals(node: Stmt) -> bool:
    return isinstance(node, Forall) and node.tag.is_dealt
