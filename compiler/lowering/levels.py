"""Stored tensors as lowering sees them: per level, where its positions begin and end, which coordinate each one holds.

One interface for operands, results and workspaces, so that iteration lattices need not know what they step through (Chou
et al., "Format abstraction for sparse tensor algebra compilers", section 3).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ..format import LevelKind
from ..ir.arithmetic import ONE, ZERO, add, compare, every, load_index, multiply, quotient, remainder, subtract
from ..ir.nodes import BOOL, I64, MAP, ArrayRef, Call, Const, Load, Select, Type, Value
from .scope import Place


@dataclass(frozen=True)
class Level:
    """One level of a stored tensor.

    Attributes:
        kind: dense, compressed, narrow, singleton or hashed.
        index: the index whose coordinates it stores.
        extent: number of coordinates of that index.
        unique: whether a coordinate stands once below a parent.
        pos, crd: names of the index arrays, "" where there is none; pos_type, crd_type their element types.
        length: number of positions of the whole level, for levels with coordinates.
        base: of a narrow level, the array of the coordinates that those of each parent are counted from; origin: its element for
            the parent that ``under`` was told, in 64 bits as everything that is computed of it.
    """

    kind: LevelKind
    index: str
    extent: Value
    unique: bool = True
    pos: str = ""
    crd: str = ""
    pos_type: Type = I64
    crd_type: Type = I64
    length: Value = ZERO
    base: str = ""
    base_type: Type = I64
    origin: Value | None = None

    def under(self, parent: Value, present: Value | None = None) -> Level:
        """Return the level as it is seen below a position of the level above, which may not be ``present``."""
        if self.kind is not LevelKind.NARROW:
            return self
        first = load_index(self.base, parent, self.base_type)
        return replace(self, origin=first if present is None else Select(present, first, ZERO, I64))

    def below(self, above: Place) -> Level:
        """Return the level as it is seen below a place."""
        return self.under(above.positions[-1] if above.positions else ZERO)

    @property
    def steps(self) -> bool:
        """Whether the level stores coordinates that can be stepped through."""
        return self.kind.stores_coordinates

    def bounds(self, above: Place) -> tuple[Value, Value]:
        """Return the positions below a parent, half open."""
        parent = above.positions[-1] if above.positions else ZERO
        if self.kind is LevelKind.SINGLETON:
            return parent, above.end if above.end is not None else add(parent, ONE)
        return load_index(self.pos, parent, self.pos_type), load_index(self.pos, add(parent, ONE), self.pos_type)

    def coordinate(self, position: Value) -> Value:
        """Return the coordinate at a position."""
        stored = load_index(self.crd, position, self.crd_type)
        if self.kind is not LevelKind.NARROW:
            return stored
        assert self.origin is not None, f"level of {self.index} stands below no parent"
        return add(self.origin, stored)

    def search(self, low: Value, high: Value, coordinate: Value, function: str = "lower_bound", *more: Value) -> Value:
        """Return the first position in [low, high) whose coordinate is at least the given one, or ``high``.

        ``more`` are further arguments of the function: the first step of ``gallop``.
        """
        if self.origin is not None:
            coordinate = subtract(coordinate, self.origin)
        return Call(function, (ArrayRef(self.crd, self.crd_type), low, high, coordinate, *more), I64)

    def hit(self, position: Value, low: Value, high: Value, coordinate: Value) -> Value:
        """Return whether the position that ``search`` gave holds the coordinate."""
        if self.kind is LevelKind.HASHED:
            return compare(">=", position, ZERO)
        return every([compare("<", position, high), compare("==", self.coordinate(position), coordinate)])

    def locate(self, low: Value, high: Value, coordinate: Value) -> Value:
        """Return the position of a coordinate; ``hit`` tells whether it is there."""
        if self.kind is LevelKind.HASHED:
            return Call("hash_find", (ArrayRef(self.crd, self.crd_type), low, high, coordinate), I64)
        return self.search(low, high, coordinate)


@dataclass(frozen=True)
class KeyLevel(Level):
    """One mode of the sorted list of keys of a workspace: coordinate = key / stride % extent.

    All modes share the positions of the list, the last one has one position an entry, those above it are not unique.
    """

    stride: Value = ONE
    first: bool = True
    leading: bool = True

    def bounds(self, above: Place) -> tuple[Value, Value]:
        if self.first:
            return ZERO, self.length
        assert above.end is not None
        return above.positions[-1], above.end

    def coordinate(self, position: Value) -> Value:
        key = load_index(self.crd, position, self.crd_type)
        reduced = quotient(key, self.stride)
        return reduced if self.leading else remainder(reduced, self.extent)

    def search(self, low: Value, high: Value, coordinate: Value, function: str = "lower_bound", *more: Value) -> Value:
        """Search for the least key with the coordinate, the greatest for "upper_bound"; ``low`` is a position of the list."""
        key = multiply(coordinate, self.stride)
        if not self.leading:
            span = multiply(self.stride, self.extent)
            above = multiply(quotient(load_index(self.crd, low, self.crd_type), span), span)
            key = add(Select(compare("<", low, high), above, ZERO, I64), key)  # nothing stands at low where there is nothing
        if function == "upper_bound":
            key = add(key, subtract(self.stride, ONE))
        return super().search(low, high, key, function, *more)


@dataclass(frozen=True)
class EntryLevel(Level):
    """One mode of a workspace whose entries are only looked up, one by one: a position is the key of the modes so far.

    The position in the last mode is the slot of the value: the key in an array with ``marks``, the ordinal in a ``map``.
    """

    last: bool = True
    marks: str = ""
    map: str = ""

    def bounds(self, above: Place) -> tuple[Value, Value]:
        key = above.positions[-1] if above.positions else ZERO
        return key, key

    def locate(self, low: Value, high: Value, coordinate: Value) -> Value:
        key = add(multiply(low, self.extent), coordinate)
        return Call("map_find", (ArrayRef(self.map, MAP), key), I64) if self.last and self.map else key

    def hit(self, position: Value, low: Value, high: Value, coordinate: Value) -> Value:
        if not self.last:
            return Const(True, BOOL)
        return compare(">=", position, ZERO) if self.map else Load(self.marks, position, BOOL)


@dataclass(frozen=True)
class Stored:
    """A tensor in memory: its levels and its array of values."""

    name: str
    levels: tuple[Level, ...]
    values: str
    type: Type

    def dense_position(self, place: Place, coordinate: Callable[[str], Value]) -> Value:
        """Return the position of a component whose levels below ``place`` are all dense; ``coordinate`` gives values of indices."""
        position = place.positions[-1] if place.positions else ZERO
        for level in self.levels[place.depth :]:
            assert level.kind is LevelKind.DENSE, f"{self.name}: level of {level.index} is not resolved"
            position = add(multiply(position, level.extent), coordinate(level.index))
        return position


def element(array: str, position: Value, kind: Type) -> Value:
    return Load(array, position, kind)
