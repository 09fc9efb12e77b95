"""Values and ranges of derived indices at one place of the nest, by the algebra of their relations (``concrete.relations``).

Loops give values to the indices over which they run. Other indices are computed from these where they are needed: the modes of a
workspace may be collapsed indices, tiles, or positions (``recover_derived`` of Senanayake et al., Figure 18).
"""

from __future__ import annotations

from collections.abc import Callable

from ..concrete.provenance import Recovery
from ..concrete.shapes import Entries
from ..frozen import frozen
from ..ir.arithmetic import ZERO, integer, subtract
from ..ir.nodes import Const, Value
from ..notation.nodes import Access
from .context import Context
from .operations import LoopOperations
from .scope import Scope, Window


class UnknownIndexError(KeyError):
    """An index has no value at this place of the nest."""


@frozen
class LoopArithmetic(LoopOperations):
    """``concrete.arithmetic.Arithmetic`` that builds expressions of the loop IR for one place of the nest."""

    context: Context
    scope: Scope

    def extent(self, index: str, /) -> Value:
        return self.context.size(index)

    def segment(self, access: Access, indices: tuple[str, ...], value: Callable[[str], Value], /) -> tuple[Value, Value]:
        """Return the range of all positions of a level; positions in a segment are numbered within it."""
        return ZERO, self.context.tensors.level_length(self.scope, self.context.tensors.operand(access), self._depth(access, indices[-1]))

    def coordinate(self, access: Access, index: str, position: Value, last: str, /) -> Value:
        raise UnknownIndexError(index)  # when a position is known, its coordinate is known already

    def search(self, access: Access, index: str, coordinate: Value, value: Callable[[str], Value], /) -> Value:
        """Return the position of the operand in scope: it was searched when the coordinate got its value."""
        found = position_at(self.context, self.scope, self.context.tensors.operand(access), self._depth(access, index))
        if found is None:
            raise UnknownIndexError(index)
        return found

    def fibre(self, access: Access, index: str, position: Value, /) -> Value:
        """Return the current fibre of the operand."""
        operand, depth = self.context.tensors.operand(access), self._depth(access, index) - 1
        found = position_at(self.context, self.scope, operand, depth)
        level = self.context.tensors.storage(self.scope, operand).levels[depth]
        return level.kind.parent(level, position, self.context.tensors.level_length(self.scope, operand, depth)) if found is None else found

    def on_path(self, access: Access, index: str, item: Value, /) -> Value:
        raise UnknownIndexError(index)  # the item of an entry is known with the entry; that of an end is searched elsewhere

    def _depth(self, access: Access, index: str) -> int:
        levels = self.context.tensors.storage(self.scope, self.context.tensors.operand(access)).levels
        return next(depth for depth, level in enumerate(levels, 1) if level.index == index)


class Here(Recovery[Value]):
    """Values and whole ranges of indices at one place of the nest."""

    def __init__(self, context: Context, scope: Scope) -> None:
        super().__init__(context.graph, LoopArithmetic(context, scope), scope.coordinates)
        self._context, self._scope = context, scope

    def value(self, variable: str) -> Value:
        """Return the value of an index. Raises ``UnknownIndexError`` if it has none yet."""
        found = coordinate(self._context, self._scope, variable)
        if found is None:
            raise UnknownIndexError(variable)
        return found

    def bounds(self, variable: str) -> tuple[Value, Value]:
        """Return the whole range of an index, independent of tiles."""
        if any(self.graph.space(name) == "position" for name in (variable, *self.graph.parents(variable))):
            return ZERO, self.length(variable)
        return super().bounds(variable)

    def length(self, variable: str) -> Value:
        return extent_of(self._context, variable)


def coordinate(context: Context, scope: Scope, index: str) -> Value | None:
    """Return the value of an index, original or derived; None if it has none yet."""
    if index in scope.coordinates:
        return scope.coordinates[index]
    relation = context.graph.maker(index)
    if relation is None:
        return None
    if index in scope.bases:  # an index that counts from the begin of its tile
        whole = coordinate(context, scope, root_of(context, scope, index))
        return None if whole is None else subtract(whole, scope.bases[index])
    try:
        return relation.recover_child(index, Here(context, scope))
    except UnknownIndexError:
        return None


def known(context: Context, scope: Scope) -> Callable[[str], Value]:
    """Return a function that gives the values of indices at a place."""
    return Here(context, scope).value


def following(context: Context, scope: Scope, index: str) -> tuple[tuple[str, Value], ...]:
    """Return what follows from an index and the other children of its relation; empty if one of these has no value.

    Coordinates follow from anything, positions from positions alone: for a coordinate they would have to be searched.
    """
    graph, relation = context.graph, context.graph.maker(index)
    if relation is None or not all(child in scope.coordinates for child in relation.children):
        return ()
    here = Here(context, scope)
    found = (parent for parent in relation.determines(graph) if graph.space(parent) in ("coordinate", graph.space(index)))
    return tuple((parent, relation.recover_parent(parent, here)) for parent in found)


def extent_of(context: Context, index: str) -> Value:
    """Return how many values an index, original or derived, can have."""
    graph, relation = context.graph, context.graph.maker(index)
    constant = graph.constant_extent(index, context.extents)
    if constant is not None:
        return integer(constant)
    if relation is None:
        return context.size(index)
    if relation.renames:
        return extent_of(context, relation.parents[0])
    if graph.space(index) == "coordinate" and graph.space(relation.parents[0]) == "position":  # its range may be the whole index's
        return context.size(graph.originals(index)[0])
    here = Here(context, Scope())
    if isinstance(graph.shape(index), Entries):  # all of them, whichever tile of coordinates they lie in
        return here.arithmetic.segment(graph.position_access(index), graph.originals(index), here.value)[1]
    low, high = relation.child_bounds(index, here)
    return subtract(high, low)


def whole_range(context: Context, scope: Scope, index: str) -> Window:
    """Return the whole range of an index that counts coordinates or pieces, independent of loops around."""
    relation = context.graph.maker(index)
    if relation is None or relation.renames:
        low, high = ZERO, extent_of(context, index)
    else:
        low, high = relation.child_bounds(index, Here(context, scope))
    return Window(low, high, int(high.value) if isinstance(high, Const) and low == ZERO else None)


def root_of(context: Context, scope: Scope, index: str) -> str:
    """Return the variable whose window an index cuts, which may be behind other names and open tiles."""
    return context.graph.gone_through(index, scope.coordinates)[0]


def position_at(context: Context, scope: Scope, access: Access, depth: int) -> Value | None:
    """Return the position of the first ``depth`` levels of an access; dense levels follow from their coordinates."""
    place = scope.place(access)
    if place.depth >= depth:
        return place.positions[depth - 1]
    for level in context.tensors.storage(scope, access).levels[place.depth : depth]:
        if not level.kind.full or level.index not in scope.coordinates:
            return None
        place = level.descend(place, known(context, scope))
    return place.parent
