"""Levels whose coordinates are offsets from the sum of the other terms of an affine subscript (``affine``, ``subsection``)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..frozen import frozen
from ..ir.arithmetic import ONE, add, integer, maximum, remainder
from ..ir.nodes import I64, Select, Value
from .level import Begins, CompoundSubscript, Keep, Level, Place, UnresolvedTerms

_FAR = 1 << 40
"""The first step of a gallop that is to be a binary search: no fibre is as long."""


def modulo(value: Value, extent: Value) -> Value:
    """Return a value as a coordinate that wraps."""
    extent = maximum(extent, ONE)
    return remainder(add(remainder(value, extent), extent), extent)


def passed(above: Place, first: Value | None = None) -> Place:
    """Return the place below a level that leaves a subscript open: the same positions, with ``first`` if that is given."""
    return Place((*above.positions, above.parent), above.end, above.first if first is None else first, begins=above.begins)


def begins(above: Place) -> Begins | None:
    """Return where subsections of the level below a place begin, if loops outside have found out."""
    return above.begins if above.begins is not None and above.begins.depth == above.depth else None


def stride(above: Place) -> Value | None:
    """Return the first step of a search below a place (``OffsetLevel.stride``)."""
    found = begins(above)
    if above.first is not None or found is None:
        return None if above.first is None else ONE
    return Select(found.known, ONE, integer(_FAR), I64)


@frozen(kw_only=True)
class OffsetLevel(Level):
    """A level whose coordinates are offsets from the sum of the other terms of a subscript.

    Attributes:
        inner: the stored level; its extent is that of the stored mode.
        subscript: how stored coordinates follow from the indices.
        left: the rest of the subscript without the index of this level; None if the indices above have no values yet.
        stride: the first step of a search from the position that loops outside have reached; None if they have not searched.
    """

    inner: Level
    subscript: CompoundSubscript
    left: UnresolvedTerms | None = None
    stride: Value | None = None

    def given(self, above: Place, coordinate: Callable[[str], Value]) -> Level:
        return replace(self, left=self.subscript.before(coordinate), stride=stride(above))

    @property
    def known(self) -> UnresolvedTerms:
        """The rest of the subscript, which is known only below a place."""
        assert self.left is not None, f"the subscript of {self.index} has terms that are not known"
        return self.left

    def under(self, parent: Value, present: Value | None = None) -> Level:
        return replace(self, inner=self.inner.under(parent, present))

    def read_once(self, keep: Keep) -> Level:
        return replace(self, inner=self.inner.read_once(keep), left=self.known.kept(keep, self.index))

    def bounds(self, above: Place) -> tuple[Value, Value]:
        low, high = self.inner.bounds(above)
        if above.first is not None:
            return above.first, high
        found = begins(above)
        return low if found is None else found.below(above, low), high

    def sought(self, low: Value, high: Value, stored: Value) -> Value:
        """Return the first position from ``low`` on whose stored coordinate is at least ``stored``. The search gallops if loops outside
        have come near."""
        if self.stride is None:
            return self.inner.search(low, high, stored)
        return self.inner.search(low, high, stored, "gallop", self.stride)
