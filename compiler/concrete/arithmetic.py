"""The operations over which coordinate recovery and derived bounds are written.

Integers implement them in ``concrete.evaluate``, loop-IR expressions in lowering.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from ..notation.nodes import Access

Value = TypeVar("Value")


class Operations(Protocol[Value]):
    """What sums of indices need of the values that they are computed with; division rounds down, what is divided is non-negative."""

    def constant(self, value: int, /) -> Value:
        """Return an integer as a value."""
        ...

    def add(self, left: Value, right: Value, /) -> Value:
        """Return ``left + right``."""
        ...

    def sub(self, left: Value, right: Value, /) -> Value:
        """Return ``left - right``."""
        ...

    def mul(self, left: Value, right: Value, /) -> Value:
        """Return ``left * right``."""
        ...

    def floordiv(self, left: Value, right: Value, /) -> Value:
        """Return the largest whole number that is at most ``left / right``."""
        ...

    def ceildiv(self, left: Value, right: Value, /) -> Value:
        """Return the smallest whole number that is at least ``left / right``."""
        ...

    def mod(self, left: Value, right: Value, /) -> Value:
        """Return what is left of ``left`` after division by ``right``."""
        ...

    def minimum(self, left: Value, right: Value, /) -> Value:
        """Return the smaller of two values."""
        ...

    def maximum(self, left: Value, right: Value, /) -> Value:
        """Return the larger of two values."""
        ...

    def select_le(self, left: Value, right: Value, then: Value, otherwise: Value, /) -> Value:
        """Return ``then`` where ``left <= right``, else ``otherwise``; generated code evaluates only the one that it takes."""
        ...


class Arithmetic(Operations[Value], Protocol[Value]):
    """What recovery and bounds need beside these operations: what is known of indices, and what is stored."""

    def extent(self, index: str, /) -> Value:
        """Return the extent of an original index."""
        ...

    def segment(self, access: Access, indices: tuple[str, ...], value: Callable[[str], Value], /) -> tuple[Value, Value]:
        """Return the range of positions of the level of the last of ``indices``.

        ``indices`` name consecutive levels of the access; ``value`` gives the coordinates of the levels above the first.
        """
        ...

    def coordinate(self, access: Access, index: str, position: Value, last: str, /) -> Value:
        """Return the coordinate of ``index`` on the path that ends at ``position`` of the level of ``last``."""
        ...

    def search(self, access: Access, index: str, coordinate: Value, value: Callable[[str], Value], /) -> Value:
        """Return the first position of the level of ``index`` that holds ``coordinate`` or a later one.

        ``value`` gives the coordinates of the levels above. Where there is none, the end of the segment.
        """
        ...

    def fibre(self, access: Access, index: str, position: Value, /) -> Value:
        """Return the position, in the level above, of the fibre that ``position`` of the level of ``index`` lies in."""
        ...

    def on_path(self, access: Access, index: str, item: Value, /) -> Value:
        """Return the position of the level of ``index`` that is an item of the merge path; past all of them where a fibre ends there.

        Item number ``p + f`` is position ``p`` of fibre ``f``, and the one behind the last of a fibre is its end.
        """
        ...


class Integers:
    """``Operations`` on integers; a division by 0 gives 0."""

    def constant(self, value: int, /) -> int:
        return value

    def add(self, left: int, right: int, /) -> int:
        return left + right

    def sub(self, left: int, right: int, /) -> int:
        return left - right

    def mul(self, left: int, right: int, /) -> int:
        return left * right

    def floordiv(self, left: int, right: int, /) -> int:
        return left // right if right else 0

    def ceildiv(self, left: int, right: int, /) -> int:
        return -(-left // right) if right else 0

    def mod(self, left: int, right: int, /) -> int:
        return left % right if right else 0

    def minimum(self, left: int, right: int, /) -> int:
        return min(left, right)

    def maximum(self, left: int, right: int, /) -> int:
        return max(left, right)

    def select_le(self, left: int, right: int, then: int, otherwise: int, /) -> int:
        return then if left <= right else otherwise


INTEGERS = Integers()

Bounds = tuple[Value, Value]
