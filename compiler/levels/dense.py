"""Dense levels: every coordinate, nothing stored; position = parent position * extent + coordinate."""

from __future__ import annotations

from ..errors import FormatError
from ..ir.arithmetic import add, multiply, quotient, remainder
from ..ir.nodes import Type, Value
from ..native.memory import claim
from ..numpy_later import np
from ..storage.aligned import index_dtype
from ..storage.kernels import active
from ..storage.level_arrays import LevelArrays
from ..storage.sealed import sealed
from ..storage.walk import Walk
from .kind import LevelKind, Parts, Size
from .level import Level
from .traversal import Claimed, Column, Frontier

MOST_POSITIONS = 2**62
"""A level with this many positions or more is refused, so that arithmetic with positions fits into 64 bits."""


class Dense(LevelKind):
    """The kind of level that has every coordinate and stores nothing."""

    letters = "d"
    full = True
    steps = False
    merges = False
    located = True
    inserts = True

    def types(self, width: Type) -> dict[str, Type]:
        return {}

    def positions(self, parts: Parts, parents: int, extent: int) -> int:
        return parents * extent

    def size(self, parents: Size, extent: Size, stored: Size) -> Size:
        return parents * extent

    def bytes(self, parents: int, children: int, extent: int) -> tuple[int, int]:
        return 0, parents * extent

    def pack(self, frontier: Frontier, column: Column) -> tuple[LevelArrays, Frontier]:
        return LevelArrays(), indexed(frontier, column)

    def unpack(self, walk: Walk, parts: Parts, extent: int) -> Walk:
        kind, count = index_dtype(extent), walk.count * extent
        width = kind.itemsize + sum(column.itemsize for column in walk.columns)
        claim(count * width, f"coordinates of {count} positions of dense levels")
        coordinates = sealed(np.tile(np.arange(extent, dtype=kind), walk.count))
        positions = None if walk.positions is None else np.repeat(walk.positions * extent, extent) + coordinates
        return walk.down(lambda above: np.repeat(above, extent), coordinates, positions)

    def check(self, claimed: Claimed) -> int:
        return claimed.parents * claimed.extent

    def begin(self, level: Level, parent: Value) -> Value:
        return multiply(parent, level.extent)

    def coordinate(self, level: Level, position: Value) -> Value:
        return remainder(position, level.extent)

    def locate(self, level: Level, low: Value, high: Value, coordinate: Value) -> Value:
        return add(low, coordinate)

    def parent(self, level: Level, position: Value, parents: Value) -> Value:
        return quotient(position, level.extent)


def indexed(frontier: Frontier, column: Column) -> Frontier:
    """Return the frontier below a level with a position for every coordinate.

    Raises:
        FormatError: there are ``MOST_POSITIONS`` or more.
    """
    count = frontier.count * column.extent
    if count >= MOST_POSITIONS:
        raise FormatError(f"the dense levels of this format have {count} positions; use compressed or hashed levels")
    if frontier.position is None and not frontier.identity:
        return Frontier(count, column.coordinates)
    positions = active().below_dense(frontier.positions(len(column.found)), column.extent, column.coordinates)
    return Frontier(count, positions, ordered=frontier.ordered)


DENSE = Dense("dense")
