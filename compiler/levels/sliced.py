"""Sliced levels: ``ROWS`` neighbouring fibres are padded to the longest of them and stored interleaved (SELL-C, Kreutzer et al., 2014).

Parents form slices of ``ROWS``. Slice s has the columns ``slices[s] .. slices[s + 1]``, and each column has a slot for every parent of
the slice: the position of parent p in column c is c * ROWS + p % ROWS. So neighbouring parents are read as one vector. The coordinates
of a parent are sorted in the columns before ``ends[p]``. The slots behind them repeat its last coordinate, or hold 0; they may be read,
and mean nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..ir.arithmetic import ONE, ZERO, add, compare, every, integer, minimum, multiply, quotient, remainder
from ..ir.nodes import BOOL, I64, Call, Select, Type, Value
from ..numpy_later import np
from ..storage.aligned import index_dtype
from ..storage.kernels import active
from ..storage.level_arrays import LevelArrays
from ..storage.sealed import sealed
from .compressed import COMPRESSED
from .dense import MOST_POSITIONS
from .kind import LevelKind, Parts
from .level import Level
from .segments import check_types, within
from .traversal import Claimed, Column, Frontier

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..storage.walk import Walk

ROWS = 4
"""Parents in a slice, as many as a vector of 32 bytes has values of float64. With 8, more slots are empty and kernels are no faster."""


class Sliced(LevelKind):
    """The kind of level that stores neighbouring fibres interleaved, padded to the longest of each slice (SELL-C)."""

    letters = "l"
    stride = ROWS
    merges = False
    holes = True

    def types(self, width: Type) -> dict[str, Type]:
        return {"crd": width, "slices": width, "ends": width}

    def bytes(self, parents: int, children: int, extent: int) -> tuple[int, int]:
        ends = parents * index_dtype(children).itemsize
        return ends + children * index_dtype(extent).itemsize, children  # a lower bound: the lengths of fibres are not known yet

    def pack(self, frontier: Frontier, column: Column) -> tuple[LevelArrays, Frontier]:
        """Store the coordinates of a compressed level, interleaved and padded."""
        packed, below = COMPRESSED.pack(frontier, column)
        assert packed.pos is not None
        assert packed.crd is not None
        starts = active().slices(packed.pos, ROWS)
        if ROWS * int(starts[-1]) >= MOST_POSITIONS:
            column.refuse(f"sliced, and its slots would be {ROWS * int(starts[-1])}; use compressed")
        crd, ends, slots = active().place_beside(packed.pos, packed.crd, ROWS, starts)
        position = slots if below.identity else slots[below.positions(len(column.found))]
        arrays = LevelArrays(crd=sealed(crd), slices=sealed(starts.astype(ends.dtype)), ends=sealed(ends))
        return arrays, Frontier(len(crd), position, ordered=False)

    def unpack(self, walk: Walk, parts: Parts, extent: int) -> Walk:
        crd, starts, ends = parts["crd"], parts["slices"].astype(np.int64), parts["ends"].astype(np.int64)
        parents = np.arange(len(ends)) if walk.positions is None else walk.positions
        first = starts[parents // ROWS]
        pos = np.zeros(len(parents) + 1, np.int64)
        np.cumsum(ends[parents] - first, out=pos[1:])
        slots = _slots(pos, first, parents)
        return walk.down(lambda above: active().expand(pos, above, above.dtype), sealed(active().gather(crd, slots)), slots)

    def check(self, claimed: Claimed) -> int:
        check_types(claimed, "crd", "slices", "ends")
        crd, starts, ends, count = *(claimed.parts[part] for part in ("crd", "slices", "ends")), -(-claimed.parents // ROWS)
        fits = len(starts) == count + 1 and int(starts[0]) == 0 and not (np.diff(starts) < 0).any() and len(crd) == ROWS * int(starts[-1])
        claimed.require(fits, f"has {count} slices of {ROWS} parents, and so many slots in each of their columns")
        numbers = np.arange(claimed.parents) // ROWS
        inside = len(ends) == claimed.parents and bool(((ends >= starts[numbers]) & (ends <= starts[numbers + 1])).all())
        claimed.require(inside, f"has an end for each of {claimed.parents} parents, in its slice")
        claimed.require(within(crd, claimed.extent), f"has coordinates below {claimed.extent}")
        rows = crd.reshape(-1, ROWS)
        columns, lanes = np.nonzero(rows[1:] <= rows[:-1])
        parents = ROWS * (np.searchsorted(starts, columns, side="right") - 1) + lanes
        known = parents < claimed.parents
        beyond = columns[known] + 1 >= np.minimum(ends[parents[known]], starts[parents[known] // ROWS + 1])
        claimed.require(bool(beyond.all()), "has coordinates that increase inside each fibre")
        return len(crd)

    def bounds(self, level: Level, parent: Value, end: Value | None) -> tuple[Value, Value]:
        return self.begin(level, parent), self._slot(level.load("slices", add(quotient(parent, _ROWS), ONE)), parent)

    def begin(self, level: Level, parent: Value) -> Value:
        return self._slot(level.load("slices", quotient(parent, _ROWS)), parent)

    def _slot(self, column: Value, parent: Value) -> Value:
        return add(multiply(column, _ROWS), remainder(parent, _ROWS))

    def under(self, level: Level, parent: Value, present: Value | None) -> Level:
        return replace(level, origin=parent if present is None else Select(present, parent, ZERO, I64))

    def occupied(self, level: Level, position: Value, coordinate: Value) -> Value:
        assert level.origin is not None, f"level of {level.index} stands below no parent"
        return Call("harmless", (compare("<", quotient(position, _ROWS), level.load("ends", level.origin)),), BOOL)

    def search(self, level: Level, low: Value, high: Value, coordinate: Value, function: str, *more: Value) -> Value:
        assert level.origin is not None, f"level of {level.index} stands below no parent"
        key = add(coordinate, ONE) if function == "upper_bound" else coordinate
        full = compare("<", low, high)  # a parent that may be absent has an empty range then, and no end
        past = Select(full, self._slot(level.load("ends", level.origin), level.origin), low, I64)
        return Call("lower_bound_apart", (level.reference("crd"), low, minimum(past, high), key, _ROWS), I64)

    def hit(self, level: Level, position: Value, low: Value, high: Value, coordinate: Value) -> Value:
        return every([compare("<", position, high), self.occupied(level, position, coordinate),
                      compare("==", level.coordinate(position), coordinate)])  # fmt: skip

    def parent(self, level: Level, position: Value, parents: Value) -> Value:
        slices = quotient(add(parents, integer(ROWS - 1)), _ROWS)
        past = Call("upper_bound", (level.reference("slices"), ONE, add(slices, ONE), quotient(position, _ROWS)), I64)
        return add(multiply(add(past, integer(-1)), _ROWS), remainder(position, _ROWS))


_ROWS = integer(ROWS)


def _slots(pos: NDArray[Any], first: NDArray[np.int64], parents: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the slots of the children that ``pos`` delimits; ``first`` has the first column of each parent's slice."""
    shifts = ROWS * (first - pos[:-1]) + parents % ROWS
    return active().expand(pos, shifts, np.dtype(np.int64)) + ROWS * np.arange(int(pos[-1]), dtype=np.int64)


SLICED = Sliced("sliced")
