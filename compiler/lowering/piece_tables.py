"""The pieces of one loop whose threads append to a sparse result: the number of entries of each, the thread that has them, their places."""

from __future__ import annotations

from dataclasses import replace

from ..frozen import frozen
from ..ir.arithmetic import ONE, ZERO, add, compare, every, integer, minimum, multiply, quotient, subtract
from ..ir.names import Names
from ..ir.nodes import (
    I64,
    PARTS,
    Allocate,
    ArrayRef,
    Call,
    Declare,
    For,
    Free,
    Grow,
    If,
    Leave,
    Load,
    Parallel,
    Run,
    SetVar,
    Step,
    Steps,
    Store,
    Take,
    Type,
    Value,
    Var,
    While,
)
from .assembled_levels import AssembledLevel, cursor, known
from .assembly import START, Assembly

_DRAINED = Run("drain_stores", ())  # copies may bypass the caches
HEAD = 2  # elements before the rows of a table of pieces (csrc/st_pieces.h)


@frozen
class Part:
    """An array of the result of which every thread has a part.

    Attributes:
        own, whole: the names of a thread's array and of the result's array.
        room: the size of the result's array in elements.
        level: the level for whose entries it has elements: ``block`` for each of them, after the first ``shift``.
    """

    own: str
    whole: str
    room: Var
    type: Type
    level: int
    block: Value
    shift: Value


