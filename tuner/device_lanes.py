"""The lanes of a GPU that carry out an assignment: how many, and what one of them goes through."""

from __future__ import annotations

import math
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property

from ..compiler.passes.block_sizes import THREADS
from ..compiler.passes.unrolled_rows import LONGEST
from ..compiler.storage.tensor import Tensor
from .device_loops import WIDE, Loop, Stride, stored_below

WARP = 32
_WARPS = 8
"""Most warps of a block."""
_UNROLLED = 4
"""Loads that the compiler starts together in a loop over a row that one lane goes through."""
_PASSED, _TURN = 1.5, 3.3
"""Times of looking whether a row ends that an entry takes which a lane holds in registers, and the end of a row among these: 9 and 20
instructions for sm_90, where full multiprocessors take one of these times for about six."""
_OTHERS, _HELD = 20, 5
"""Registers of a lane that holds entries, and how many more it has for each: those for sm_90 that hold 4, 8 and 16 have 48, 56 and 101."""
_ENDS_AHEAD = 1.55
"""Power of the number of entries loaded ahead with which the time grows that looking for the ends of their rows takes."""


class Lanes:
    """Who does an assignment.

    Attributes:
        loops: around it, outermost first.
        operand: whose entries they go through, if any; ``indices`` of its levels, and how many ``positions`` these have.
        place: of the loop whose iterations units take; ``unit`` is what one is, ``units`` how many there are, ``count`` their lanes.
        dealt: place of the loop that gives lanes their iterations; None: all lanes do the same.
    """

    def __init__(self, loops: Sequence[Loop], operand: Tensor | None, indices: tuple[str, ...], positions: tuple[float, ...]) -> None:
        self.loops, self.operand, self.indices, self.positions = loops, operand, indices, positions
        units = [loop.tag.member for loop in loops]
        alone = next((place for place, unit in enumerate(units) if unit == "thread"), 0)
        self.place = max((place for place, unit in enumerate(units) if unit in ("block", "warp")), default=alone)
        self.unit = units[self.place] or "thread"
        self.dealt = self.place if self.alone else max((place for place, unit in enumerate(units) if unit == "thread"), default=None)
        self.units = max(loops[self.place].after, 1e-9)
        self.inside = loops[self.place + 1 :]
        self.count = self._count()
        asked = next((loop.tag.chunk for loop in loops if loop.tag.chunking == "registers"), None)
        held = _OTHERS + _HELD * (loops[-1].known or 0) if self.holds else 0
        self.registers = max(asked or 0, held) or None  # what does not fit into those asked for goes to memory, which takes no less time

    @property
    def alone(self) -> bool:
        """Whether each lane is a unit of its own."""
        return self.unit == "thread"

    def _count(self) -> int:
        if self.alone:
            return 1
        if self.unit == "warp":
            return self.loops[self.place].tag.lanes
        dealt = next((loop for loop in self.inside if loop.tag.member == "thread"), None)
        if dealt is not None and dealt.known is None and self.follows(dealt):
            return THREADS  # whatever the length of rows is
        return WARP * min(_WARPS, max(1, math.ceil(dealt.length / WARP))) if dealt is not None else WARP

    @property
    def of_warp(self) -> int:
        """The lanes of a warp that belong to one unit, or that are units."""
        return min(self.count, WARP) if self.unit == "warp" else WARP

    @property
    def stride(self) -> Stride | None:
        """How the work of neighbouring lanes moves; None where all do the same."""
        return None if self.dealt is None else self.loops[self.dealt].stride

    def has_race(self, race: str) -> bool:
        """Return whether a loop around is tagged with a way to handle races, such as "atomics"."""
        return any(loop.tag.race == race for loop in self.loops)

    @cached_property
    def busy(self) -> float:
        """The share of a unit's lanes that have work."""
        if self.dealt is None or self.alone:
            return 1.0
        length = self.loops[self.dealt].length
        return min(1.0, length / (self.count * max(1.0, math.ceil(length / self.count - 1e-9))))

    def warps(self, place: int) -> float:
        """Return how many instructions of warps an instruction in the body of a loop is; -1: outside of all loops."""
        if place < 0:
            return self.units * self.count / WARP
        times, apart = self.loops[place].after, self._apart(place)
        if self.alone:
            return times / WARP
        if self.dealt is not None and place >= self.dealt:
            return times / (WARP * self.busy) * apart
        return (times if place >= self.place else self.units) * self.count / WARP * apart

    def _apart(self, place: int) -> float:
        """Return how many times a warp issues an instruction in the body of a loop since its units have parted: each goes through rows
        inside of rows of its own, whose lengths differ."""
        rows = sum(self.follows(loop) and loop.known is None for loop in self.loops[self.place + 1 : place + 1])
        return WARP / self.of_warp if rows > 1 else 1.0

    def follows(self, loop: Loop) -> bool:
        """Whether a loop goes through stored entries, or coordinates of theirs."""
        return not set(self.indices).isdisjoint(loop.originals)

    def _own(self, loop: Loop) -> float:
        """Return how many iterations of a loop one lane has."""
        return max(1.0, loop.length / self.count if loop.tag.member == "thread" else loop.length)

    @cached_property
    def iterations(self) -> float:
        """Iterations of all loops of a lane."""
        return math.prod(self._own(loop) for loop in self.inside)

    @property
    def entries(self) -> float:
        """Stored entries, and coordinates of outer levels, that a lane goes through one after the other."""
        return self._gone_through[0]

    @property
    def waits(self) -> float:
        """The same, those counted once whose loads are under way together; the rest of a row waits for each."""
        return self._gone_through[1]

    @cached_property
    def _gone_through(self) -> tuple[float, float]:
        entries = waits = 0.0
        each = counted = 1.0
        last = max((place for place, loop in enumerate(self.inside) if self.follows(loop)), default=-1)
        for place, loop in enumerate(self.inside[: last + 1]):
            own, ahead = self._own(loop), self._ahead(place, loop)
            each *= own
            if self.follows(loop):
                counted *= own / min(own, ahead) if loop.known is not None else min(own, own / ahead + (ahead - 1) / 2)
                entries, waits = entries + each, waits + counted
            else:
                counted *= own
        return (entries, waits) if entries else (1.0, 1.0)

    def _ahead(self, place: int, loop: Loop) -> int:
        plain = len(loop.originals) == 1 and loop.tag.unit is None and loop.together == 1
        return _UNROLLED if plain and all(each.tag.member != "thread" for each in self.inside[place + 1 :]) else loop.together

    @property
    def tracked(self) -> float:
        """Entries after which a lane looks whether their row has ended, at each level of rows; more if several are loaded ahead."""
        levels = max((len(loop.originals) - 1 for loop in self.inside if loop.counts_entries), default=0)
        ahead = max((loop.tag.unroll or 1 for loop in self.inside if self.follows(loop)), default=1)
        return self.entries * levels * max(1.0, ahead / 2) ** _ENDS_AHEAD

    @property
    def turned(self) -> float:
        """The same where a lane holds the entries: it goes through them once, together with all of its warp, which stop where a row of one
        of them ends, at any level of rows."""
        levels = max((len(loop.originals) - 1 for loop in self.inside if loop.counts_entries), default=0)
        ends = [min(1.0, rows / max(1.0, self.positions[-1])) for rows in self.positions[-1 - levels : -1]]
        stops = sum(1 - (1 - each) ** self.of_warp for each in ends)
        return self._own(self.loops[-1]) * (_PASSED + _TURN * stops)

    def kept(self, target: AbstractSet[str]) -> float:
        """Return how many elements of rows of the result a lane adds to what its unit keeps of rows that units share.

        Args:
            target: the original indices of the result.
        """
        rows = [place for place, index in enumerate(self.indices) if index in target]
        if not self.has_race("temporary") or not rows or not self.counts_entries:
            return 0.0
        mine = [loop for loop in self.inside if not self.follows(loop) and not target.isdisjoint(loop.originals)]
        ends = self.entries * self.positions[rows[-1]] / max(1.0, self.positions[-1])
        return (1 + ends) * math.prod(map(self._own, mine))

    @property
    def holds(self) -> bool:
        """Whether a lane holds the entries of the innermost loop in registers, if they are in a workspace."""
        inner = self.loops[-1]
        return inner.counts_entries and inner.known is not None and inner.known <= LONGEST

    @property
    def tile(self) -> int:
        """Neighbouring elements that a lane goes through in the innermost loop, in registers."""
        inner = self.loops[-1]
        return inner.known if inner.known is not None and inner.known <= WIDE and not inner.counts_entries else 1

    @cached_property
    def covered(self) -> int:
        """How many levels of the operand the loops down to the units go through."""
        seen = {index for loop in self.loops[: self.place + 1] for index in loop.originals}
        return next((level for level, index in enumerate(self.indices) if index not in seen), len(self.indices))

    @cached_property
    def deepest(self) -> int:
        """How many levels of the operand all loops go through."""
        inside = (self.indices.index(index) + 1 for loop in self.inside for index in loop.originals if index in self.indices)
        return max((self.covered, *inside))

    @cached_property
    def below(self) -> tuple[float, float]:
        """How many entries a unit with a row of its own goes through: at most, and on average."""
        if self.operand is None or self.deepest <= self.covered:
            return 1.0, 1.0
        return stored_below(self.operand, self.covered, self.deepest)

    @property
    def row(self) -> float:
        """Entries of a row that a unit has to itself."""
        return self.below[1] if self.takes_rows else 1.0

    def row_of(self, level: int) -> float:
        """Entries of a level below one position of those that units have."""
        return stored_below(self.operand, self.covered, level)[1] if self.operand is not None and self.takes_rows else 1.0

    @property
    def have_rows(self) -> bool:
        """Whether each lane goes through rows of its own."""
        return self.takes_rows and self.dealt is not None and any(map(self.follows, self.loops[self.dealt + 1 :]))

    @property
    def counts_entries(self) -> bool:
        """Whether units take stored entries or fibres by their positions."""
        return any(loop.counts_entries for loop in self.loops[: self.place + 1])

    @property
    def takes_rows(self) -> bool:
        """Whether units have rows of their own, not shares of several."""
        return self.deepest > self.covered and not any(loop.is_share and loop.known is not None for loop in self.inside)

    @cached_property
    def longest(self) -> float:
        """How many times the mean the lane takes that has most entries."""
        if self.operand is None:
            return 1.0
        shares = [loop for loop in self.inside if loop.is_share and loop.known is not None]
        outer = self.loops[self.place]
        if shares and (self.deepest > self.covered or not self.counts_entries):
            own = [loop for loop in shares if loop.tag.member != "thread" or self.has_race("parallel_reduction")]
            return self._longest_share(shares, math.prod(float(loop.known or 1) for loop in own))
        if outer.is_share and outer.known is None and outer.stride.step > 1:
            return self._longest_share([outer], outer.stride.step)
        if not self.takes_rows:
            return 1.0
        most, mean = self.below
        if any(self.follows(loop) and loop.tag.member == "thread" for loop in self.inside):
            most, mean = max(1.0, most / self.count), max(1.0, mean / self.count)
        return max(1.0, most / max(mean, 1e-3))

    def _longest_share(self, shares: Sequence[Loop], size: float) -> float:
        """Return how much longer a share of so many rows is in which the longest row lies."""
        level = max((self.indices.index(index) + 1 for loop in shares for index in loop.originals if index in self.indices), default=0)
        if self.operand is None or not self.covered <= level < self.deepest:
            return 1.0
        most, mean = stored_below(self.operand, level, self.deepest)
        return max(1.0, most / max(size * mean, 1e-9))

    @property
    def _combine(self) -> float:
        return math.log2(min(WARP, max(2, self.count))) if self.has_race("parallel_reduction") and not self.alone else 0.0

    @property
    def _sums(self) -> float:
        """How many sums lanes combine."""
        return self.loops[self.dealt - 1].after if self.dealt else 1.0

    @property
    def reduction_steps(self) -> float:
        """Steps in which the lanes of a unit combine their sums."""
        return self._combine * max(1.0, self._sums / self.units)

    @property
    def shuffles(self) -> float:
        """Instructions of warps that combine sums."""
        return self._sums * self.of_warp / WARP * self._combine * (1 + (self.count > WARP))
