"""What kinds have in common whose levels have an array ``pos``, which delimits the segment of positions of each parent."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..ir.arithmetic import ONE, ZERO, add, subtract
from ..ir.nodes import I64, Call, Type, Value
from ..numpy_later import np
from ..storage.aligned import aligned_copy, index_dtype, index_dtypes
from ..storage.kernels import active, light
from ..storage.level_arrays import LevelArrays
from ..storage.sealed import sealed
from .kind import LevelKind, Parts
from .level import Level
from .traversal import Claimed, Column, Frontier

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..storage.walk import Walk


class Segmented(LevelKind):
    """A kind with an array ``pos`` that delimits the segment of each parent."""

    has_segments = True

    def types(self, width: Type) -> dict[str, Type]:
        return {"pos": width, "crd": width}

    def bytes(self, parents: int, children: int, extent: int) -> tuple[int, int]:
        return (parents + 1) * index_dtype(children).itemsize + children * index_dtype(extent).itemsize, children

    def unpack(self, walk: Walk, parts: Parts, extent: int) -> Walk:
        pos, crd, children = reached(walk, parts)
        return walk.down(lambda column: light(len(crd)).expand(pos, column, column.dtype), crd, children)

    def parent(self, level: Level, position: Value, parents: Value) -> Value:
        """Return the last p with pos[p] <= position."""
        return parent_among(level, position, ZERO, parents)


def parent_among(level: Level, position: Value, first: Value, past: Value) -> Value:
    """Return the last p in [first, past) with pos[p] <= position; there must be one."""
    return subtract(Call("upper_bound", (level.reference("pos"), add(first, ONE), add(past, ONE), position), I64), ONE)


def parent_past(level: Level, position: Value, first: Value, past: Value) -> Value:
    """Return the first parent in [first, past) whose segment begins at or behind a position, or ``past``."""
    return Call("lower_bound", (level.reference("pos"), first, past, position), I64)


def parent_after(level: Level, position: Value, before: Value, parents: Value) -> Value:
    """Return the last parent with pos[parent] <= position, by galloping from ``before``, which is at or before it."""
    first_past = Call("gallop", (level.reference("pos"), add(before, ONE), add(parents, ONE), add(position, ONE), ONE), I64)
    return subtract(first_past, ONE)


def reached(walk: Walk, parts: Parts) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.int64] | None]:
    """Return (segments, coordinates, positions) below the parents that a walk has reached."""
    pos, crd = parts["pos"], parts["crd"]
    if walk.positions is None:
        return pos, crd, None
    begins = pos[walk.positions].astype(np.int64)
    counts = pos[walk.positions + 1] - begins
    ends = np.zeros(walk.count + 1, np.int64)
    np.cumsum(counts, out=ends[1:])
    kernels = light(2 * int(ends[-1]))
    children = kernels.expand(ends, begins - ends[:-1], np.dtype(np.int64)) + np.arange(ends[-1])
    return ends, kernels.gather(crd, children), children


def pack_unordered(
    frontier: Frontier, column: Column, sizes: Callable[[NDArray[np.int64]], NDArray[np.int64]], hashed: bool
) -> tuple[LevelArrays, Frontier]:
    """Pack below parents in any order; ``sizes`` gives the positions that each parent takes for its number of children."""
    kernels = active()
    parent, first = frontier.positions(len(column.found)), column.first
    counts = kernels.count_children(first, column.last, parent, frontier.count)
    starts = np.zeros(frontier.count + 1, np.int64)
    np.cumsum(sizes(counts), out=starts[1:])
    crd, child = kernels.place_children(first, column.last, parent, starts, column.coordinates, hashed)
    pos = aligned_copy(starts, index_dtype(int(starts[-1])))
    return LevelArrays(sealed(pos), sealed(crd)), Frontier(int(starts[-1]), child, ordered=False)


def check_positions(claimed: Claimed) -> None:
    """Check that segments follow one another and cover the coordinates."""
    pos, crd = claimed.parts["pos"], claimed.parts["crd"]
    fits = len(pos) == claimed.parents + 1 and int(pos[0]) == 0 and int(pos[-1]) == len(crd) and not (np.diff(pos) < 0).any()
    claimed.require(fits, f"has {claimed.parents} positions + 1, which begin at 0, do not decrease, and end at the length of crd")


def within(crd: NDArray[Any], extent: int) -> bool:
    """Whether all coordinates are below an extent."""
    return not len(crd) or (int(crd.min()) >= 0 and int(crd.max()) < extent)


def check_types(claimed: Claimed, *parts: str) -> None:
    """Check that arrays hold integers of 32 or 64 bits."""
    claimed.require(all(claimed.parts[part].dtype in index_dtypes() for part in parts), "has index arrays of int32 or int64")


def check_sorted(claimed: Claimed, crd: NDArray[Any]) -> None:
    """Check that the coordinates of each segment increase."""
    state = active().check_segments(claimed.parts["pos"], crd, len(crd), claimed.extent)
    claimed.require(state != 2, f"has coordinates below {claimed.extent}")
    claimed.require(state != 1 or claimed.repeats, "has coordinates that increase inside each fibre")
