"""Loops over stored entries: by position, by the coordinates between two positions, along the path of merge-based work."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import TYPE_CHECKING

from ...frozen import frozen
from ...notation.nodes import Access
from ...notation.printer import show
from ..arithmetic import Bounds, Value
from ..shapes import Along, Between, Entries, Shape
from .relation import Relation

if TYPE_CHECKING:
    from ..provenance import Provenance, Recovery


@frozen
class PosRelation(Relation):
    """``position`` runs through the positions of ``access`` at the coordinates of ``parent``."""

    parent: str
    position: str
    access: Access
    in_order = True

    @property
    def parents(self) -> tuple[str, ...]:
        return (self.parent,)

    @property
    def children(self) -> tuple[str, ...]:
        return (self.position,)

    def space(self, child: str, graph: Provenance) -> str:
        return "position"

    def counted(self, graph: Provenance) -> PosRelation:
        return self

    def shape(self, child: str, graph: Provenance, known: Container[str]) -> Shape:
        return Entries(self.position, self.access, self.parent)

    def determines(self, graph: Provenance) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*graph.originals(self.parent), self.parent)))

    def sources_of_child(self, child: str, graph: Provenance) -> tuple[str, ...]:
        return graph.originals(self.parent)

    def recover_parent(self, parent: str, recovery: Recovery[Value]) -> Value:
        position, last = recovery.value(self.position), recovery.graph.originals(self.parent)[-1]
        return recovery.compose(parent, lambda index: recovery.arithmetic.coordinate(self.access, index, position, last))

    def recover_child(self, child: str, recovery: Recovery[Value]) -> Value:
        last = recovery.graph.originals(self.parent)[-1]
        return recovery.arithmetic.search(self.access, last, recovery.value(last), recovery.value)

    def child_bounds(self, child: str, recovery: Recovery[Value]) -> Bounds[Value]:
        arith, indices = recovery.arithmetic, recovery.graph.originals(self.parent)
        index = indices[0]
        if len(indices) > 1 or index == self.parent:
            return arith.segment(self.access, indices, recovery.value)
        low, high = (recovery.given({self.parent: edge}).value(index) for edge in recovery.bounds(self.parent))
        return (arith.search(self.access, index, low, recovery.value), arith.search(self.access, index, high, recovery.value))

    def overruns(self, parent: str, graph: Provenance, extents: Mapping[str, int]) -> bool:
        return False  # the position is guarded before anything is read at it, and what is stored is in range

    def __str__(self) -> str:
        return f"{self.position} = positions of {show(self.access)} at {self.parent}"


@frozen
class CoordRelation(Relation):
    """``coordinate`` runs through the coordinates between those stored at the ends of the range of ``position``.

    They are coordinates of the original index, of which there is one, whichever of its tiles the positions lie in. The ranges of the tiles
    of one position space partition its coordinates, those that are not stored included, so that other operands may be coiterated.
    """

    position: str
    coordinate: str
    in_order = True

    @property
    def parents(self) -> tuple[str, ...]:
        return (self.position,)

    @property
    def children(self) -> tuple[str, ...]:
        return (self.coordinate,)

    def space(self, child: str, graph: Provenance) -> str:
        return "coordinate"

    def shape(self, child: str, graph: Provenance, known: Container[str]) -> Shape:
        return Between(self.coordinate, self.position)

    def _index(self, graph: Provenance) -> str:
        (index,) = graph.originals(self.position)
        return index

    def determines(self, graph: Provenance) -> tuple[str, ...]:
        return self._index(graph), self.position

    def sources_of_child(self, child: str, graph: Provenance) -> tuple[str, ...]:
        return self.position, self._index(graph)

    def sources_of_parent(self, parent: str, graph: Provenance) -> tuple[str, ...]:
        if parent != self.position:
            return (self.coordinate,)
        return (self.coordinate, *graph.made_by(parent).sources_of_child(parent, graph))

    def recover_parent(self, parent: str, recovery: Recovery[Value]) -> Value:
        if parent != self.position:
            return recovery.value(self.coordinate)
        return recovery.graph.made_by(parent).recover_child(parent, recovery)

    def recover_child(self, child: str, recovery: Recovery[Value]) -> Value:
        return recovery.value(self._index(recovery.graph))

    def child_bounds(self, child: str, recovery: Recovery[Value]) -> Bounds[Value]:
        whole = recovery.graph.position_relation(self.position)
        low, high = (self._edge(whole, edge, recovery) for edge in recovery.bounds(self.position))
        return low, high

    def _edge(self, whole: PosRelation, edge: Value, recovery: Recovery[Value]) -> Value:
        """Return the coordinate at one end of the range of positions, or where the tile of coordinates ends around them."""
        arith, index = recovery.arithmetic, self._index(recovery.graph)
        position = recovery.given({self.position: edge}).value(whole.position)
        first, end = recovery.bounds(whole.position)
        low, high = (recovery.given({whole.parent: limit}).value(index) for limit in recovery.bounds(whole.parent))
        high = arith.minimum(high, arith.extent(index))
        stored = recovery.given({whole.position: position}).value(index)
        return arith.select_le(position, first, low, arith.select_le(end, position, high, stored))

    def overruns(self, parent: str, graph: Provenance, extents: Mapping[str, int]) -> bool:
        return False

    def __str__(self) -> str:
        return f"{self.coordinate} = coordinates at {self.position}"


@frozen
class MergePathRelation(Relation):
    """``item`` runs through what ``position`` does and, behind the last entry of each fibre, through the fibre's end.

    Equal shares of items are equal work also where most fibres are empty or one has nearly all entries (Merrill and Garland,
    "Merge-based Parallel Sparse Matrix-Vector Multiplication", section 3). Nothing is computed at ends.
    """

    position: str
    item: str
    in_order = True

    @property
    def parents(self) -> tuple[str, ...]:
        return (self.position,)

    @property
    def children(self) -> tuple[str, ...]:
        return (self.item,)

    def shape(self, child: str, graph: Provenance, known: Container[str]) -> Shape:
        return Along(self.position)

    def _levels(self, graph: Provenance) -> tuple[Access, tuple[str, ...]]:
        return graph.position_access(self.position), graph.originals(self.position)

    def recover_parent(self, parent: str, recovery: Recovery[Value]) -> Value:
        access, indices = self._levels(recovery.graph)
        return recovery.arithmetic.on_path(access, indices[-1], recovery.value(self.item))

    def recover_child(self, child: str, recovery: Recovery[Value]) -> Value:
        access, indices = self._levels(recovery.graph)
        position = recovery.value(self.position)
        return recovery.arithmetic.add(position, recovery.arithmetic.fibre(access, indices[-1], position))

    def child_bounds(self, child: str, recovery: Recovery[Value]) -> Bounds[Value]:
        arith = recovery.arithmetic
        access, indices = self._levels(recovery.graph)
        fibres, entries = (arith.segment(access, names, recovery.value) for names in (indices[:-1], indices))
        return arith.add(fibres[0], entries[0]), arith.add(fibres[1], entries[1])

    def overruns(self, parent: str, graph: Provenance, extents: Mapping[str, int]) -> bool:
        return True  # at the end of a fibre

    def __str__(self) -> str:
        return f"{self.item} = {self.position} and ends of fibres"
