"""Hashed levels: ``pos`` (parents + 1) delimits each parent's open-addressing table in ``crd``.

A table has no slots, or two, four, eight ..., of which at least one is free; free slots hold -1. A position is a slot. Coordinates are
not sorted, and are found by hashing (``csrc/st_hash.h``).
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ..ir.arithmetic import ONE, ZERO, add, compare, integer, maximum
from ..ir.intrinsics import Intrinsic
from ..ir.nodes import I64, Allocate, Call, For, Run, Step, Steps, Store, Value
from ..numpy_later import np
from ..storage import hashing
from ..storage.kernels import active
from ..storage.level_arrays import LevelArrays
from .kind import Parts
from .level import Level, Listed, NewVariable
from .segments import Segmented, check_positions, check_types, pack_unordered, reached, within
from .traversal import Claimed, Column, Frontier

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..storage.walk import Walk


def _find(crd: NDArray[Any], low: int, high: int, key: int) -> int:
    slot = _vacant(crd, low, high, key) if low < high else -1
    return slot if slot >= 0 and crd[slot] == key else -1


def _vacant(crd: NDArray[Any], low: int, high: int, key: int) -> int:
    """Return the slot that holds a key, or the free slot where it belongs."""
    if not 0 <= low < high <= len(crd):
        raise IndexError(f"a table from {low} to {high} of an array of {len(crd)} elements")
    home = int(hashing.home_slots(np.array([key]), np.array([high - low]))[0])
    places = (low + (home + step & high - low - 1) for step in range(high - low))
    return next(place for place in places if crd[place] == key or crd[place] < 0)


def _table_size(count: int) -> int:
    return int(hashing.table_sizes(np.array([count]))[0])


class Hashed(Segmented):
    """The kind of level that stores the coordinates of each parent in a hash table, without an order."""

    letters = "h"
    ordered = False
    merges = False
    holes = True
    located = True
    places = True
    intrinsics = MappingProxyType({
        "hash_find": Intrinsic(_find, "st_hash_find", "st_hash.h", typed=True, comparisons=lambda _arguments, _result: 1),
        "hash_vacant": Intrinsic(_vacant, "st_hash_vacant", "st_hash.h", typed=True),
        "table_size": Intrinsic(_table_size, "st_table_size", "st_hash.h"),
    })

    def bytes(self, parents: int, children: int, extent: int) -> tuple[int, int]:
        size, _ = super().bytes(parents, children, extent)
        return size, max(children, parents)

    def pack(self, frontier: Frontier, column: Column) -> tuple[LevelArrays, Frontier]:
        return pack_unordered(frontier, column, hashing.table_sizes, hashed=True)

    def unpack(self, walk: Walk, parts: Parts, extent: int) -> Walk:
        kernels = active()
        pos, crd, children = reached(walk, parts)
        taken = np.flatnonzero(crd >= 0)
        parents = kernels.expand(pos, None, np.dtype(np.int64))[taken]
        return walk.down(lambda column: kernels.gather(column, parents), crd[taken], taken if children is None else children[taken])

    def check(self, claimed: Claimed) -> int:
        check_types(claimed, "pos", "crd")
        check_positions(claimed)
        pos, crd, extent = claimed.parts["pos"], claimed.parts["crd"], claimed.extent
        sizes = np.diff(pos)
        taken = np.concatenate([[0], np.cumsum(crd >= 0)])
        full = taken[pos[1:]] - taken[pos[:-1]] >= sizes
        odd = (sizes & (sizes - 1)).any() or (sizes == 1).any() or (full & (sizes > 0)).any() or not within(crd[crd != -1], extent)
        claimed.require(not odd, f"has tables of two, four, eight ... slots, not all taken, with coordinates below {extent}")
        return len(crd)

    def locate(self, level: Level, low: Value, high: Value, coordinate: Value) -> Value:
        return Call("hash_find", (level.reference("crd"), low, high, coordinate), I64)

    def hit(self, level: Level, position: Value, low: Value, high: Value, coordinate: Value) -> Value:
        return compare(">=", position, ZERO)

    def occupied(self, level: Level, position: Value, coordinate: Value) -> Value | None:
        return compare(">=", coordinate, ZERO)

    def within(self, level: Level, coordinate: Value) -> Value:
        return maximum(coordinate, ZERO)  # free slots hold -1

    def slots(self, level: Level, listed: Listed, variable: NewVariable) -> tuple[list[Step], dict[str, Value]]:
        pos, parent = level.array("pos"), variable("parent")
        size = Call("table_size", (listed.count(parent),), I64)
        length = add(listed.parents, ONE)
        return [
            Allocate(pos.name, pos.type, length, zero=True),
            For(parent, ZERO, listed.parents, Steps((Store(pos.name, add(parent, ONE), size),))),
            Run("scan", (level.reference("pos"), length)),
        ], {"pos": length, "crd": level.load("pos", listed.parents)}  # fmt: skip

    def vacant(self, level: Level) -> Value:
        return integer(-1)

    def place(self, level: Level, listed: Listed, parent: Value, entry: Value, coordinate: Value) -> Value:
        low, high = self.bounds(level, parent, None)
        return Call("hash_vacant", (level.reference("crd"), low, high, coordinate), I64)


HASHED = Hashed("hashed")
