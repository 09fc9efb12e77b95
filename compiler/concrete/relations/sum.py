"""Sums of indices: the coordinates that compound subscripts mean (Liu et al., "Compiler support for sparse tensor convolutions")."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Generic

from ...frozen import frozen
from ...notation.nodes import Affine
from ..arithmetic import Bounds, Operations, Value
from .relation import Relation

if TYPE_CHECKING:
    from ..provenance import Provenance, Recovery


@frozen
class Unresolved(Generic[Value]):
    """What is left of a sum where some of its indices have values (Definition 4.1, and section 3.1 for what follows from it).

    Attributes:
        arithmetic: computes with the values.
        base: what the constant and the indices that are known add up to.
        terms: (how many values it has from 0 on, coefficient) of each index that is not known.
    """

    arithmetic: Operations[Value]
    base: Value
    terms: tuple[tuple[Value, int], ...] = ()

    def reduced(self, value: Value, factor: int) -> Unresolved[Value]:
        """Return what is left once one more index, whose coefficient is ``factor``, has a value."""
        arith = self.arithmetic
        moved = arith.mul(arith.constant(abs(factor)), value)
        return Unresolved(arith, arith.sub(self.base, moved) if factor < 0 else arith.add(moved, self.base), self.terms)

    def at(self, value: Value, factor: int, coordinate: Value) -> Unresolved[Value]:
        """Return the same with the base for which a value of the last index means a coordinate: one turn of a subscript that
        wraps around."""
        arith = self.arithmetic
        return Unresolved(arith, arith.sub(coordinate, arith.mul(arith.constant(factor), value)), self.terms)

    def _reach(self, sign: int) -> Value:
        """Return the least (sign -1) or the most (1) that the indices that are not known add."""
        arith = self.arithmetic
        total = arith.constant(0)
        for length, factor in self.terms:
            if factor * sign > 0:
                total = arith.add(total, arith.mul(arith.constant(factor), arith.sub(length, arith.constant(1))))
        return total

    @property
    def least(self) -> Value:
        """The least coordinate that is still possible: the offset of the subsection."""
        return self.arithmetic.add(self.base, self._reach(-1))

    @property
    def most(self) -> Value:
        """The greatest coordinate that is still possible."""
        return self.arithmetic.add(self.base, self._reach(1))

    @property
    def reach(self) -> Value:
        """How far it is from the least possible coordinate to the greatest, so the size of the subsection less 1 (Theorem 3.1)."""
        return self.arithmetic.sub(self._reach(1), self._reach(-1))

    def resolved(self, coordinate: Value, factor: int) -> Value:
        """Return the value of the last index, whose coefficient is ``factor``, at a coordinate; rounded down where no value means it."""
        arith = self.arithmetic
        if factor < 0:
            return arith.floordiv(arith.sub(self.base, coordinate), arith.constant(-factor))
        return arith.floordiv(arith.sub(coordinate, self.base), arith.constant(factor))

    def first(self, coordinate: Value, factor: int) -> Value:
        """Return the first value of an index, with a positive coefficient, at which the others reach a coordinate (section 5.2)."""
        return self.arithmetic.ceildiv(self.arithmetic.sub(coordinate, self.most), self.arithmetic.constant(factor))

    def kept(self, keep: Callable[[str, Value], Value], name: str) -> Unresolved[Value]:
        """Return the same with values that ``keep`` gives names to."""
        terms = tuple((keep(f"extent_{name}", length), factor) for length, factor in self.terms)
        return Unresolved(self.arithmetic, keep(f"offset_{name}", self.base), terms)


@frozen
class SumRelation(Relation):
    """``i + j``: the coordinate of a subscript as the child of its indices.

    Loops go over the parents: the child is known where the last of them is, at the resolving edge of its iteration graph; loops over
    the others, at reducing edges, go through the values at which what is left reaches a stored coordinate (sections 3 and 4). Splits
    and other relations may stand above any of the parents.
    """

    subscript: Affine
    replaces = False

    @property
    def parents(self) -> tuple[str, ...]:
        return self.subscript.indices

    @property
    def coordinate(self) -> str:
        """The name of the child, which no index can have."""
        return f"{self.subscript} + 0" if self.subscript.is_index else str(self.subscript)

    @property
    def children(self) -> tuple[str, ...]:
        return (self.coordinate,)

    def space(self, child: str, graph: Provenance) -> str:
        return "coordinate"

    def sources_of_parent(self, parent: str, graph: Provenance) -> tuple[str, ...]:
        return (*self.children, *(other for other in self.parents if other != parent))

    def known(self, arithmetic: Operations[Value], value: Callable[[str], Value], which: Collection[str],
              lengths: Mapping[str, Value] | None = None) -> Unresolved[Value]:  # fmt: skip
        """Return what is left of the sum where some of its indices have the values that ``value`` gives.

        Args:
            which: the indices that are known.
            lengths: how many values others have, those of the unresolved set; indices in neither are left out.
        """
        open_ = tuple((lengths[index], factor) for index, factor in self.subscript.terms if lengths is not None and index in lengths)
        left = Unresolved(arithmetic, arithmetic.constant(self.subscript.constant), open_)
        for index, factor in self.subscript.terms:
            if index in which:
                left = left.reduced(value(index), factor)
        return left

    def factor(self, index: str) -> int:
        """Return the coefficient of an index."""
        return dict(self.subscript.terms)[index]

    def recover_child(self, child: str, recovery: Recovery[Value]) -> Value:
        return self.known(recovery.arithmetic, recovery.value, self.parents).base

    def recover_parent(self, parent: str, recovery: Recovery[Value]) -> Value:
        others = [index for index in self.parents if index != parent]
        left = self.known(recovery.arithmetic, recovery.value, others)
        return left.resolved(recovery.value(self.coordinate), self.factor(parent))

    def child_bounds(self, child: str, recovery: Recovery[Value]) -> Bounds[Value]:
        arith = recovery.arithmetic
        lengths = {index: recovery.length(index) for index in self.parents}
        left = self.known(arith, lambda index: recovery.bounds(index)[0], self.parents)
        spread = Unresolved(arith, left.base, tuple((lengths[index], factor) for index, factor in self.subscript.terms))
        return spread.least, arith.add(spread.most, arith.constant(1))

    def child_extent(self, child: str, graph: Provenance, extents: Mapping[str, int]) -> int | None:
        lengths = [graph.constant_extent(index, extents) for index in self.parents]
        if None in lengths:
            return None
        terms = zip(lengths, self.subscript.terms, strict=True)
        return 1 + sum(abs(factor) * (length - 1) for length, (_, factor) in terms if length is not None)

    def overruns(self, parent: str, graph: Provenance, extents: Mapping[str, int]) -> bool:
        return False  # loops go over the parents, which are in range as far as other relations keep them there

    def __str__(self) -> str:
        return f"{self.coordinate} = sum of {', '.join(self.parents)}"
