"""Padded levels: every parent has as many slots in ``crd`` as the longest fibre has entries. ``width`` holds that number, as in ELLPACK.

The coordinates of a parent are sorted in its first slots. The other slots hold the extent, which is no coordinate, so that all slots are
sorted. The first position of a fibre is computed, not loaded.
"""

from __future__ import annotations

from ..ir.arithmetic import ONE, ZERO, add, compare, minimum, multiply, quotient, subtract
from ..ir.nodes import Allocate, Declare, For, SetVar, Step, Steps, Store, Type, Value
from ..numpy_later import np
from ..storage.aligned import aligned_full, index_dtype
from ..storage.kernels import active
from ..storage.level_arrays import LevelArrays
from ..storage.sealed import sealed
from ..storage.walk import Walk
from .compressed import COMPRESSED
from .dense import MOST_POSITIONS
from .kind import LevelKind, Parts
from .level import Level, Listed, NewVariable
from .segments import check_types
from .traversal import Claimed, Column, Frontier


class Padded(LevelKind):
    """The kind of level in which every parent has as many slots as the longest fibre has entries (ELLPACK)."""

    letters = "p"
    holes = True
    places = True

    def types(self, width: Type) -> dict[str, Type]:
        return {"crd": width, "width": width}

    def bytes(self, parents: int, children: int, extent: int) -> tuple[int, int]:
        return children * index_dtype(extent).itemsize, children  # a lower bound: the longest fibre is not known yet

    def pack(self, frontier: Frontier, column: Column) -> tuple[LevelArrays, Frontier]:
        """Store the coordinates of a compressed level, with free slots between fibres."""
        packed, below = COMPRESSED.pack(frontier, column)
        assert packed.pos is not None
        assert packed.crd is not None
        counts = np.diff(packed.pos)
        width = int(counts.max(initial=0))
        if frontier.count * width >= MOST_POSITIONS:
            column.refuse(f"padded, and its slots would be {frontier.count * width}; use compressed")
        crd = aligned_full(frontier.count * width, column.extent, index_dtype(column.extent))
        shifts = np.arange(frontier.count, dtype=np.int64) * width - packed.pos[:-1]
        slots = active().expand(packed.pos, shifts, np.dtype(np.int64)) + np.arange(len(packed.crd))
        active().scatter(packed.crd, slots, crd)
        position = slots if below.identity else slots[below.positions(len(column.found))]
        arrays = LevelArrays(crd=sealed(crd), width=sealed(np.array([width], index_dtype(width))))
        return arrays, Frontier(len(crd), position, ordered=frontier.ordered)

    def unpack(self, walk: Walk, parts: Parts, extent: int) -> Walk:
        crd, width = parts["crd"], int(parts["width"][0])
        slots = np.arange(len(crd)) if walk.positions is None else (walk.positions[:, None] * width + np.arange(width)).reshape(-1)
        found = crd if walk.positions is None else active().gather(crd, slots)
        taken = np.flatnonzero(found < extent)
        parents = taken // max(1, width)
        return walk.down(lambda above: above[parents], sealed(found[taken]), slots[taken])

    def check(self, claimed: Claimed) -> int:
        check_types(claimed, "crd", "width")
        crd, parents, extent = claimed.parts["crd"], claimed.parents, claimed.extent
        width = int(claimed.parts["width"][0]) if len(claimed.parts["width"]) == 1 else -1
        claimed.require(width >= 0 and len(crd) == parents * width, f"has one width, and so many slots for each of {parents} parents")
        rows = crd.reshape(parents, width) if width else crd.reshape(0, 1)
        claimed.require(bool(((rows >= 0) & (rows <= extent)).all()), f"has coordinates up to {extent}, which stands where none is")
        steps = rows[:, 1:] > rows[:, :-1]
        claimed.require(bool((steps | (rows[:, 1:] == extent)).all()), "has coordinates that increase inside each fibre")
        return len(crd)

    def begin(self, level: Level, parent: Value) -> Value:
        return multiply(parent, level.load("width", ZERO))

    def filled(self, level: Level, low: Value, high: Value) -> Value:
        return level.search(low, high, level.extent)

    def occupied(self, level: Level, position: Value, coordinate: Value) -> Value | None:
        return compare("<", coordinate, level.extent)

    def within(self, level: Level, coordinate: Value) -> Value:
        return minimum(coordinate, subtract(level.extent, ONE))

    def parent(self, level: Level, position: Value, parents: Value) -> Value:
        return quotient(position, level.load("width", ZERO))

    def slots(self, level: Level, listed: Listed, variable: NewVariable) -> tuple[list[Step], dict[str, Value]]:
        longest, parent, width = variable("longest"), variable("parent"), level.array("width")
        return [
            Declare(longest, ZERO),
            For(parent, ZERO, listed.parents, Steps((SetVar(longest, listed.count(parent), "max"),))),
            Allocate(width.name, width.type, ONE),
            Store(width.name, ZERO, longest),
        ], {"crd": multiply(listed.parents, longest), "width": ONE}  # fmt: skip

    def vacant(self, level: Level) -> Value:
        return level.extent

    def place(self, level: Level, listed: Listed, parent: Value, entry: Value, coordinate: Value) -> Value:
        return add(self.begin(level, parent), subtract(entry, listed.begin(parent)))


PADDED = Padded("padded")
