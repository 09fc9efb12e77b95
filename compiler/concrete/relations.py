"""Relations between loop variables: what each transformation did to the indices, in one place each.

Every relation answers the same questions (Senanayake et al., "A Sparse Iteration Space Transformation Framework", sections 3.2 and
5.1 to 5.3): which variables it relates, how a parent is recovered from its children and a child from its parents (Figure 18),
which range a child has given those of its parents (Figure 19), and whether a parent may run out of its range (5.3).

Conventions. A variable has a range ``[low, high)``. The pieces of a split count from 0 within their parent's range, so
``parent = low(parent) + outer * factor + inner``; a collapsed coordinate counts from 0 through the Cartesian product. A
position variable holds absolute positions of the deepest collapsed level of its access; where ``collapse`` joins a coordinate
with a position, the result is a position. A coordinate that ``coord`` makes counts as the variable that ``pos`` replaced.

The rules are written over an ``Arithmetic`` (``concrete.arithmetic``): they run on integers (tests, ``concrete.evaluate``) and build
expressions (``lowering.recovery``). A relation is one class here: what it does not say otherwise is lowered as a loop over the
child's range, inside which the parents are recovered by value.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Mapping
from typing import TYPE_CHECKING, ClassVar

from ..frozen import frozen
from ..notation.nodes import Access
from ..notation.printer import show
from .arithmetic import Bounds, Value
from .shapes import Along, Between, Entries, Nest, Range, Shape, Through, Tiles

if TYPE_CHECKING:
    from .provenance import Provenance, Recovery


@frozen
class Relation(ABC):
    """One transformation; the parents are what it replaced, the children what it made."""

    @property
    @abstractmethod
    def parents(self) -> tuple[str, ...]: ...

    @property
    @abstractmethod
    def children(self) -> tuple[str, ...]: ...

    def determines(self, graph: Provenance) -> tuple[str, ...]:
        """Return what the children determine: the parents, and further variables that follow from them at once."""
        return self.parents

    def sources_of_parent(self, parent: str, graph: Provenance) -> tuple[str, ...]:
        """Return the variables from which one of ``determines`` is recovered."""
        return self.children

    def sources_of_child(self, child: str, graph: Provenance) -> tuple[str, ...]:
        """Return the variables from which a child is recovered: the parents and the children before it."""
        return (*self.parents, *self.children[: self.children.index(child)])

    @abstractmethod
    def recover_parent(self, parent: str, recovery: Recovery[Value]) -> Value:
        """Return one of ``determines``, given the values of its sources (``recover_original`` of Figure 18)."""

    @abstractmethod
    def recover_child(self, child: str, recovery: Recovery[Value]) -> Value:
        """Return a child, given the values of parents and of the other children (``recover_derived`` of Figure 18)."""

    @abstractmethod
    def child_bounds(self, child: str, recovery: Recovery[Value]) -> Bounds[Value]:
        """Return the range of a child, given the ranges of the parents (Figure 19)."""

    def shape(self, child: str, graph: Provenance, known: Container[str]) -> Shape:
        """Return what a loop over a child goes through where the values of some variables are known."""
        return Range()

    def counts_in(self, child: str) -> str | None:
        """Return the parent in whose range, from its begin, a child counts; then it has no more values than that has left."""
        return None

    renames: ClassVar[bool] = False
    """Whether the child has the values of the parent, and is iterated as that is."""
    in_order: ClassVar[bool] = False
    """Whether loops over the children reach stored levels in their order, whole or in pieces; else coordinates are looked up."""

    def space(self, child: str, graph: Provenance) -> str:
        """Return what a child counts: "coordinate", or "position" for stored entries."""
        return graph.space(self.parents[-1])

    def counted(self, graph: Provenance) -> Pos:
        """Return the relation that brought the children into position space; only where they are in it."""
        return graph.position_relation(self.parents[-1])

    def child_extent(self, child: str, graph: Provenance, extents: Mapping[str, int]) -> int | None:
        """Return the length of a child's range where it is a constant."""
        return None

    def fixed_extents(self) -> Mapping[str, int]:
        """Return the extents of parents that the relation makes constants."""
        return {}

    def child_low(self, child: str, graph: Provenance) -> int | None:
        """Return the first value of a child's range where it is a constant."""
        return None

    def child_divisible(self, child: str, factor: int, graph: Provenance, extents: Mapping[str, int]) -> bool:
        """Return whether the length of a child's range, which is no constant, is known to be a multiple of a factor."""
        return False

    def overruns(self, parent: str, graph: Provenance, extents: Mapping[str, int]) -> bool:
        """Return whether a parent, recovered from its children, may lie outside its range."""
        return any(graph.possibly_out_of_bounds(child, extents) for child in self.children)


@frozen
class Split(Relation):
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


@frozen
class Collapse(Relation):
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


