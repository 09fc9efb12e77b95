"""Assembly of sparse results: entries are appended in the order of the levels while the loops run through them.

A level of coordinates has a cursor, the position where the next coordinate goes. A loop over the index of a level opens it
(remembers where the cursor of the level below stands) and closes it (records how many children came, and appends its own
coordinate if any did). Segments are counted first, ``pos[parent + 1] = count``, and summed at the end, so that parents
without children, also those that a sparse loop skips, need no step of their own.

Loops that are run twice, to count and to fill, have ``insertion`` around them; those of threads, which append to arrays of their own,
``pieces``.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from ..concrete.nodes import Assign, Forall, Stmt, Where, assignments, targets
from ..format import Format
from ..frozen import frozen
from ..ir.arithmetic import ONE, ZERO, add, compare, integer, multiply, subtract
from ..ir.nodes import (
    BOOL,
    I32,
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
from ..levels import COMPRESSED, DENSE, LevelKind
from .names import Names

START = 1024  # elements of a growing array at first

Phase: TypeAlias = Literal["append", "count", "fill"]


@frozen
class AssembledLevel:
    """One level of the result that is being assembled; arrays and variables are "" or None where a kind has none."""

    kind: LevelKind
    index: str
    extent: Value
    pos: str
    crd: str
    width: Type
    cursor: Var | None
    total: Var | None
    counts: str
    crd_capacity: Var | None
    pos_capacity: Var | None


@frozen
class Assembly:
    """The levels of an assembled result and the steps that fill them, at one place of the nest.

    Attributes:
        name: of the result.
        levels: in the order in which the result is written.
        values, capacity, used: the array of values, how many it has room for, and whether the present block of dense levels has any.
        zero: what blocks of dense levels hold before.
        phase: "append", or "count" and "fill": the two passes of an insertion.
        reserved: room for all that the loop around appends has been made.
        inserted: the result is counted, then filled, so that its totals are known beforehand.
        apart: threads append to arrays of their own, which are put together; ``pieces`` names those at the places where they do.
    """

    name: str
    levels: tuple[AssembledLevel, ...]
    values: str
    capacity: Var
    used: Var
    value_type: Type
    zero: Const
    phase: Phase = "append"
    reserved: bool = False
    inserted: bool = False
    apart: bool = False

    @property
    def last(self) -> int:
        """The last level that stores coordinates."""
        return max(level for level, entry in enumerate(self.levels) if entry.kind is COMPRESSED)

    # Shape of the tree

    def level_of(self, index: str) -> int:
        return next(level for level, entry in enumerate(self.levels) if entry.index == index)

    def stores(self, index: str) -> bool:
        return any(entry.index == index for entry in self.levels)

    def child(self, level: int) -> int | None:
        """Return the next level below that stores coordinates."""
        return next((below for below in range(level + 1, self.last + 1) if self.levels[below].kind is COMPRESSED), None)

    def stored_above(self, level: int) -> int | None:
        """Return the next level above that stores coordinates."""
        return next((above for above in range(level - 1, -1, -1) if self.levels[above].kind is COMPRESSED), None)

    def position(self, level: int, coordinates: dict[str, Value]) -> Value:
        """Return the position of a level at the present coordinates: the cursor, or the arithmetic of dense levels."""
        above = self.stored_above(level + 1)
        start = 0 if above is None else above + 1
        position: Value = ZERO if above is None else cursor(self.levels[above])
        for entry in self.levels[start : level + 1]:
            position = add(multiply(position, entry.extent), coordinates[entry.index])
        return position

    def block(self, level: int) -> Value:
        """Return how many positions of the dense levels below a level belong to one of its positions."""
        size: Value = ONE
        for entry in self.levels[level + 1 :]:
            if entry.kind is not DENSE:
                break
            size = multiply(size, entry.extent)
        return size

    # Steps

    @property
    def stored(self) -> list[AssembledLevel]:
        """The levels that store coordinates."""
        return [entry for entry in self.levels if entry.kind is COMPRESSED]

    @property
    def counting(self) -> bool:
        return self.phase == "count"

    def open(self, index: str, coordinates: dict[str, Value], names: Names) -> tuple[list[Step], list[Step]]:
        """Return what stands before and after the body of a loop over an index of the result."""
        level = self.level_of(index)
        entry = self.levels[level]
        child = self.child(level)
        if child is None:
            return self._open_last(level, coordinates[index]) if level == self.last and level + 1 < len(self.levels) else ([], [])
        if entry.kind is DENSE and (child != level + 1 or self.counting):
            return [], []
        below = self.levels[child]
        begin = Var(names.local(f"begin_{self.name}{child + 1}"), I64)
        before: list[Step] = [Declare(begin, cursor(below))]
        count = subtract(cursor(below), begin)
        if entry.kind is DENSE:
            return before, [Store(below.pos, add(self.position(level, coordinates), ONE), count)]
        record: list[Step] = []
        if child == level + 1:
            record = self._stored(below.pos, I64, below.pos_capacity, add(cursor(entry), ONE), count)
        elif self.phase == "append":
            before += self._blank_segments(level, below)
        after = If(compare(">", cursor(below), begin), Steps((*record, *self._append(entry, coordinates[index]))))
        return before, [after]

    def _blank_segments(self, level: int, below: AssembledLevel) -> list[Step]:
        """Make empty segments for all dense positions below the next position of a level."""
        size = self.block(level)
        start = add(multiply(cursor(self.levels[level]), size), ONE)
        end = add(start, size)
        return [Grow(below.pos, I64, known(below.pos_capacity), end), Fill(below.pos, start, end, Const(0, I64))]

    def _open_last(self, level: int, coordinate: Value) -> tuple[list[Step], list[Step]]:
        """The last stored level, with dense levels below: reserve their block of values, keep it if it is used.

        While inserting, all blocks are blank already: one that is not used is the next one's, which another thread may be filling.
        """
        entry, size = self.levels[level], self.block(level)
        start = multiply(cursor(entry), size)
        end = add(start, size)
        before: list[Step] = [SetVar(self.used, Const(False, BOOL))]
        if self.phase == "append":
            before += [Grow(self.values, self.value_type, self.capacity, end), Fill(self.values, start, end, self.zero)]
        return before, [If(self.used, Steps(tuple(self._append(entry, coordinate))))]

    def _stored(self, array: str, kind: Type, capacity: Var | None, position: Value, value: Value) -> list[Step]:
        """Store an element: with room made for it while appending, not at all while counting."""
        if self.counting:
            return []
        if self.phase == "append" and not (self.reserved and array in (self.values, self.levels[self.last].crd)):
            return [Grow(array, kind, known(capacity), add(position, ONE)), Store(array, position, value)]
        return [Store(array, position, value)]

    def _append(self, entry: AssembledLevel, coordinate: Value) -> list[Step]:
        place = cursor(entry)
        return [*self._stored(entry.crd, entry.width, entry.crd_capacity, place, coordinate), SetVar(place, ONE, "+")]

    def store(self, coordinates: dict[str, Value], value: Value, op: str) -> list[Step]:
        """Return the steps that enter one component."""
        entry = self.levels[self.last]
        if self.last + 1 < len(self.levels):
            position = self.position(len(self.levels) - 1, coordinates)
            stored: list[Step] = [] if self.counting else [Store(self.values, position, value, op)]
            return [*stored, SetVar(self.used, Const(True, BOOL))]
        assert not op, "a component of an appended level is stored once"
        room = self._stored(self.values, self.value_type, self.capacity, cursor(entry), value)
        return [*room, *self._append(entry, coordinates[entry.index])]

    def appends_once(self, statement: Stmt, index: str) -> bool:
        """Whether every iteration of a loop over ``index`` around a statement appends at most one entry of the last level."""
        last = self.last + 1 == len(self.levels) and self.levels[self.last].index == index
        return last and self.phase == "append" and not self.reserved and _at_once(statement, self.name)

    def reserve(self, count: Value) -> list[Step]:
        """Return the steps that make room for so many further entries of the last level."""
        entry = self.levels[self.last]
        needed = add(cursor(entry), count)
        return [
            Grow(self.values, self.value_type, self.capacity, needed),
            Grow(entry.crd, entry.width, known(entry.crd_capacity), needed),
        ]

    # Beginning and end of appending

    def begin(self, expected: Value) -> list[Step]:
        """Return the declarations and allocations of everything that grows; ``expected`` entries fit at once.

        Memory that is not used in the end is never touched, and is given back.
        """
        entries = add(expected, integer(START))
        steps: list[Step] = [
            Declare(self.capacity, multiply(entries, self.block(self.last))),
            Allocate(self.values, self.value_type, self.capacity),
        ]
        if self.last + 1 < len(self.levels):
            steps.append(Declare(self.used, Const(False, BOOL)))
        for level, entry in enumerate(self.levels):
            if entry.kind is DENSE:
                continue
            crd_capacity, pos_capacity = known(entry.crd_capacity), known(entry.pos_capacity)
            steps += [
                Declare(cursor(entry), ZERO),
                Declare(crd_capacity, entries if level == self.last else integer(START)),
                Allocate(entry.crd, entry.width, crd_capacity),
            ]
            if self.apart and self.stored_above(level) is None:
                continue  # threads share it: all know which element is whose
            parents = self.parents(level) if self.stored_above(level) is None else integer(START)
            steps += [Declare(pos_capacity, add(parents, ONE)), Allocate(entry.pos, I64, pos_capacity, zero=True)]
        return steps

    def total(self, level: int) -> Var:
        """Return the variable that holds the number of entries of a level once all are in."""
        return known(self.levels[level].total) if self.inserted or self.apart else cursor(self.levels[level])

    def parents(self, level: int) -> Value:
        """Return how many positions the level above has, once all entries are in."""
        above = self.stored_above(level)
        count: Value = ONE if above is None else self.total(above)
        for entry in self.levels[0 if above is None else above + 1 : level]:
            count = multiply(count, entry.extent)
        return count

    def end(self) -> list[Step]:
        """Return the steps that turn counts into segments and hand the arrays over."""
        steps: list[Step] = []
        for level, entry in enumerate(self.levels):
            if entry.kind is DENSE:
                continue
            parents = self.parents(level)
            if level == 0:
                steps.append(Store(entry.pos, ONE, self.total(level)))
            else:
                steps.append(Run("scan", (ArrayRef(entry.pos, I64), add(parents, ONE))))
            steps.append(Publish(f"{entry.pos}_out", entry.pos, add(parents, ONE)))
            steps.append(Publish(f"{entry.crd}_out", entry.crd, self.total(level)))
        steps.append(Publish(f"{self.values}_out", self.values, multiply(self.total(self.last), self.block(self.last))))
        return steps


def assembly_of(
    name: str, form: Format, indices: tuple[str, ...], extents: tuple[Value, ...], widths: tuple[int, ...], value_type: Type, zero: Const,
    names: Names,
) -> Assembly:  # fmt: skip
    """Return how a result is put together, with names for its arrays and variables.

    Args:
        form: the format in which it is written, of dense and compressed levels.
        indices, extents, widths: of every level; widths in bits.
    """
    levels = tuple(
        _level(name, level, kind, index, extent, I32 if width == 32 else I64, names)
        for level, (kind, index, extent, width) in enumerate(zip(form.levels, indices, extents, widths, strict=True))
    )
    values = names.permanent(f"{name}_vals")
    capacity, used = Var(names.permanent(f"{name}_capacity"), I64), Var(names.permanent(f"{name}_used"), BOOL)
    return Assembly(name, levels, values, capacity, used, value_type, zero)


def _level(name: str, level: int, kind: LevelKind, index: str, extent: Value, width: Type, names: Names) -> AssembledLevel:
    if kind is DENSE:
        return AssembledLevel(kind, index, extent, "", "", width, None, None, "", None, None)
    stem = f"{name}{level + 1}"
    pos, crd, counts = (names.permanent(f"{stem}_{part}") for part in ("pos", "crd", "counts"))
    place, total, *room = (Var(names.permanent(f"{stem}_{part}"), I64) for part in ("count", "total", "crd_capacity", "pos_capacity"))
    return AssembledLevel(kind, index, extent, pos, crd, width, place, total, counts, *room)


def _at_once(statement: Stmt, tensor: str) -> bool:
    """Whether a statement assigns a tensor without a loop around."""
    match statement:
        case Assign(target, _, _):
            return target.tensor == tensor
        case Where(consumer, _):
            return _at_once(consumer, tensor)
        case Forall() if tensor not in targets(statement):
            return False
        case Forall(_, body, _):
            # A chain of reduction loops around the assignment becomes a scalar accumulator that is stored once.
            return isinstance(body, (Forall, Assign)) and _at_once(body, tensor) and _accumulates(body)
        case _:
            return False


def _accumulates(statement: Stmt) -> bool:
    return all(assign.operator == "+=" for assign in assignments(statement))


def cursor(entry: AssembledLevel) -> Var:
    """Return the position where the next coordinate of a level goes."""
    return known(entry.cursor)


def known(variable: Var | None) -> Var:
    """Return a variable of a level that stores coordinates."""
    assert variable is not None, "the level has no such variable"
    return variable
