"""What the loop over a variable goes through: the shapes of loops in which relations say how their children are iterated.

Lowering knows these shapes and none of the relations. ``Range``, the range of the variable itself, is the shape of every relation that
does not say another one; the others are the cases of Senanayake et al., sections 5.1 and 5.2.
"""

from __future__ import annotations

from typing import TypeAlias

from ..frozen import frozen
from ..notation.nodes import Access


@frozen
class Range:
    """The range of the variable; what it was made from is recovered from its values."""


@frozen
class Through:
    """What another variable goes through, stored levels included; the variable follows from that one's values."""

    variable: str


@frozen
class Tiles:
    """The tiles of the rest of ``parent``'s range. Inside a tile, that tile is the range of ``parent``, and
    ``inner`` counts from its begin.

    Attributes:
        size: iterations of a tile where that is constant, else None.
        count: how many tiles where that is constant, else None.
    """

    parent: str
    inner: str
    size: int | None
    count: int | None

    @property
    def factor(self) -> int:
        """The constant one of size and count."""
        factor = self.size if self.size is not None else self.count
        assert factor is not None, "a tile has a constant size, or there is a constant number of tiles"
        return factor


@frozen
class Nest:
    """The nest of two variables; for a part of ``fused``, the first and the last row are cut."""

    outer: str
    inner: str
    fused: str


@frozen
class Entries:
    """The stored entries of an access.

    Attributes:
        variable: counts positions; its original indices are those of the levels that are gone through.
        access: whose entries they are.
        cut: the variable whose tiles say which of them; None where they are all below the place at which the access stands.
    """

    variable: str
    access: Access
    cut: str | None = None


@frozen
class Between:
    """The coordinates from the first to the last of a range of stored entries; the first and the last range extend to the ends of
    all coordinates."""

    coordinate: str
    positions: str


@frozen
class Along:
    """The entries that a loop over ``positions`` goes through, and the ends of the fibres that they lie in, in order."""

    positions: str


Shape: TypeAlias = Range | Through | Tiles | Nest | Entries | Between | Along
