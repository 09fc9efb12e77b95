"""Assembly of sparse results: entries are appended in the order of the levels while the loops run through them.

A level of coordinates has a cursor, the position where the next coordinate goes. A loop over the index of a level opens it
(remembers where the cursor of the level below stands) and closes it (records how many children came, and appends its own
coordinate if any did). Segments are counted first, ``pos[parent + 1] = count``, and summed at the end, so that parents
without children, also those that a sparse loop skips, need no step of their own.

Insertion (count, then fill) runs the loops twice: the first time only the cursors move, every iteration of the outermost loop
from zero; their ends are summed, and the second time each iteration starts where those before it end. Iterations do not
depend on one another then, so they may go to threads, and the result is the same whatever thread runs them (two-phase
assembly; Kjolstad et al., "Taco: a tool to generate tensor algebra kernels").
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..concrete.nodes import Assign, Forall, Stmt, Where, assignments, targets
from ..format import Format
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
    For,
    Free,
    Grow,
    If,
    Load,
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


@dataclass(frozen=True)
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


class Assembly:
    """The levels of an assembled result and the steps that fill them."""

    def __init__(self, name: str, form: Format, indices: tuple[str, ...], extents: tuple[Value, ...], widths: tuple[int, ...],
                 value_type: Type, zero: Const, names: Names) -> None:  # fmt: skip
        self.name, self.format, self.zero, self.value_type = name, form, zero, value_type
        self.levels = tuple(
            self._level(level, kind, index, extent, I32 if width == 32 else I64, names)
            for level, (kind, index, extent, width) in enumerate(zip(form.levels, indices, extents, widths, strict=True))
        )
        self.values = names.permanent(f"{name}_vals")
        self.capacity = Var(names.permanent(f"{name}_capacity"), I64)
        self.used = Var(names.permanent(f"{name}_used"), BOOL)
        self.phase = "append"  # or "count", "fill": the two passes of an insertion
        self.inserted = False
        self.reserved = False  # room for all that the loop around appends has been made
        self.last = max(level for level, kind in enumerate(form.levels) if kind is COMPRESSED)

    def _level(self, level: int, kind: LevelKind, index: str, extent: Value, width: Type, names: Names) -> AssembledLevel:
        if kind is DENSE:
            return AssembledLevel(kind, index, extent, "", "", width, None, None, "", None, None)
        stem = f"{self.name}{level + 1}"
        pos, crd, counts = (names.permanent(f"{stem}_{part}") for part in ("pos", "crd", "counts"))
        cursor, total, *room = (Var(names.permanent(f"{stem}_{part}"), I64) for part in ("count", "total", "crd_capacity", "pos_capacity"))
        return AssembledLevel(kind, index, extent, pos, crd, width, cursor, total, counts, *room)

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
        position: Value = ZERO if above is None else _cursor(self.levels[above])
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
        before: list[Step] = [Declare(begin, _cursor(below))]
        count = subtract(_cursor(below), begin)
        if entry.kind is DENSE:
            return before, [Store(below.pos, add(self.position(level, coordinates), ONE), count)]
        record: list[Step] = []
        if child == level + 1:
            record = self._stored(below.pos, I64, below.pos_capacity, add(_cursor(entry), ONE), count)
        elif self.phase == "append":
            before += self._blank_segments(level, below)
        after = If(compare(">", _cursor(below), begin), Steps((*record, *self._append(entry, coordinates[index]))))
        return before, [after]

    def _blank_segments(self, level: int, below: AssembledLevel) -> list[Step]:
        """Make empty segments for all dense positions below the next position of a level."""
        size = self.block(level)
        start = add(multiply(_cursor(self.levels[level]), size), ONE)
        end = add(start, size)
        return [Grow(below.pos, I64, _variable(below.pos_capacity), end), Fill(below.pos, start, end, Const(0, I64))]

    def _open_last(self, level: int, coordinate: Value) -> tuple[list[Step], list[Step]]:
        """The last stored level, with dense levels below: reserve their block of values, keep it if it is used.

        While inserting, all blocks are blank already: one that is not used is the next one's, which another thread may be filling.
        """
        entry, size = self.levels[level], self.block(level)
        start = multiply(_cursor(entry), size)
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
            return [Grow(array, kind, _variable(capacity), add(position, ONE)), Store(array, position, value)]
        return [Store(array, position, value)]

    def _append(self, entry: AssembledLevel, coordinate: Value) -> list[Step]:
        cursor = _cursor(entry)
        return [*self._stored(entry.crd, entry.width, entry.crd_capacity, cursor, coordinate), SetVar(cursor, ONE, "+")]

    def store(self, coordinates: dict[str, Value], value: Value, op: str) -> list[Step]:
        """Return the steps that enter one component."""
        entry = self.levels[self.last]
        if self.last + 1 < len(self.levels):
            position = self.position(len(self.levels) - 1, coordinates)
            stored: list[Step] = [] if self.counting else [Store(self.values, position, value, op)]
            return [*stored, SetVar(self.used, Const(True, BOOL))]
        assert not op, "a component of an appended level is stored once"
        room = self._stored(self.values, self.value_type, self.capacity, _cursor(entry), value)
        return [*room, *self._append(entry, coordinates[entry.index])]

    def appends_once(self, statement: Stmt, index: str) -> bool:
        """Whether every iteration of a loop over ``index`` around a statement appends at most one entry of the last level."""
        last = self.last + 1 == len(self.levels) and self.levels[self.last].index == index
        return last and self.phase == "append" and not self.reserved and _at_once(statement, self.name)

    def reserve(self, count: Value) -> list[Step]:
        """Return the steps that make room for so many further entries of the last level."""
        entry = self.levels[self.last]
        needed = add(_cursor(entry), count)
        return [
            Grow(self.values, self.value_type, self.capacity, needed),
            Grow(entry.crd, entry.width, _variable(entry.crd_capacity), needed),
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
            crd_capacity, pos_capacity = _variable(entry.crd_capacity), _variable(entry.pos_capacity)
            parents = self.parents(level) if self.stored_above(level) is None else integer(START)
            steps += [
                Declare(_cursor(entry), ZERO),
                Declare(crd_capacity, entries if level == self.last else integer(START)),
                Allocate(entry.crd, entry.width, crd_capacity),
                Declare(pos_capacity, add(parents, ONE)),
                Allocate(entry.pos, I64, pos_capacity, zero=True),
            ]
        return steps

    def total(self, level: int) -> Var:
        """Return the variable that holds the number of entries of a level once all are in."""
        return _variable(self.levels[level].total) if self.inserted else _cursor(self.levels[level])

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

    # The two passes of an insertion

    def counted(self, loop: For, counts_length: Value) -> list[Step]:
        """Return the counting pass: the loop, in which every iteration counts from zero, and the sums over iterations."""
        steps: list[Step] = [Allocate(entry.counts, I64, counts_length, zero=True) for entry in self.stored]
        place = add(subtract(loop.variable, loop.low), ONE)
        own = [*self._local_used(), *(Declare(_cursor(entry), ZERO) for entry in self.stored)]
        after = [Store(entry.counts, place, _cursor(entry)) for entry in self.stored]
        steps.append(replace(loop, body=Steps((*own, loop.body, *after))))
        steps += [Run("scan", (ArrayRef(entry.counts, I64), counts_length)) for entry in self.stored]
        last = subtract(counts_length, ONE)
        return steps + [Declare(_variable(entry.total), Load(entry.counts, last, I64)) for entry in self.stored]

    def filled(self, loop: For) -> list[Step]:
        """Return the allocations of known size and the filling pass."""
        steps = self._allocated()
        place = subtract(loop.variable, loop.low)
        own = [*self._local_used(), *(Declare(_cursor(entry), Load(entry.counts, place, I64)) for entry in self.stored)]
        steps.append(replace(loop, body=Steps((*own, loop.body))))
        return steps + [Free(entry.counts) for entry in self.stored]

    def pass_at_once(self, steps: list[Step]) -> list[Step]:
        """Return one of the two passes of an insertion whose loop is not dealt out: cursors run through it."""
        if self.counting:
            begin = [*self._local_used(), *(Declare(_cursor(entry), ZERO) for entry in self.stored)]
            return [*begin, Steps(tuple(steps)), *(Declare(_variable(entry.total), _cursor(entry)) for entry in self.stored)]
        return [*self._allocated(), *(SetVar(_cursor(entry), ZERO) for entry in self.stored), Steps(tuple(steps))]

    def _allocated(self) -> list[Step]:
        self.inserted = True
        length = multiply(self.total(self.last), self.block(self.last))
        blank, zeros = self.last + 1 < len(self.levels), self.zero.value == 0
        steps: list[Step] = [Allocate(self.values, self.value_type, length, zero=blank and zeros)]
        if blank and not zeros:
            steps.append(Fill(self.values, ZERO, length, self.zero))
        for level, entry in enumerate(self.levels):
            if entry.kind is COMPRESSED:
                steps.append(Allocate(entry.crd, entry.width, self.total(level)))
                steps.append(Allocate(entry.pos, I64, add(self.parents(level), ONE), zero=True))
        return steps

    def _local_used(self) -> list[Step]:
        return [Declare(self.used, Const(False, BOOL))] if self.last + 1 < len(self.levels) else []


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


def _cursor(entry: AssembledLevel) -> Var:
    return _variable(entry.cursor)


def _variable(variable: Var | None) -> Var:
    assert variable is not None, "the level has no such variable"
    return variable
