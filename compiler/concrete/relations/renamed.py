"""Loops that keep the values of their parent: with more known of their range, or under another name."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import TYPE_CHECKING

from ...frozen import frozen
from ..arithmetic import Bounds, Value
from ..shapes import Shape, Through
from .relation import Relation

if TYPE_CHECKING:
    from ..provenance import Provenance, Recovery


@frozen
class _Renaming(Relation):
    """A loop with the values of its parent."""

    parent: str
    renames = True
    in_order = True

    @property
    def parents(self) -> tuple[str, ...]:
        return (self.parent,)

    def shape(self, child: str, graph: Provenance, known: Container[str]) -> Shape:
        return Through(self.parent)

    def recover_parent(self, parent: str, recovery: Recovery[Value]) -> Value:
        return recovery.value(self.children[0])

    def recover_child(self, child: str, recovery: Recovery[Value]) -> Value:
        return recovery.value(self.parent)


@frozen
class BoundRelation(_Renaming):
    """``bounded`` is ``parent`` with something known of its range.

    min_exact, max_exact: the range begins, ends at ``amount``; min_constraint, max_constraint: not before, not after it;
    divisible: its length is a multiple of ``amount``.
    """

    bounded: str
    amount: int
    kind: str

    @property
    def children(self) -> tuple[str, ...]:
        return (self.bounded,)

    def fixed_extents(self) -> Mapping[str, int]:
        return {self.parent: self.amount} if self.kind == "max_exact" else {}

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
class RenameRelation(_Renaming):
    """``renamed`` is another name for ``parent``: the loop of a producer that ``precompute`` made. Accesses keep ``parent``."""

    renamed: str

    @property
    def children(self) -> tuple[str, ...]:
        return (self.renamed,)

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