@frozen
class Pos(Relation):
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

    def counted(self, graph: Provenance) -> Pos:
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
class Coord(Relation):
    """``coordinate`` runs through the coordinates between those stored at the ends of the range of ``position``.

    The ranges of the tiles of one position space partition its coordinates, those that are not stored included, so that
    other operands may be coiterated.
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

    def determines(self, graph: Provenance) -> tuple[str, ...]:
        return (graph.position_relation(self.position).parent, self.position)

    def sources_of_child(self, child: str, graph: Provenance) -> tuple[str, ...]:
        return (self.position, graph.position_relation(self.position).parent)

    def sources_of_parent(self, parent: str, graph: Provenance) -> tuple[str, ...]:
        if parent != self.position:
            return (self.coordinate,)
        return (self.coordinate, *graph.made_by(parent).sources_of_child(parent, graph))

    def recover_parent(self, parent: str, recovery: Recovery[Value]) -> Value:
        if parent != self.position:
            return recovery.value(self.coordinate)
        return recovery.graph.made_by(parent).recover_child(parent, recovery)

    def recover_child(self, child: str, recovery: Recovery[Value]) -> Value:
        return recovery.value(recovery.graph.position_relation(self.position).parent)

    def child_bounds(self, child: str, recovery: Recovery[Value]) -> Bounds[Value]:
        whole = recovery.graph.position_relation(self.position)
        low, high = (self._edge(whole, edge, recovery) for edge in recovery.bounds(self.position))
        return low, high

    def _edge(self, whole: Pos, edge: Value, recovery: Recovery[Value]) -> Value:
        arith = recovery.arithmetic
        tile = recovery.given({self.position: edge})
        position = tile.value(whole.position)
        first, end = recovery.bounds(whole.position)
        low, high = recovery.bounds(whole.parent)
        stored = whole.recover_parent(whole.parent, tile)
        return arith.select_le(position, first, low, arith.select_le(end, position, high, stored))

    def overruns(self, parent: str, graph: Provenance, extents: Mapping[str, int]) -> bool:
        return False

    def __str__(self) -> str:
        return f"{self.coordinate} = coordinates at {self.position}"


@frozen
class MergePath(Relation):
    """``item`` runs through what ``position`` does and, behind the last entry of each fibre, through the fibre's end.

    Equal shares of items are equal work also where most fibres are empty or one has nearly all entries (Merrill and Garland,
    "Merge-based Parallel Sparse Matrix-Vector Multiplication", section 3). Ends are passed over.
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


@frozen
class Bound(Relation):
    """``bounded`` is ``parent`` with something known of its range.

    min_exact, max_exact: the range begins, ends at ``amount``; min_constraint, max_constraint: not before, not after it;
    divisible: its length is a multiple of ``amount``.
    """

    parent: str
    bounded: str
    amount: int
    kind: str
    renames = True
    in_order = True

    @property
    def parents(self) -> tuple[str, ...]:
        return (self.parent,)

    @property
    def children(self) -> tuple[str, ...]:
        return (self.bounded,)

    def fixed_extents(self) -> Mapping[str, int]:
        return {self.parent: self.amount} if self.kind == "max_exact" else {}

    def shape(self, child: str, graph: Provenance, known: Container[str]) -> Shape:
        return Through(self.parent)

    def recover_parent(self, parent: str, recovery: Recovery[Value]) -> Value:
        return recovery.value(self.bounded)

    def recover_child(self, child: str, recovery: Recovery[Value]) -> Value:
        return recovery.value(self.parent)

    def child_bounds(self, child: str, recovery: Recovery[Value]) -> Bounds[Value]:
        arith = recovery.arithmetic
        low, high = recovery.bounds(self.parent)
        amount = arith.constant(self.amount)
        match self.kind:
            case "min_exact":
                return amount, high
            case "min_constraint":
                return arith.maximum(low, amount), high
            case "max_exact":
                return low, amount
            case "max_constraint":
                return low, arith.minimum(high, amount)
            case _:
                return low, high

    def child_extent(self, child: str, graph: Provenance, extents: Mapping[str, int]) -> int | None:
        whole = graph.constant_extent(self.parent, extents)
        match self.kind:
            case "max_exact":
                low = graph.constant_low(self.parent)
                return None if low is None else self.amount - low
            case "min_exact":
                low = graph.constant_low(self.parent)
                return None if low is None or whole is None else low + whole - self.amount
            case _:
                return whole

    def child_low(self, child: str, graph: Provenance) -> int | None:
        if self.kind == "min_exact":
            return self.amount
        return None if self.kind == "min_constraint" else graph.constant_low(self.parent)

    def child_divisible(self, child: str, factor: int, graph: Provenance, extents: Mapping[str, int]) -> bool:
        if self.kind != "divisible":
            return False
        return self.amount % factor == 0 or graph.divisible(self.parent, factor, extents)

    def __str__(self) -> str:
        return f"{self.bounded} = {self.parent} ({self.kind} {self.amount})"


@frozen
class Rename(Relation):
    """``renamed`` is another name for ``parent``: the loop of a producer that ``precompute`` made. Accesses keep ``parent``."""

    parent: str
    renamed: str
    renames = True
    in_order = True

    @property
    def parents(self) -> tuple[str, ...]:
        return (self.parent,)

    @property
    def children(self) -> tuple[str, ...]:
        return (self.renamed,)

    def shape(self, child: str, graph: Provenance, known: Container[str]) -> Shape:
        return Through(self.parent)

    def recover_parent(self, parent: str, recovery: Recovery[Value]) -> Value:
        return recovery.value(self.renamed)

    def recover_child(self, child: str, recovery: Recovery[Value]) -> Value:
        return recovery.value(self.parent)

    def child_bounds(self, child: str, recovery: Recovery[Value]) -> Bounds[Value]:
        return recovery.bounds(self.parent)

    def child_extent(self, child: str, graph: Provenance, extents: Mapping[str, int]) -> int | None:
        return graph.constant_extent(self.parent, extents)

    def child_low(self, child: str, graph: Provenance) -> int | None:
        return graph.constant_low(self.parent)

    def child_divisible(self, child: str, factor: int, graph: Provenance, extents: Mapping[str, int]) -> bool:
        return graph.divisible(self.parent, factor, extents)

    def __str__(self) -> str:
        return f"{self.renamed} = {self.parent}"
