"""Bitmap levels: a position for every coordinate, as in dense levels, and in ``bits`` one bit for each: whether an entry is stored there.

Bits are in words of 64, the lowest first; bits behind the last position are 0. Finding a coordinate takes one shift, so loops run over
the whole range, or over another operand, and test the bits.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ..ir.arithmetic import ONE, add, ceiling_quotient, integer, minimum, multiply, quotient, subtract
from ..ir.intrinsics import Intrinsic
from ..ir.nodes import BOOL, Call, Run, Step, Type, Value
from ..native.memory import FLOOR, claim
from ..numpy_later import np
from ..storage.aligned import index_dtype
from ..storage.level_arrays import LevelArrays
from ..storage.sealed import sealed
from .dense import MOST_POSITIONS, indexed
from .kind import LevelKind, Parts, Size
from .level import Level
from .traversal import Claimed, Column, Frontier

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..storage.walk import Walk


def _have(bits: NDArray[Any], position: int) -> bool:
    return bool(int(bits[_word(bits, position)]) >> (position & 63) & 1)


def _mark(bits: NDArray[Any], position: int) -> None:
    bits[_word(bits, position)] |= np.uint64(1 << (position & 63))


def _word(bits: NDArray[Any], position: int) -> int:
    if not 0 <= position < 64 * len(bits):
        raise IndexError(f"bit {position} of {len(bits)} words")
    return position >> 6


class Bitmap(LevelKind):
    """The kind of level with a position for every coordinate, and a bit for each that says whether an entry is stored."""

    letters = "b"
    steps = False
    merges = False
    holes = True
    located = True
    relative = True
    inserts = True
    intrinsics = MappingProxyType({
        "bits_have": Intrinsic(_have, "st_bits_have", "st_bits.h", comparisons=lambda _arguments, _result: 1, gives=BOOL),
        "bits_mark": Intrinsic(_mark, "st_atomic_mark", "st_atomic.h", updates=True),
    })

    def types(self, width: Type) -> dict[str, Type]:
        return {"bits": Type("u64")}

    def positions(self, parts: Parts, parents: int, extent: int) -> int:
        return parents * extent

    def size(self, parents: Size, extent: Size, stored: Size) -> Size:
        return parents * extent

    def bytes(self, parents: int, children: int, extent: int) -> tuple[int, int]:
        return 8 * _words(parents * extent), parents * extent

    def pack(self, frontier: Frontier, column: Column) -> tuple[LevelArrays, Frontier]:
        below = indexed(frontier, column)
        bits = np.zeros(_words(below.count), np.uint64)
        positions = below.positions(len(column.found)) if below.count < MOST_POSITIONS else np.zeros(0, np.int64)
        np.bitwise_or.at(bits, positions >> 6, np.left_shift(np.uint64(1), (positions & 63).astype(np.uint64)))
        return LevelArrays(bits=sealed(bits)), below

    def unpack(self, walk: Walk, parts: Parts, extent: int) -> Walk:
        if walk.count * extent > FLOOR:
            claim(9 * walk.count * extent, f"the positions of {walk.count * extent} coordinates of bitmap levels")
        if walk.positions is None:
            present = np.flatnonzero(_unpacked(parts["bits"])[: walk.count * extent])
            parents, positions = present // max(1, extent), present
        else:
            candidates = (walk.positions[:, None] * extent + np.arange(extent)).reshape(-1)
            kept = np.flatnonzero(_are_set(parts["bits"], candidates))
            parents, positions = kept // max(1, extent), candidates[kept]
        coordinates = (positions % max(1, extent)).astype(index_dtype(extent))
        return walk.down(lambda above: above[parents], sealed(coordinates), positions)

    def check(self, claimed: Claimed) -> int:
        bits, positions = claimed.parts["bits"], claimed.parents * claimed.extent
        claimed.require(bits.dtype == np.uint64 and len(bits) == _words(positions), f"has words of 64 bits for {positions} positions")
        claimed.require(not (positions % 64 and int(bits[-1]) >> (positions % 64)), f"has bits for no more than {positions} positions")
        return positions

    def sampled(self, parts: Parts, places: NDArray[np.int64], extent: int) -> NDArray[np.int64]:
        return np.where(_are_set(parts["bits"], places), places % max(1, extent), -1)

    def begin(self, level: Level, parent: Value) -> Value:
        return multiply(parent, level.extent)

    def coordinate(self, level: Level, position: Value) -> Value:
        assert level.origin is not None, f"level of {level.index} stands below no parent"
        return subtract(position, level.origin)

    def under(self, level: Level, parent: Value, present: Value | None) -> Level:
        return replace(level, origin=multiply(parent, level.extent))

    def locate(self, level: Level, low: Value, high: Value, coordinate: Value) -> Value:
        return add(low, coordinate)

    def hit(self, level: Level, position: Value, low: Value, high: Value, coordinate: Value) -> Value:
        return Call("bits_have", (level.reference("bits"), position), BOOL)

    def occupied(self, level: Level, position: Value, coordinate: Value) -> Value | None:
        return Call("bits_have", (level.reference("bits"), position), BOOL)

    def within(self, level: Level, coordinate: Value) -> Value:
        """Return a safe coordinate: that of a position of the next parent, counted from this parent, is past the extent."""
        return minimum(coordinate, subtract(level.extent, ONE))

    def parent(self, level: Level, position: Value, parents: Value) -> Value:
        return quotient(position, level.extent)

    def room(self, level: Level, positions: Value) -> dict[str, Value]:
        return {"bits": ceiling_quotient(positions, integer(64))}

    def insert(self, level: Level, position: Value) -> list[Step]:
        return [Run("bits_mark", (level.reference("bits"), position))]


def _words(positions: int) -> int:
    return -(-positions // 64)


def _unpacked(bits: NDArray[Any]) -> NDArray[np.uint8]:
    """Return every bit as a byte."""
    return np.unpackbits(bits.astype("<u8", copy=False).view(np.uint8), bitorder="little")


def _are_set(bits: NDArray[Any], positions: NDArray[np.int64]) -> NDArray[np.bool_]:
    return ((bits[positions >> 6] >> (positions & 63).astype(np.uint64)) & np.uint64(1)).astype(bool)


BITMAP = Bitmap("bitmap")
