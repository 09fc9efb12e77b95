"""A loop in tiles."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import TYPE_CHECKING

from ...frozen import frozen
from ..arithmetic import Bounds, Value
from ..shapes import Range, Shape, Through, Tiles
from .relation import Relation

if TYPE_CHECKING:
    from ..provenance import Provenance, Recovery


@frozen
class SplitRelation(Relation):
    """``parent`` in tiles: ``factor`` iterations of ``inner`` a tile, or ``factor`` tiles (``constant_inner`` False)."""

    parent: str
    outer: str
    inner: str
    factor: int
    constant_inner: bool = True
    in_order = True

    @property
    def parents(self) -> tuple[str, ...]:
        return (self.parent,)

    @property
    def children(self) -> tuple[str, ...]:
        return (self.outer, self.inner)

    def tile(self, recovery: Recovery[Value]) -> Value:
        """Return the number of iterations of a tile."""
        arith = recovery.arithmetic
        factor = arith.constant(self.factor)
        return factor if self.constant_inner else arith.ceildiv(recovery.length(self.parent), factor)

    def recover_parent(self, parent: str, recovery: Recovery[Value]) -> Value:
        arith = recovery.arithmetic
        start = arith.add(recovery.bounds(self.parent)[0], arith.mul(recovery.value(self.outer), self.tile(recovery)))
        return arith.add(start, recovery.value(self.inner))

    def recover_child(self, child: str, recovery: Recovery[Value]) -> Value:
        arith = recovery.arithmetic
        offset = arith.sub(recovery.value(self.parent), recovery.bounds(self.parent)[0])
        if child == self.outer:
            return arith.floordiv(offset, self.tile(recovery))
        return arith.sub(offset, arith.mul(recovery.value(self.outer), self.tile(recovery)))

    def child_bounds(self, child: str, recovery: Recovery[Value]) -> Bounds[Value]:
        arith = recovery.arithmetic
        zero, factor = arith.constant(0), arith.constant(self.factor)
        if (child == self.inner) == self.constant_inner:
            return zero, factor
        return zero, arith.ceildiv(recovery.length(self.parent), factor)

    def child_extent(self, child: str, graph: Provenance, extents: Mapping[str, int]) -> int | None:
        if (child == self.inner) == self.constant_inner:
            return self.factor
        whole = graph.constant_extent(self.parent, extents)
        return None if whole is None else -(-whole // self.factor)

    def child_low(self, child: str, graph: Provenance) -> int | None:
        return 0

    def shape(self, child: str, graph: Provenance, known: Container[str]) -> Shape:
        if child == self.outer:
            return Tiles(self.parent, self.inner, *((self.factor, None) if self.constant_inner else (None, self.factor)))
        return Through(self.parent) if self.outer in known else Range()

    def counts_in(self, child: str) -> str | None:
        return self.parent

    def overruns(self, parent: str, graph: Provenance, extents: Mapping[str, int]) -> bool:
        return super().overruns(parent, graph, extents) or not graph.divisible(self.parent, self.factor, extents)

    def __str__(self) -> str:
        return f"{self.parent} = {self.outer} x {self.inner} ({self.factor} {'a tile' if self.constant_inner else 'tiles'})"
