"""Assembly of sparse results: the loops append entries in the order of the levels, or insert them.

A level to which coordinates are appended has a cursor, the position of the next one; singletons below it share the cursor. A loop over
the index of a level opens it (it remembers the cursor of the level below) and closes it (it records how many children were appended, and
appends its own coordinate if there are any). Segments are counted first, ``pos[parent + 1] = count``, and summed at the end, so that
parents without children, also those that a sparse loop skips, need no step of their own. Levels that are inserted into have a position
for every coordinate, which may come in any order, and their kind marks the positions that are used.

``insertion`` runs loops twice, to count and to fill; ``pieces`` has threads append to arrays of their own; ``placing`` moves entries whose
positions are known only after counting.
"""

from __future__ import annotations

from ..frozen import frozen
from ..ir.arithmetic import ONE, ZERO, add, compare, integer, minimum, multiply, subtract
from ..ir.names import Names
from ..ir.nodes import (
    BOOL,
    I64,
    Allocate,
    ArrayRef,
    Const,
    Declare,
    Fill,
    Grow,
    If,
    Publish,
    Run,
    SetVar,
    Step,
    Steps,
    Store,
    Type,
    Value,
    Var,
)  # fmt: skip
from .assembled_levels import AssembledLevel, cursor, known
from .result_tree import ResultTree

START = 1024  # the first size of a growing array, in elements


@frozen
class Phase:
    """One pass through the loops that assemble a result.

    Attributes:
        stores: whether entries are stored; otherwise only cursors move.
        grows: whether arrays may have to grow for them; otherwise they have the size that was counted.
    """

    stores: bool = True
    grows: bool = False


APPEND, COUNT, FILL = Phase(grows=True), Phase(stores=False), Phase()


