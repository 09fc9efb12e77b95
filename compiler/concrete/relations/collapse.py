"""Two loops as one."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import TYPE_CHECKING

from ...frozen import frozen
from ..arithmetic import Bounds, Value
from ..shapes import Entries, Nest, Shape
from .relation import Relation

if TYPE_CHECKING:
    from ..provenance import Provenance, Recovery


@frozen
class CollapseRelation(Relation):
    """Two directly nested loops as one, ``fused`` running through their product in the same order."""

    outer: str
    inner: str
    fused: str
    in_order = True

    @property
    def parents(self) -> tuple[str, ...]:
        return (self.outer, self.inner)

    @property
    def children(self) -> tuple[str, ...]:
        return (self.fused,)

    def determines(self, graph: Provenance) -> tuple[str, ...]:
        stored = graph.originals(self.fused) if graph.space(self.fused) == "position" else ()
        return (*stored, *(parent for parent in self.parents if parent not in stored))

    def recover_parent(self, parent: str, recovery: Recovery[Value]) -> Value:
        arith, graph, fused = recovery.arithmetic, recovery.graph, recovery.value(self.fused)
        if graph.space(self.fused) == "position":
            if parent == self.inner:
                return fused
            access, last = graph.position_access(self.inner), graph.originals(self.inner)[-1]
            return recovery.compose(parent, lambda index: arith.coordinate(access, index, fused, last))
        length = recovery.length(self.inner)
        part = arith.floordiv(fused, length) if parent == self.outer else arith.mod(fused, length)
        return arith.add(recovery.bounds(parent)[0], part)

    def recover_child(self, child: str, recovery: Recovery[Value]) -> Value:
        arith, graph, inner = recovery.arithmetic, recovery.graph, recovery.value(self.inner)
        if graph.space(self.fused) == "position":
            return inner
        row = arith.sub(recovery.value(self.outer), recovery.bounds(self.outer)[0])
        column = arith.sub(inner, recovery.bounds(self.inner)[0])
        return arith.add(arith.mul(row, recovery.length(self.inner)), column)

    def child_bounds(self, child: str, recovery: Recovery[Value]) -> Bounds[Value]:
        arith, graph = recovery.arithmetic, recovery.graph
        if graph.space(self.fused) == "position":
            return arith.segment(graph.position_access(self.inner), graph.originals(self.fused), recovery.value)
        return arith.constant(0), arith.mul(recovery.length(self.outer), recovery.length(self.inner))

    def child_extent(self, child: str, graph: Provenance, extents: Mapping[str, int]) -> int | None:
        outer, inner = graph.constant_extent(self.outer, extents), graph.constant_extent(self.inner, extents)
        return None if outer is None or inner is None else outer * inner

    def shape(self, child: str, graph: Provenance, known: Container[str]) -> Shape:
        if graph.space(child) == "position":
            return Entries(child, graph.position_access(child))
        return Nest(self.outer, self.inner, self.fused)

    def child_low(self, child: str, graph: Provenance) -> int | None:
        return 0 if graph.space(child) == "coordinate" else None

    def __str__(self) -> str:
        return f"{self.fused} = ({self.outer}, {self.inner}) collapsed"
