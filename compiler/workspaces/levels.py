"""Levels of workspaces, like those of stored tensors, so that iteration lattices treat both alike."""

from __future__ import annotations

from collections.abc import Callable

from ..frozen import frozen
from ..ir.arithmetic import ONE, ZERO, add, compare, multiply, quotient, remainder, subtract
from ..ir.nodes import BOOL, I64, MAP, ArrayRef, Call, Const, Load, Select, Type, Value
from ..levels import COMPRESSED, DENSE, SINGLETON
from ..levels.level import Level, Place, index_array


@frozen
class KeyLevel(Level):
    """One mode of the sorted list of keys of a workspace: coordinate = key / stride % extent.

    All modes share the positions of the list. In the last mode each entry has one position; the modes above are not unique.
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
        key = self.load("crd", position)
        reduced = quotient(key, self.stride)
        return reduced if self.leading else remainder(reduced, self.extent)

    def search(self, low: Value, high: Value, coordinate: Value, function: str = "lower_bound", *more: Value) -> Value:
        """Search for the least key with the coordinate, for "upper_bound" the greatest; ``low`` is a position of the list."""
        key = multiply(coordinate, self.stride)
        if not self.leading:
            span = multiply(self.stride, self.extent)
            above = multiply(quotient(self.load("crd", low), span), span)
            key = add(Select(compare("<", low, high), above, ZERO, I64), key)  # an empty range has no key at ``low``
        if function == "upper_bound":
            key = add(key, subtract(self.stride, ONE))
        return super().search(low, high, key, function, *more)


@frozen
class EntryLevel(Level):
    """One mode of a workspace whose entries are only located. A position is the key of the modes so far.

    The position in the last mode is the slot of the value: the key itself for an array with ``marks``, the ordinal for a map, the slot for
    a ``table`` of the given size.
    """

    last: bool = True
    marks: str = ""
    map: str = ""
    table: tuple[ArrayRef, Value] | None = None

    def bounds(self, above: Place) -> tuple[Value, Value]:
        return above.parent, above.parent

    def locate(self, low: Value, high: Value, coordinate: Value) -> Value:
        key = add(multiply(low, self.extent), coordinate)
        if self.last and self.table is not None:
            return Call("hash_find", (self.table[0], ZERO, self.table[1], key), I64)
        return Call("map_find", (ArrayRef(self.map, MAP), key), I64) if self.last and self.map else key

    def hit(self, position: Value, low: Value, high: Value, coordinate: Value) -> Value:
        if not self.last:
            return Const(True, BOOL)
        return Load(self.marks, position, BOOL) if self.marks else compare(">=", position, ZERO)


@frozen
class Storage:
    """A tensor in memory: its levels and its array of values."""

    name: str
    levels: tuple[Level, ...]
    values: str
    type: Type

    def dense_position(self, place: Place, coordinate: Callable[[str], Value]) -> Value:
        """Return the position of a component if all levels below ``place`` are dense; ``coordinate`` gives the values of indices."""
        for level in self.levels[place.depth :]:
            assert level.kind.full, f"{self.name}: level of {level.index} is not resolved"
            place = level.descend(place, coordinate)
        return place.parent


def dense_levels(indices: tuple[str, ...], extents: tuple[Value, ...]) -> tuple[Level, ...]:
    """Return one dense level for each index."""
    return tuple(Level(DENSE, index, extent) for index, extent in zip(indices, extents, strict=True))


def key_levels(indices: tuple[str, ...], extents: tuple[Value, ...], keys: str, key_type: Type, count: Value) -> tuple[Level, ...]:
    """Return one level for each mode of a sorted list of keys; loops step through them."""
    levels = []
    for mode, (index, extent) in enumerate(zip(indices, extents, strict=True)):
        stride: Value = ONE
        for inner in extents[mode + 1 :]:
            stride = multiply(stride, inner)
        last = mode == len(indices) - 1
        kind = COMPRESSED if mode == 0 else SINGLETON
        levels.append(
            KeyLevel(
                kind, index, extent, last, index_array("crd", keys, key_type), count, stride=stride, first=mode == 0, leading=mode == 0
            )
        )
    return tuple(levels)


def entry_levels(
    indices: tuple[str, ...], extents: tuple[Value, ...], marks: str = "", keys: str = "", table: tuple[ArrayRef, Value] | None = None
) -> tuple[Level, ...]:
    """Return one level for each mode of a workspace whose entries are only located: in an array of ``marks``, a map ``keys`` or a table."""
    modes = enumerate(zip(indices, extents, strict=True), 1)
    return tuple(
        EntryLevel(COMPRESSED, index, extent, last=mode == len(indices), marks=marks, map=keys, table=table)
        for mode, (index, extent) in modes
    )
