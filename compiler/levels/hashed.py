"""Hashed levels: ``pos`` (parents + 1) delimits each parent's open-addressing table in ``crd``.

A table has no slots or a power of two of them, at least two, never all taken, -1 in free ones; a position is a slot. Coordinates come
unsorted and are found by hashing; ``csrc/st_hash.h`` says how.
"""

from __future__ import annotations

import numpy as np

from ..ir.arithmetic import ZERO, compare, maximum
from ..ir.nodes import I64, Call, Value
from ..storage import hashing
from ..storage.kernels import active
from ..storage.level_arrays import LevelArrays
from .kind import Parts
from .level import Level
from .segments import Segmented, check_positions, check_types, pack_unordered, reached, within
from .traversal import Claimed, Column, Frontier, Walk


class Hashed(Segmented):
    letters = "h"
    ordered = False
    merges = False
    holes = True
    located = True

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
        return maximum(coordinate, ZERO)  # slots without one hold -1


HASHED = Hashed("hashed")
