"""What every relation answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Mapping
from typing import TYPE_CHECKING, ClassVar

from ...frozen import frozen
from ..arithmetic import Bounds, Value
from ..shapes import Range, Shape

if TYPE_CHECKING:
    from ..provenance import Provenance, Recovery
    from .positions import PosRelation


@frozen
class Relation(ABC):
    """One transformation; the parents are what it replaced, the children what it made."""

    @property
    @abstractmethod
    def parents(self) -> tuple[str, ...]:
        """The variables that the relation replaced."""

    @property
    @abstractmethod
    def children(self) -> tuple[str, ...]:
        """The variables that it made."""

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
        """Return the parent from the begin of whose range a child counts; the child has no more values than are left in that range."""
        return None

    renames: ClassVar[bool] = False
    """Whether the child has the values of the parent, and is iterated as that is."""
    replaces: ClassVar[bool] = True
    """Whether there are loops over the children in the place of those over the parents; else the children only follow from these."""
    in_order: ClassVar[bool] = False
    """Whether loops over the children reach stored levels in their order, whole or in pieces; else coordinates are looked up."""

    def space(self, child: str, graph: Provenance) -> str:
        """Return what a child counts: "coordinate", or "position" for stored entries."""
        return graph.space(self.parents[-1])

    def counted(self, graph: Provenance) -> PosRelation:
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