@frozen
class Assembly(ResultTree):
    """The levels of an assembled result and the steps that fill them, at one place of the nest.

    Attributes:
        values: the array of values in the order in which entries are appended; ``given`` is the array that is handed to the caller.
        capacity, used: the size of that array, and whether the current block of dense levels has any entry.
        zero: the value at positions without an entry.
        phase: ``APPEND``, or one of the two passes of an insertion, ``COUNT`` and ``FILL``.
        reserved: whether there is already room for all that the loop around appends.
        inserted: whether the result is counted and then filled, so that its totals are known before the second pass.
        apart: whether threads append to arrays of their own, which are put together later; ``pieces`` has their names.
    """

    values: str
    given: str
    capacity: Var
    used: Var
    value_type: Type
    zero: Const
    phase: Phase = APPEND
    reserved: bool = False
    inserted: bool = False
    apart: bool = False

    @property
    def counting(self) -> bool:
        """Whether this pass only counts entries, and stores none."""
        return not self.phase.stores

    def open(self, index: str, coordinates: dict[str, Value], names: Names) -> tuple[list[Step], list[Step]]:
        """Return the steps before and after the body of a loop over an index of the result."""
        level = self.level_of(index)
        entry = self.levels[level]
        child = self.child(level)
        inserts, stored = entry.kind.inserts, entry.cursor is not None
        if child is None:
            return self._open_last(level, coordinates) if level == self.last and level + 1 < len(self.levels) else ([], [])
        below = self.levels[child]
        if not stored and not (inserts and below.head == level + 1 and not self.counting):
            return [], []
        begin = Var(names.local(f"begin_{self.name}{child + 1}"), I64)
        before: list[Step] = [Declare(begin, cursor(below))]
        count = subtract(cursor(below), begin)
        if inserts:
            counted: list[Step] = [Store(below.pos, add(self.position(level, coordinates), ONE), count)]
            notes = self._notes(level, coordinates)
            if self.phase == FILL and self.stored_above(level) is not None:
                counted, notes = [], [*counted, *notes]  # a block without children is dropped: its place may belong to another thread
            return before, [*counted, If(compare(">", cursor(below), begin), Steps(tuple(notes)))] if notes else counted
        record: list[Step] = []
        if below.head == level + 1:
            record = self._stored(below.pos, I64, below.pos_capacity, add(cursor(entry), ONE), count)
        elif self.phase.grows:
            before += self._blank_segments(level, below)
        return before, [If(compare(">", cursor(below), begin), Steps((*record, *self._append(entry, coordinates))))]

    def _notes(self, level: int, coordinates: dict[str, Value]) -> list[Step]:
        """Return the steps that mark the current coordinates as used, in the levels that are inserted into down to ``level``."""
        places = range(0 if self.stored_above(level) is None else level + 1, level + 1)
        levels = ((self.levels[place].level, self.position(place, coordinates)) for place in places)
        return [step for found, position in levels for step in found.kind.insert(found, position)]

    def _blank_segments(self, level: int, below: AssembledLevel) -> list[Step]:
        """Make empty segments for all dense positions below the next position of a level."""
        size = self.block(level)
        start = add(multiply(cursor(self.levels[level]), size), ONE)
        end = add(start, size)
        return [Grow(below.pos, I64, known(below.pos_capacity), end), Fill(below.pos, start, end, Const(0, I64))]

    def _open_last(self, level: int, coordinates: dict[str, Value]) -> tuple[list[Step], list[Step]]:
        """Reserve the block of values of the dense levels below the last stored level, and keep it if it is used.

        While filling, all blocks are blank already, and an unused block belongs to the next entry, which another thread may be filling.
        """
        entry, size = self.levels[level], self.block(level)
        start = multiply(cursor(entry), size)
        end = add(start, size)
        before: list[Step] = [SetVar(self.used, Const(False, BOOL))]
        if self.phase.grows:
            before += [Grow(self.values, self.value_type, self.capacity, end), Fill(self.values, start, end, self.zero)]
        return before, [If(self.used, Steps(tuple(self._append(entry, coordinates))))]

    def _stored(self, array: str, kind: Type, capacity: Var | None, position: Value, value: Value) -> list[Step]:
        """Store an element; while appending make room for it, while counting do nothing."""
        if self.counting:
            return []
        if self.phase.grows and not (self.reserved and array in self._grown):
            return [Grow(array, kind, known(capacity), add(position, ONE)), Store(array, position, value)]
        return [Store(array, position, value)]

    @property
    def _grown(self) -> tuple[str, ...]:
        """The arrays that grow with every entry of the last level to which entries are appended."""
        return (self.values, *(entry.crd for entry in self.levels[self.last].entries))

    def _append(self, entry: AssembledLevel, coordinates: dict[str, Value]) -> list[Step]:
        place, steps = cursor(entry), list[Step]()
        for stored in entry.entries:
            steps += self._stored(stored.crd, stored.width, stored.crd_capacity, place, coordinates[stored.index])
        return [*steps, SetVar(place, ONE, "+")]

    def store(self, coordinates: dict[str, Value], value: Value, op: str, *, atomic: bool) -> list[Step]:
        """Return the steps that enter one component; ``atomic``: others may add to it at the same time."""
        bottom = len(self.levels) - 1
        if self.last < bottom:
            position = self.position(bottom, coordinates)
            stored: list[Step] = [] if self.counting else [Store(self.values, position, value, op, atomic)]
            return [*stored, *(self._notes(bottom, coordinates) if self.last < 0 else [SetVar(self.used, Const(True, BOOL))])]
        assert not op, "a component of an appended level is stored once"
        entry = self.levels[bottom]
        room = self._stored(self.values, self.value_type, self.capacity, cursor(entry), value)
        return [*room, *self._append(entry, coordinates)]

    def reserve(self, count: Value) -> list[Step]:
        """Return the steps that make room for ``count`` further entries of the last level."""
        entry = self.levels[self.last]
        needed = add(cursor(entry), count)
        grown: list[Step] = [Grow(self.values, self.value_type, self.capacity, needed)]
        return grown + [Grow(each.crd, each.width, known(each.crd_capacity), needed) for each in entry.entries]

    # Beginning and end of appending

    def begin(self, expected: Value) -> list[Step]:
        """Return the declarations and allocations of everything that grows, with room for ``expected`` entries.

        Memory that is not needed is never touched, and is given back at the end.
        """
        if self.last < 0:
            return [*self.blank_values(self.block(-1)), *self.shared_room()]
        entries = self.room(expected)
        steps: list[Step] = [
            Declare(self.capacity, multiply(entries, self.block(self.last))),
            Allocate(self.values, self.value_type, self.capacity),
        ]
        if self.last + 1 < len(self.levels):
            steps.append(Declare(self.used, Const(False, BOOL)))
        if not self.apart:
            steps += self.shared_room()
        for entry in self.stored:
            pos_capacity = known(entry.pos_capacity)
            steps.append(Declare(cursor(entry), ZERO))
            for each in entry.entries:
                room = known(each.crd_capacity)
                steps.append(Declare(room, entries if entry is self.levels[self.last] else integer(START)))
                steps.append(Allocate(each.crd, each.width, room))
            if self.apart and self.stored_above(entry.head) is None:
                continue  # threads share it: the position of each element is known
            parents = self.parents(entry.head) if self.stored_above(entry.head) is None else integer(START)
            steps += [Declare(pos_capacity, add(parents, ONE)), Allocate(entry.pos, I64, pos_capacity, zero=True)]
        return steps

    def room(self, expected: Value) -> Value:
        """Return for how many entries there is room at first where so many are expected: for some more, but where they have dense levels
        below them, and are large, for no more than the outermost level has coordinates."""
        entries = add(expected, integer(START))
        return minimum(entries, self.levels[0].extent) if self.last == 0 and self.block(0) != ONE else entries

    def blank_values(self, length: Value) -> list[Step]:
        """Return the steps that make the array of values and fill it with ``zero``."""
        zeros = self.zero.value == 0
        made: list[Step] = [Allocate(self.values, self.value_type, length, zero=zeros)]
        return made if zeros else [*made, Fill(self.values, ZERO, length, self.zero)]

    def shared_room(self) -> list[Step]:
        """Return the allocations of the arrays of levels that are inserted into."""
        steps: list[Step] = []
        for place, entry in enumerate(self.levels):
            if entry.kind.inserts and self.stored_above(place) is None:
                room = entry.kind.room(entry.level, self.parents(place + 1))
                steps += [Allocate(array.name, array.type, room[array.part], zero=True) for array in entry.level.arrays]
        return steps

    def total(self, level: int) -> Var:
        """Return the variable with the number of entries of a level when all are appended."""
        return known(self.levels[level].total) if self.inserted or self.apart else cursor(self.levels[level])

    def parents(self, level: int) -> Value:
        """Return how many positions the level above has when all entries are appended."""
        above = self.stored_above(level)
        count: Value = ONE if above is None else self.total(above)
        for entry in self.levels[0 if above is None else above + 1 : level]:
            count = multiply(count, entry.extent)
        return count

    def positions(self) -> Value:
        """Return how many values there are when all entries are appended."""
        return self.block(-1) if self.last < 0 else multiply(self.total(self.last), self.block(self.last))

    @property
    def is_listed(self) -> bool:
        """Whether the entries of the last level are listed first, and placed at the end."""
        return self.values != self.given

    def end(self) -> list[Step]:
        """Return the steps that turn counts into segments and hand the arrays over, except those that are placed afterwards."""
        steps: list[Step] = []
        for place, entry in enumerate(self.levels):
            if entry.kind.inserts:
                room = entry.kind.room(entry.level, self.parents(place + 1))
                steps += [Publish(f"{array.name}_out", array.name, room[array.part]) for array in entry.level.arrays]
            if entry.cursor is None:
                continue
            parents, total = self.parents(entry.head), self.total(place)
            segments: Step = Run("scan", (ArrayRef(entry.pos, I64), add(parents, ONE)))
            steps.append(Store(entry.pos, ONE, total) if entry.head == 0 else segments)
            if not entry.kind.places:
                steps.append(Publish(f"{entry.pos}_out", entry.pos, add(parents, ONE)))
                steps += [Publish(f"{each.crd}_out", each.crd, total) for each in entry.entries]
        return steps if self.is_listed else [*steps, Publish(f"{self.values}_out", self.values, self.positions())]