@frozen
class Pieces:
    """The pieces of one loop.

    Attributes:
        table: the numbers of entries of all pieces, from which their places follow.
        owners, begins: for pieces that stay in arrays of threads, the thread (its number plus 1), and where they begin there, by level.
        left: the arrays of the threads that have such pieces.
        kept, kept_begins: the pieces that a thread still has, from ``first`` to ``last``, and where they begin.
    """

    assembly: Assembly
    parts: tuple[Part, ...]
    count: Var
    piece: Var
    thread: Var
    summed: Var
    table: str
    owners: str
    begins: tuple[str, ...]
    left: ArrayRef
    kept: str
    kept_begins: tuple[str, ...]
    first: Var
    last: Var

    @classmethod
    def named(cls, assembly: Assembly, parts: tuple[Part, ...], names: Names) -> Pieces:
        """Return the pieces of a loop around an assembly, with new names for their variables and tables."""
        wishes = ("pieces", "piece", "thread", "pieces_summed", "first_kept", "last_kept")
        count, piece, thread, summed, first, last = (Var(names.permanent(wish), I64) for wish in wishes)
        table, owners, left, kept = (names.permanent(f"{assembly.name}_{wish}") for wish in ("pieces", "owners", "left", "kept"))
        stored = range(1, len(assembly.stored) + 1)
        begins, kept_begins = (tuple(names.permanent(f"{table}_{wish}{level}") for level in stored) for wish in ("begin", "kept"))
        return cls(
            assembly, parts, count, piece, thread, summed, table, owners, begins, ArrayRef(left, PARTS), kept, kept_begins, first, last
        )

    @property
    def alone(self) -> Value:
        """The condition that there is one piece only."""
        return compare("==", self.count, ONE)

    @property
    def levels(self) -> tuple[AssembledLevel, ...]:
        """The levels to which entries are appended, outermost first."""
        return tuple(self.assembly.stored)

    def _level(self, part: Part) -> int:
        """Return which of the stored levels an array follows."""
        return self.assembly.stored.index(self.assembly.levels[part.level])

    def _call(self, function: str, *arguments: Value) -> Call:
        return Call(function, (ArrayRef(self.table, I64), integer(len(self.levels)), *arguments), I64)

    def _place(self, piece: Value, level: int) -> Value:
        """Return where the entries of a piece begin in the result, which is also where those of the previous piece end."""
        return self._call("piece_place", piece, integer(level))

    # Around the loop

    def begin(self, entries: Value, threads: Value) -> list[Step]:
        """Return the allocations before the loop. If there are several pieces, the result gets room for ``entries`` entries."""
        levels = len(self.levels)
        rooms: list[Step] = []
        made: list[Step] = []
        for part in self.parts:
            plain = part.level == self.assembly.last or part.block == ONE
            rooms.append(Declare(part.room, add(multiply(entries, part.block), part.shift) if plain else integer(START)))
            made.append(Allocate(part.whole, part.type, part.room))
            made += [Store(part.whole, ZERO, ZERO)] if part.shift == ONE else []
        return [
            *rooms,
            If(compare("!=", self.count, ONE), Steps(tuple(made))),
            Allocate(self.table, I64, add(multiply(integer(levels), add(self.count, ONE)), integer(HEAD))),
            Run("begin_pieces", (ArrayRef(self.table, I64), integer(levels), self.count)),
            Allocate(self.owners, I64, self.count, zero=True),
            *(Allocate(array, I64, self.count) for array in self.begins),
            Allocate(self.left.array, PARTS, multiply(threads, integer(len(self.parts)))),
        ]

    def end(self) -> list[Step]:
        """Return the steps that complete the result by copying every piece that is not at its place yet."""
        totals = [Declare(known(entry.total), self._place(self.count, level)) for level, entry in enumerate(self.levels)]
        taken = [Take(part.whole, part.type, self.left, integer(place)) for place, part in enumerate(self.parts)]
        owner = Load(self.owners, self.piece, I64)
        copies: list[Step] = []
        for number, part in enumerate(self.parts):
            level = self._level(part)
            place = add(multiply(subtract(owner, ONE), integer(len(self.parts))), integer(number))
            begin = Load(self.begins[level], self.piece, I64)
            whole = self._elements(part, self.assembly.total(part.level))
            copies.append(self._copied(part, "copy_part", self.piece, (self.left, place), begin, whole))
        grown = [Grow(part.whole, part.type, part.room, self._elements(part, self.assembly.total(part.level))) for part in self.parts]
        late = If(compare(">", owner, ZERO), Steps(tuple(copies)))
        joined = (*grown, For(self.piece, ZERO, self.count, Steps((late,)), Parallel("dynamic", 1), finish=(_DRAINED,)))
        return [
            Run("sum_pieces", self._call("sum_pieces", self.count).arguments),
            *totals,
            If(self.alone, Steps(tuple(taken)), Steps(joined)),
            *(Free(array) for array in (self.table, self.owners, *self.begins, self.left.array)),
        ]

    def _elements(self, part: Part, entries: Value) -> Value:
        return add(multiply(entries, part.block), part.shift)

    def _copied(self, part: Part, function: str, piece: Value, source: tuple[Value, ...], begin: Value, length: Value) -> Step:
        """Return the copying of one piece to its place in an array of the result, which will have about so many elements."""
        level = self._level(part)
        place, end = self._place(piece, level), self._place(add(piece, ONE), level)
        count = multiply(subtract(end, place), part.block)
        whole = ArrayRef(part.whole, part.type)
        return Run(function, (whole, self._elements(part, place), *source, self._elements(part, begin), count, length))

    # In a thread

    def private(self) -> list[Step]:
        """Return the steps at the start of a thread."""
        arrays = (self.kept, *self.kept_begins)
        number = Declare(self.thread, Call("enlist", (self.left,), I64))
        return [number, Declare(self.first, ZERO), Declare(self.last, ZERO), *(Allocate(array, I64, self.count) for array in arrays)]

    def finish(self) -> list[Step]:
        """Return the steps at the end of a thread: it leaves its arrays behind, and notes which pieces they hold."""
        place = Var(self.piece.name, I64)
        kept = Load(self.kept, place, I64)
        notes: list[Step] = [Store(self.owners, kept, add(self.thread, ONE))]
        notes += [Store(to, kept, Load(own, place, I64)) for to, own in zip(self.begins, self.kept_begins, strict=True)]
        arrays = len(self.parts)
        places = (add(multiply(self.thread, integer(arrays)), integer(number)) for number in range(arrays))
        return [
            _DRAINED,
            For(place, self.first, self.last, Steps(tuple(notes))),
            *(Leave(part.own, self.left, place) for part, place in zip(self.parts, places, strict=True)),
            *(Free(array) for array in (self.kept, *self.kept_begins)),
        ]

    def loop(self, loop: For, size: Var, room: list[Step]) -> For:
        """Return the loop over pieces around a loop; the steps ``room`` make room for each piece."""
        first = add(loop.low, multiply(self.piece, size))
        cursors = [cursor(entry) for entry in self.levels]
        begins = [Load(array, self.last, I64) for array in self.kept_begins]
        counts = [subtract(end, begin) for end, begin in zip(cursors, begins, strict=True)]
        notes = (self._call("note_piece", self.piece, integer(level), count) for level, count in enumerate(counts))
        body = Steps((
            Store(self.kept, self.last, self.piece),
            *(Store(array, self.last, begin) for array, begin in zip(self.kept_begins, cursors, strict=True)),
            *room,
            replace(loop, low=first, high=minimum(add(first, size), loop.high), tag=None, private=(), finish=()),
            *(Run(note.function, note.arguments) for note in notes),
            SetVar(self.last, ONE, "+"),
            If(compare(">", self.count, ONE), self._landing(cursors)),
        ))
        return For(self.piece, ZERO, self.count, body, Parallel("ordered", 1), loop.private, loop.finish)

    def _landing(self, cursors: list[Var]) -> Steps:
        """Return the steps that copy those pieces of a thread whose places are known and inside the result's array."""
        oldest = Load(self.kept, self.first, I64)
        ready = [compare("<", self.first, self.last), compare("<", oldest, self.summed)]
        fits = [compare("<=", self._elements(part, self._place(add(oldest, ONE), self._level(part))), part.room) for part in self.parts]
        copies: list[Step] = []
        for part in self.parts:
            begin, made = Load(self.kept_begins[self._level(part)], self.first, I64), add(oldest, ONE)
            whole = quotient(multiply(self._elements(part, self._place(made, self._level(part))), self.count), made)  # if all are alike
            copies.append(self._copied(part, "copy", oldest, (ArrayRef(part.own, part.type),), begin, whole))
        emptied = [SetVar(variable, ZERO) for variable in (self.first, self.last, *cursors)]
        return Steps((
            Declare(self.summed, self._call("sum_pieces", self.count)),
            While(every([*ready, *fits]), Steps((*copies, SetVar(self.first, ONE, "+")))),
            If(compare("==", self.first, self.last), Steps(tuple(emptied))),
        ))
