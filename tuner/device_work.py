"""What the lanes of a GPU do for one assignment: how long they wait, how many instructions they issue, what they move through the caches.

Lanes of a warp run together. Where they ask for neighbouring elements, 32 bytes serve several of them; where each goes through a row of its
own, every lane asks for 32 bytes of its own, and these are loaded again where the first-level cache does not hold as many rows as there are
lanes. ``device_costs`` says what each of these takes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from ..compiler.concrete.nodes import Assign
from ..compiler.frozen import frozen
from ..compiler.notation.nodes import Access, accesses
from ..compiler.storage.tensor import Tensor
from .device_lanes import Lanes
from .device_loops import DeviceLoops
from .device_traffic import ROW, SECTOR, Traffic

_ALONE = 3
"""Entries that a lane alone sorts in the time of one that a warp sorts; of more, each takes so much longer: it inserts them."""


@frozen
class Work:
    """What one assignment asks of a GPU. Counts are of the whole kernel, but where they are said to be of a lane.

    Attributes:
        unit: "thread", "warp" or "block": what takes iterations of the loop whose shares are apart.
        units: how many there are.
        lanes: of a unit.
        registers: that a lane has at most; None: as many as the compiler gives.
        entries: stored entries that a lane goes through one after the other.
        waits: the same, those counted once whose loads are under way together.
        iterations: of all loops of a lane; ``tile`` of the innermost, if they are neighbouring elements in registers.
        tracked: entries of a lane after which it looks whether their row ends, or as many as take the time of going through those that it
            holds in registers.
        kept: elements that a lane adds, where rows end, to what its unit keeps of rows that several units share.
        reductions: steps in which lanes of a unit combine their sums.
        inserted: entries that a lane adds to a table.
        longest: how many times the mean the longest lane takes.
        searches: steps of the search for the first row of a share.
        sectors: that lanes ask the first level of cache for.
        instructions: of warps.
        shuffles: instructions of warps that combine sums.
        atomics: sectors of a result that several units update.
        keys: updates of tables.
        near: bytes that come from the second level of cache.
        far: bytes that come from memory, beside operands and result.
        streams: bytes of lines of arrays that each lane goes through alone.
        own: bytes of stored entries that are loaded again if the caches do not hold the streams.
        own_near: the same of dense operands and results, which the second level of cache holds.
        is_carried: whether sums of units that share rows are added up by further kernels.
    """

    unit: str
    units: float
    lanes: int
    registers: int | None
    entries: float
    waits: float
    iterations: float
    tile: int
    tracked: float
    kept: float
    reductions: float
    inserted: float
    longest: float
    searches: float
    sectors: float
    instructions: float
    shuffles: float
    atomics: float
    keys: float
    near: float
    far: float
    streams: float
    own: float
    own_near: float
    is_carried: bool


class DeviceWork(DeviceLoops):
    """The work of a program on the operands of a problem; see ``Iterations`` for its arguments."""

    def works(self) -> Iterator[Work]:
        """Yield the work of each assignment in loops."""
        for address, leaf in self._leaves:
            loops = self.loops(address, leaf)
            if loops:
                yield self._work(leaf, Lanes(loops, *self._followed(leaf)))

    def _followed(self, leaf: Assign) -> tuple[Tensor | None, tuple[str, ...], tuple[float, ...]]:
        """Return the operand whose entries the loops around an assignment go through, the indices of its levels, and how many positions
        these have: the first that it reads; else the first of all, as what fills a workspace reads it."""
        read = {access.tensor: access for _, each in self._leaves for access in accesses(each.value) if self._has_levels(access)}
        mine = [access.tensor for access in accesses(leaf.value) if access.tensor in self._prefixes]
        for name in (*mine, *self._prefixes):
            if name in read:
                indices = tuple(read[name].subscripts[mode].index for mode in self._formats[name].order)
                return self._problem.operand(self._sources.get(name, name)), indices, self._prefixes[name]
        return None, (), ()

    def _work(self, leaf: Assign, lanes: Lanes) -> Work:
        traffic = self._traffic(leaf, lanes)
        reads = any(not self._is_workspace(access) for access in accesses(leaf.value))
        streams, own = self._streams(leaf, lanes) if reads else (0.0, 0.0)
        return Work(
            lanes.unit, lanes.units, lanes.count, lanes.registers, entries=lanes.entries if reads else 0.0,
            waits=lanes.waits if reads else 0.0, iterations=lanes.iterations, tile=lanes.tile,
            tracked=self._tracked(leaf, lanes, reads), kept=self._kept(leaf, lanes),
            reductions=lanes.reduction_steps, inserted=_inserted(lanes, traffic.keys), longest=lanes.longest,
            searches=self._searches(leaf, lanes), sectors=traffic.sectors,
            instructions=traffic.instructions + lanes.warps(len(lanes.loops) - 1), shuffles=lanes.shuffles, atomics=traffic.atomics,
            keys=traffic.keys, near=traffic.near, far=traffic.far, streams=streams + traffic.streams, own=own, own_near=traffic.own,
            is_carried=lanes.has_race("temporary"),
        )  # fmt: skip

    def _tracked(self, leaf: Assign, lanes: Lanes, reads: bool) -> float:
        """Return after how many entries a lane looks whether their row has ended: what it only puts into registers needs no row."""
        if not lanes.holds:
            return lanes.tracked
        return lanes.turned if not reads else 0.0 if self._is_workspace(leaf.target) else lanes.tracked

    def _kept(self, leaf: Assign, lanes: Lanes) -> float:
        return 0.0 if self._is_workspace(leaf.target) else lanes.kept(set(self._of(leaf.target)))

    def _traffic(self, leaf: Assign, lanes: Lanes) -> Traffic:
        read = tuple(accesses(leaf.value))
        driven = {index for access in read if access.tensor in self._prefixes for index in self._of(access)}
        traffic = Traffic(self._problem, lanes, driven, self._sources_of)
        for access in read:
            if self._is_workspace(access):
                self._add_workspace(traffic, access)
            elif access.tensor in self._prefixes:
                traffic.add_entries(self._of(access))
            else:
                traffic.add_dense(self._of(access))
        if self._is_workspace(leaf.target):
            self._add_workspace(traffic, leaf.target)
        else:
            traffic.add_result(self._of(leaf.target), leaf.operator == "+=")
        return traffic

    def _add_workspace(self, traffic: Traffic, access: Access) -> None:
        traffic.add_workspace(self._of(access), (self._problem.extents.get(index, 1) for index in access.indices))

    def _of(self, access: Access) -> tuple[str, ...]:
        """Return the original indices of an access, in the order of its subscripts."""
        return tuple(original for index in access.indices for original in self._graph.originals(index))

    def _is_workspace(self, access: Access) -> bool:
        return any(space.name == access.tensor for space in self._program.workspaces)

    def _sources_of(self, index: str) -> Iterator[tuple[Tensor, int]]:
        """Yield the operands that store coordinates of an index, each with the level that does."""
        for _, leaf in self._leaves:
            for access in accesses(leaf.value):
                operand = self._problem.operand(access.tensor) if self._has_levels(access) else None
                for level, mode in enumerate(() if operand is None else operand.format.order):
                    if operand is not None and access.subscripts[mode].index == index and operand.levels[level].crd is not None:
                        yield operand, level

    def _streams(self, leaf: Assign, lanes: Lanes) -> tuple[float, float]:
        """Return through how many arrays of entries each lane goes alone, and the bytes that are loaded again if they are in no cache."""
        stride, ahead = lanes.stride, lanes.loops[-1].together
        if stride is None:
            return 0.0, 0.0
        reads_entries = any(access.tensor in self._prefixes for access in accesses(leaf.value))
        if stride.index is None and stride.step > 1 and reads_entries and not lanes.takes_rows:
            entries = max((loop.after for loop in lanes.loops if loop.counts_entries), default=0.0)
            return 2 * min(ROW, 8 * stride.step), 2 * entries * (SECTOR - min(SECTOR, 8 * min(ahead, stride.step)))
        if not lanes.have_rows or not (lanes.counts_entries or stride.index in lanes.indices):
            return 0.0, 0.0
        found = [(self._arrays_of(leaf, lanes, level), level) for level in range(lanes.covered + 1, lanes.deepest + 1)]
        again = 1.0 if ahead == 1 else max(0.0, 1 - 8 * min(ahead, lanes.row) / SECTOR)
        loaded = sum(count * lanes.positions[level - 1] * min(SECTOR, 8 * lanes.row_of(level)) for count, level in found)
        return sum(count for count, _ in found) * min(ROW, max(SECTOR, 8 * lanes.row)), loaded * again

    def _arrays_of(self, leaf: Assign, lanes: Lanes, level: int) -> int:
        """Return how many arrays of a level a lane goes through: coordinates, positions of the next level, values, the same of a result."""
        own = 1 + (level < lanes.deepest) + (level == len(lanes.indices))
        return own + (not self._is_workspace(leaf.target) and set(lanes.indices[:level]) <= set(self._of(leaf.target)))

    def _searches(self, leaf: Assign, lanes: Lanes) -> float:
        """Return the steps in which a share looks for its first row, at each level, where something depends on the row."""
        outer = (*lanes.loops[: lanes.place + 1], *([] if lanes.dealt is None else [lanes.loops[lanes.dealt]]))
        if not any(loop.is_share for loop in outer):
            return 0.0
        rows = {index for loop in lanes.loops if loop.counts_entries for index in loop.originals[:-1]}
        touched = [access for access in (leaf.target, *accesses(leaf.value)) if self._depends_on_rows(access)]
        if all(rows.isdisjoint(self._of(access)) for access in touched):
            return 0.0
        levels = max(len(loop.originals) for loop in lanes.loops if loop.counts_entries)
        return sum(math.log2(max(2.0, count)) for count in lanes.positions[: max(1, levels - 1)])

    def _depends_on_rows(self, access: Access) -> bool:
        form = self._formats.get(access.tensor)
        return not self._is_workspace(access) and access.tensor not in self._prefixes and (form is None or form.is_dense)


def _inserted(lanes: Lanes, keys: float) -> float:
    """Return the entries that a lane adds to a table, those that it sorts alone as so many more as they take longer."""
    if not keys or not lanes.alone:
        return lanes.entries if keys else 0.0
    own = keys / lanes.units
    return own * max(1.0, own / _ALONE)
