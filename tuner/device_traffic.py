"""What the accesses of an assignment ask of the caches of a GPU.

Where lanes read neighbouring elements, a warp asks for as many sectors as hold them; where all read the same, for one; where each reads
from a place of its own, for one a lane.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence

from ..compiler.storage.tensor import Tensor
from .device_lanes import WARP, Lanes
from .device_loops import Loop
from .gathers import scattered_share
from .problem import Problem

SECTOR = 32
"""Bytes that are loaded where one is asked for."""
_ELEMENT, _ENTRY = 8, 12
"""Bytes of an element, and of a stored entry: its value and a coordinate."""
_AT_ONCE = 2
"""Elements that a lane loads at once."""
ROW = 128
"""Bytes of a line of the first-level cache."""
_LINE = 64
"""Bytes that memory moves where a sector is asked for."""
_NEAR, _FAR = 128 << 10, 48 << 20
"""Bytes of the caches: of the first level of a multiprocessor, and of the second level."""
_TABLE = 256
"""Elements above which a workspace is no array of a lane."""
_HELD = 8
"""Components of a result whose sums a lane keeps while it goes through its share."""
_LEAST = 0.02
"""Least share of gathered rows that are not in the first level of cache."""


class Traffic:
    """What the accesses of an assignment have asked for so far; see ``device_work.Work`` for what is counted.

    Args:
        problem: gives extents and operands.
        lanes: who reads and writes.
        driven: the original indices that come from stored coordinates which the assignment reads.
        sources: the operands that store coordinates of an index, each with the level that does.
    """

    def __init__(
        self, problem: Problem, lanes: Lanes, driven: Collection[str], sources: Callable[[str], Iterable[tuple[Tensor, int]]]
    ) -> None:
        self._problem, self._lanes, self._driven, self._sources = problem, lanes, driven, sources
        self._all = lanes.loops[-1].after
        self.sectors = self.instructions = self.atomics = self.keys = self.near = self.far = self.streams = self.own = 0.0

    def add_workspace(self, indices: Sequence[str], extents: Iterable[int]) -> None:
        """Count an access of a workspace: one of known size is an array of the lane, others are tables in memory."""
        around = [loop for loop in self._lanes.loops if not set(indices).isdisjoint(loop.originals)]
        if math.prod(extents) > _TABLE and any(loop.known is None for loop in around):
            self.keys += self._all

    def add_entries(self, indices: Sequence[str]) -> None:
        """Count the reading of stored entries, of these original indices in the order of their levels."""
        place = self._last_loop(indices)
        times, warps = self._times(place), self._lanes.warps(place)
        self.instructions += 2 * warps
        stride = self._lanes.stride
        if stride is None or (stride.index is not None and stride.index not in indices):
            self.sectors += 2 * warps * WARP / self._lanes.of_warp
        elif stride.index is None and stride.step > 1:
            self.sectors += 2 * times * _part(stride.step)
        elif stride.index is None or stride.index == indices[-1]:
            self.sectors += times * _ENTRY / SECTOR
        else:
            self.sectors += 2 * times * _part(self._lanes.row)

    def add_dense(self, indices: Sequence[str]) -> None:
        """Count the reading of an operand that stores all its elements."""
        lanes, place = self._lanes, self._last_loop(indices)
        times, warps = self._times(place), lanes.warps(place)
        inner = [each for each in self._around(indices) if each > lanes.place]
        if inner and place > lanes.place and all(self._is_kept(lanes.loops[each]) for each in inner):
            times = lanes.units * math.prod(lanes.loops[each].length for each in inner)
            warps = times / (WARP * lanes.busy)
        self._move(indices, place, times, warps)
        if any(index in self._driven for index in indices):
            self._gather(indices, times)

    def add_result(self, indices: Sequence[str], is_sum: bool) -> None:
        """Count the storing of results; sums are added to what is stored, but while a lane stays in a row."""
        place = self._last_loop(indices)
        times, warps = self._times(place), self._lanes.warps(place)
        if is_sum:
            rows = self._rows(indices)
            if rows is not None and rows < times:
                times, warps = rows, min(warps, rows / WARP)
        if self._lanes.has_race("atomics"):
            stride = self._lanes.stride
            neighbours = stride is not None and bool(indices) and stride.index == indices[-1]
            self.atomics += times * (_part(1) if neighbours else 1.0)
        again = is_sum and times >= 0.99 * self._all
        self._move(indices, place, times, warps, 2.0 if again else 1.0)

    def _around(self, indices: Sequence[str]) -> list[int]:
        return [place for place, loop in enumerate(self._lanes.loops) if not set(indices).isdisjoint(loop.originals)]

    def _last_loop(self, indices: Sequence[str]) -> int:
        return max(self._around(indices), default=-1)

    def _times(self, place: int) -> float:
        return self._lanes.loops[place].after if place >= 0 else self._lanes.units

    def _is_kept(self, loop: Loop) -> bool:
        """Whether a lane keeps in registers what depends on a loop inside of a unit: it has few of its iterations, or one."""
        few = loop.known is not None or (loop.tag.member == "thread" and loop.length <= self._lanes.count)
        return few and not loop.counts_entries and not self._lanes.follows(loop)

    def _rows(self, indices: Sequence[str]) -> float | None:
        """Return how often lanes with shares of entries store sums: once for each row that they end, and once for each share."""
        lanes = self._lanes
        shares = [loop for loop in lanes.loops if loop.is_share]
        level = next((level for level, index in enumerate(lanes.indices) if index not in indices), len(lanes.indices))
        if not shares or not lanes.indices or self._inside(shares[-1], indices) > _HELD:
            return None
        if not level:
            return self._all
        pieces = max((loop.after for loop in shares[:-1]), default=shares[0].after)
        others = math.prod(float(self._problem.extents.get(index, 1)) for index in indices if index not in lanes.indices)
        return (lanes.positions[level - 1] + pieces) * others

    def _inside(self, share: Loop, indices: Sequence[str]) -> float:
        """Return how many components of a result a lane goes through for each entry of its share: few are summed in registers."""
        loops = self._lanes.loops
        inside = loops[loops.index(share) + 1 :]
        return math.prod(loop.length for loop in inside if not set(indices).isdisjoint(loop.originals))

    def _move(self, indices: Sequence[str], place: int, times: float, warps: float, twice: float = 1.0) -> None:
        """Count what lanes ask for that read or write elements ``times`` times, by so many instructions of ``warps``."""
        lanes, stride, inner = self._lanes, self._lanes.stride, self._lanes.loops[-1]
        last = indices[-1] if indices else None
        tiled = lanes.tile > 1 and place == len(lanes.loops) - 1 and last is not None and inner.stride.index == last
        self.instructions += warps / (min(_AT_ONCE, lanes.tile) if tiled else 1)
        times *= twice
        if stride is None or not self._varies(indices):
            self.sectors += warps * WARP / lanes.of_warp
        elif last is not None and stride.index == last:
            apart = min(2.0, max(1.0, lanes.tile / _AT_ONCE)) * _part(1) if tiled else _part(stride.step)
            self.sectors += times * max(apart, 1 / (lanes.of_warp * lanes.tile))
        elif tiled:
            self.sectors += times * _part(1)
        elif stride.index is None or stride.index in indices or not self._below(stride.index).isdisjoint(indices):
            self.sectors += times
            if inner.originals[0] == last and inner.tag.unit is None:
                self.streams += ROW
                self.own += times * SECTOR * (1 - _part(inner.together))
        else:
            self.sectors += warps * WARP / max(1.0, min(WARP, stride.count))

    def _varies(self, indices: Sequence[str]) -> bool:
        """Whether neighbouring lanes ask for other elements."""
        lanes, stride = self._lanes, self._lanes.stride
        if lanes.dealt is None or stride is None:
            return False
        moved = {*lanes.loops[lanes.dealt].originals, *([] if stride.index is None else self._below(stride.index))}
        return stride.index is None or not moved.isdisjoint(indices)

    def _below(self, index: str) -> set[str]:
        """Return the indices whose stored coordinates depend on an index."""
        levels = self._lanes.indices
        return set(levels[levels.index(index) + 1 :]) if index in levels else set()

    def _gather(self, indices: Sequence[str], times: float) -> None:
        """Count the rows that stored coordinates choose and that are not in the near caches."""
        extents = {index: float(self._problem.extents.get(index, 1)) for index in indices}
        elements = math.prod(extents[index] for index in indices if index not in self._driven)
        chosen, row = times / max(1.0, elements), elements * _ELEMENT
        index = [index for index in indices if index in self._driven][-1]
        self.near += chosen * max(float(SECTOR), row) * max(_LEAST, self._scattered(index, _NEAR / max(row, SECTOR)))
        if math.prod(extents.values()) * _ELEMENT > _FAR:
            self.far += chosen * max(float(_LINE), row) * self._scattered(index, _FAR / row)

    def _scattered(self, index: str, rows: float) -> float:
        return min((scattered_share(tensor, level, rows) for tensor, level in self._sources(index)), default=0.0)


def _part(step: float) -> float:
    """Return the part of a sector that each of several lanes takes whose elements are so many elements apart."""
    return min(1.0, step * _ELEMENT / SECTOR)
