"""Levels whose coordinates are counted from what the other indices of an affine subscript add up to (``affine``, ``subsection``)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..frozen import frozen
from ..ir.arithmetic import ONE, add, integer, maximum, remainder
from ..ir.nodes import I64, Select, Value
from .level import Begins, Keep, Level, Place, Subscript, Unresolved

_FAR = 1 << 40
"""The first step of a search that is to be a binary one: no fibre is as long."""


def modulo(value: Value, extent: Value) -> Value:
    """Return a value as a coordinate that wraps."""
    extent = maximum(extent, ONE)
    return remainder(add(remainder(value, extent), extent), extent)


def passed(above: Place, first: Value | None = None) -> Place:
    """Return the place below a level that leaves a subscript open: where it was, or further on, at ``first``."""
    return Place((*above.positions, above.parent), above.end, above.first if first is None else first, begins=above.begins)


def begins(above: Place) -> Begins | None:
    """Return where subsections of the level below a place begin, as far as loops outside know."""
    return above.begins if above.begins is not None and above.begins.depth == above.depth else None


def stride(above: Place) -> Value | None:
    """Return the first step of a search below a place (``OffsetLevel.stride``)."""
    found = begins(above)
    if above.first is not None or found is None:
        return None if above.first is None else ONE
    return Select(found.known, ONE, integer(_FAR), I64)


@frozen(kw_only=True)
class OffsetLevel(Level):
    """A level whose coordinates are counted from what the other indices of a subscript add up to.

    Attributes:
        inner: the level as it is stored; its extent is that of the stored mode.
        subscript: how the coordinates that are stored follow from the indices.
        left: what is left of it here beside the index of the level; None where the indices above are not known.
        stride: the first step of a search from where loops outside have got to among the positions; None where they have not looked.
    """

    inner: Level
    subscript: Subscript
    left: Unresolved | None = None
    stride: Value | None = None

    def given(self, above: Place, coordinate: Callable[[str], Value]) -> Level:
        return replace(self, left=self.subscript.before(coordinate), stride=stride(above))

    @property
    def known(self) -> Unresolved:
        """What is left of the subscript here; only below a place."""
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
        """Return the first position from ``low`` on with a stored coordinate or a greater one; it is near where loops lead to it."""
        if self.stride is None:
            return self.inner.search(low, high, stored)
        return self.inner.search(low, high, stored, "gallop", self.stride)
