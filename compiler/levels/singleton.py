"""Singleton levels: one coordinate per parent, ``crd[parent position]``.

Below a compressed level and other singletons they hold further coordinates of each entry. Below other levels every parent has one slot;
a parent without an entry has coordinate 0 there, with the fill value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..ir.arithmetic import ONE, add
from ..ir.nodes import Type, Value
from ..storage.aligned import aligned_full, index_dtype
from ..storage.kernels import active
from ..storage.level_arrays import LevelArrays
from ..storage.sealed import sealed
from .kind import LevelKind, Parts
from .level import Level
from .segments import check_types, within
from .traversal import Claimed, Column, Frontier

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..storage.walk import Walk


class Singleton(LevelKind):
    """The kind of level with exactly one coordinate for each position of the level above."""

    letters = "q"
    shares_positions = True
    repeats = True
    appends = True

    def misplaced(self, above: LevelKind | None) -> str | None:
        if above is None:
            return "a singleton level cannot stand first: it has one coordinate a position of the level above; use compressed"
        if above.plain is not above:
            return f"a singleton level cannot stand below a {above} one, whose coordinates stand once each; use compressed"
        return None

    def types(self, width: Type) -> dict[str, Type]:
        return {"crd": width}

    def bytes(self, parents: int, children: int, extent: int) -> tuple[int, int]:
        return parents * index_dtype(extent).itemsize, parents

    def pack(self, frontier: Frontier, column: Column) -> tuple[LevelArrays, Frontier]:
        """Store one coordinate per position; the entries of one position must agree in it."""
        return LevelArrays(crd=self._coordinates(frontier, column)), frontier

    def _coordinates(self, frontier: Frontier, column: Column) -> NDArray[Any]:
        if not column.shared and column.found.differences[1][column.level]:
            column.refuse("singleton, but a parent has several coordinates; use compressed")
        if frontier.identity:
            return column.coordinates
        if frontier.count and column.extent == 0:
            column.refuse("singleton, but its mode has extent 0")
        crd = aligned_full(frontier.count, 0, column.coordinates.dtype)
        active().scatter(column.coordinates, frontier.positions(len(column.found)), crd)
        return sealed(crd)

    def unpack(self, walk: Walk, parts: Parts, extent: int) -> Walk:
        crd = parts["crd"]
        return walk.alongside(crd if walk.positions is None else active().gather(crd, walk.positions))

    def check(self, claimed: Claimed) -> int:
        check_types(claimed, "crd")
        crd, extent, parents = claimed.parts["crd"], claimed.extent, claimed.parents
        claimed.require(len(crd) == parents and within(crd, extent), f"has one coordinate below {extent} for each of {parents} parents")
        return parents

    def begin(self, level: Level, parent: Value) -> Value:
        return parent

    def bounds(self, level: Level, parent: Value, end: Value | None) -> tuple[Value, Value]:
        return parent, end if end is not None else add(parent, ONE)

    def parent(self, level: Level, position: Value, parents: Value) -> Value:
        return position


SINGLETON = Singleton("singleton")
