"""Values of derived indices, from the coordinates and positions that are known at one place of the nest.

Loops make known what they iterate; what follows from it is computed where it is asked for: the modes of a workspace may be
indices that were collapsed, tiles, or positions (``recover_derived`` of Senanayake et al., Figure 18).
"""

from __future__ import annotations

from collections.abc import Callable

from ..concrete.relations import Bound, Collapse, Coord, Pos, Rename, Split
from ..ir.arithmetic import ZERO, add, multiply, quotient, subtract
from ..ir.nodes import Value
from ..notation.nodes import Access
from .context import Context
from .scope import Scope


def coordinate(context: Context, scope: Scope, index: str) -> Value | None:
    """Return the value of an index, original or derived; None where it is not known yet."""
    if index in scope.coordinates:
        return scope.coordinates[index]
    relation = context.graph.maker(index)
    match relation:
        case None:
            return None
        case Bound() | Rename():
            return coordinate(context, scope, relation.parents[0])
        case Coord():
            return coordinate(context, scope, context.graph.position_relation(relation.position).parent)
        case Pos():
            return _stored_position(context, scope, relation)
        case Collapse() if context.graph.space(index) == "position":
            return _stored_position(context, scope, context.graph.position_relation(index))
        case Collapse():
            outer, inner = coordinate(context, scope, relation.outer), coordinate(context, scope, relation.inner)
            return None if outer is None or inner is None else add(multiply(outer, context.extent(relation.inner)), inner)
        case Split():
            return _piece(context, scope, relation, index)
        case _:
            raise TypeError(f"no value of {type(relation).__name__}")


def known(context: Context, scope: Scope) -> Callable[[str], Value]:
    """Return a function that gives the values of indices that are known at a place."""

    def value(index: str) -> Value:
        found = coordinate(context, scope, index)
        assert found is not None, f"{index} is not known here"
        return found

    return value


def _piece(context: Context, scope: Scope, split: Split, index: str) -> Value | None:
    """One half of a split, from the parent and, for the inner half, from where its tile begins."""
    if index == split.inner and split.inner in scope.bases:
        whole = coordinate(context, scope, root_of(context, scope, index))
        return None if whole is None else subtract(whole, scope.bases[split.inner])
    parent = coordinate(context, scope, split.parent)
    if parent is None:
        return None
    size = context.extent(split.inner)
    outer = quotient(parent, size)
    return outer if index == split.outer else subtract(parent, multiply(outer, size))


def root_of(context: Context, scope: Scope, index: str) -> str:
    """Return the variable whose window an index cuts: through inner halves of splits that are open, and other names."""
    while context.graph.is_derived(index):
        relation = context.graph.made_by(index)
        inside = isinstance(relation, Split) and index == relation.inner and relation.outer in scope.coordinates
        if not inside and not isinstance(relation, (Bound, Rename)):
            break
        index = relation.parents[0]
    return index


def _stored_position(context: Context, scope: Scope, relation: Pos) -> Value | None:
    access = context.operand(relation.access)
    last = context.graph.originals(relation.position)[-1]
    depth = next(depth for depth, level in enumerate(context.storage(access).levels, 1) if level.index == last)
    return position_at(context, scope, access, depth)


def position_at(context: Context, scope: Scope, access: Access, depth: int) -> Value | None:
    """Return the position of the first ``depth`` levels of an access; dense levels follow from their coordinates."""
    place = scope.place(access)
    if place.depth >= depth:
        return place.positions[depth - 1]
    position = place.positions[-1] if place.positions else ZERO
    for level in context.storage(access).levels[place.depth : depth]:
        value = scope.coordinates.get(level.index)
        if not level.kind.full or value is None:
            return None
        position = add(multiply(position, level.extent), value)
    return position
