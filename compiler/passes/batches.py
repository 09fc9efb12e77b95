"""Sums of short rows in batches: first the terms of many rows are computed, then the sum of each row.

``for i: for p in pos[i] .. pos[i + 1]: t += A[p] * x[crd[p]]`` ends its inner loop once for each row. Branch prediction misses that, and
the work that the processor has begun is lost: with ten elements in a row that costs more than the additions. Since rows are consecutive,
one loop over ``pos[first] .. pos[past]`` in full vectors computes the terms of several rows, into an array that stays in the first cache.
For each row up to 16 or 32 terms are then added without a loop (``row_sums``). If all rows are short, several are added at once.

Each block of rows decides at run time. Blocks with long rows are not batched, since whole vectors are cheaper. Neither are blocks in which
most rows are as long as the row before, since processors predict the ends of such loops; long rows among them are added in vectors, short
ones one element after the other. Of blocks without elements nothing is read. If terms depend on their row, for example because coordinates
are relative to it, there are no batches, and only blocks with equal rows are distinguished from others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from ..ir.limits import AVERAGE_STEADY, BESIDE, FEWEST, ROWS, SHORT, STEADY, STEADY_SHORT
from ..ir.nodes import (
    BOOL,
    I64,
    Allocate,
    Binary,
    Const,
    Declare,
    For,
    Function,
    If,
    Parallel,
    Prefetch,
    Select,
    SetVar,
    Step,
    Steps,
    Unary,
    Unroll,
    Value,
    Var,
    Vector,
)
from ..ir.rewrite import block, nodes_of, substitute, transform_steps
from .folding import simplify_expression
from .manager import Setting
from .row_sums import Placed, row_length, row_sum, summed_beside, sums_beside
from .short_sums import RowSum, rows_a_block, rows_of, terms_of
from .sums import asking_ahead

AT_ONCE = 16
"""Terms of a row that are added without asking how many there are; twice as many where rows have more than ``AVERAGE_ONCE`` on average."""

AVERAGE_ONCE = 14
"""Elements of a row, on average over a block, from which on each third or so is longer than ``AT_ONCE`` where rows are uneven: what asks
for the others is mispredicted then, which takes longer than adding as many zeros."""

AVERAGE_BESIDE = 12
"""The most elements of a row, on average over a block, for which the block tests whether all rows are short enough to be added at once."""

ROWS_BESIDE = 4
"""The number of rows whose lanes are added together."""


def batch_short_sums(function: Function, setting: Setting) -> Function:
    """Return a kernel in which loops over rows that sum gathered elements have a second form for short rows."""
    lanes = setting.lanes
    if setting.unit.gathers is None or lanes == 1:
        return function
    fresh = setting.fresh

    def visit(statement: Step) -> tuple[Step, list[Allocate]]:
        if isinstance(statement, For) and (rows := rows_of(statement, lanes)) is not None:
            made, rooms = _Batches(statement, rows, lanes, fresh).made()
        else:
            rooms, children = [], []
            for child in statement.children:
                changed, more = visit(child) if isinstance(child, Step) else (child, [])
                children.append(changed)
                rooms += more
            made = statement.rebuild(tuple(children)) if children else statement
        if rooms and isinstance(made, For) and isinstance(made.tag, Parallel):
            return replace(made, private=(*rooms, *made.private)), []
        return made, rooms  # type: ignore[return-value]  # statements rebuild to statements

    made, rooms = visit(function.body)
    return replace(function, body=block([*rooms, made]) if rooms or not isinstance(made, Steps) else made)


def _minus(left: Value, right: Value) -> Value:
    return simplify_expression(Binary("-", left, right, I64))


def _plus(left: Value, right: Value) -> Value:
    return simplify_expression(Binary("+", left, right, I64))


class _Batches:
    """Makes the loop over blocks of rows."""

    def __init__(self, loop: For, sums: list[RowSum], lanes: int, fresh: Callable[[str], str]) -> None:
        self.loop, self.sums, self.lanes, self.fresh = loop, sums, lanes, fresh
        row = loop.variable.name
        self.first, self.past = (Var(fresh(f"{row}_{part}"), I64) for part in ("first", "past"))
        self.rows = Var(fresh(f"{row}_rows"), I64)
        self.moving = all(found.moving for found in sums)
        self.rooms = [fresh(f"{found.loop.variable.name}_terms") for found in sums if not self.moving]
        self.at_once = [Var(fresh(f"{found.loop.variable.name}_at_once"), I64) for found in sums]
        self.room_length = (rows_a_block(loop.tag) or ROWS) * SHORT + 2 * AT_ONCE  # the sums of rows follow behind it
        self.alike, self.longest = Var(fresh(f"{row}_alike"), BOOL), Var(fresh(f"{row}_longest"), I64)
        self.firsts, self.pasts = ([Var(fresh(f"{found.loop.variable.name}_{part}"), I64) for found in sums] for part in ("first", "past"))

    def made(self) -> tuple[Step, list[Allocate]]:
        """Return the loop, and the arrays of terms, which are allocated outside. They begin as zeros, since elements behind the terms are
        read."""
        loop, number = self.loop, Var(self.fresh(f"{self.loop.variable.name}_block"), I64)
        rows, size = _minus(loop.high, loop.low), rows_a_block(loop.tag)
        assert size is not None
        steps, a_block, tag = self._dealt_out(rows, size)
        blocks = Binary("/", _plus(rows, _minus(a_block, Const(1, I64))), a_block, I64)
        filled = Steps((
            Declare(self.alike, self._are_alike()),
            *(() if self.moving else self._longest()),
            self._steadiness(),
            self._chosen(),
        ))  # fmt: skip
        body = Steps((
            Declare(self.first, _plus(loop.low, Binary("*", number, a_block, I64))),
            Declare(self.past, Binary("min", _plus(self.first, a_block), loop.high, I64)),
            Declare(self.rows, _minus(self.past, self.first)),
            *self._ends(),
            If(self._are_empty(), self._rows(self._with_sums([Steps(())] * len(self.sums))), filled),
        ))  # fmt: skip
        length = Const(self.room_length + ROWS, I64)
        kinds = [found.step.variable.type for found in self.sums[: len(self.rooms)]]
        rooms = [Allocate(room, kind, length, "registers", zero=True) for room, kind in zip(self.rooms, kinds, strict=True)]
        private = (*rooms, *loop.private) if tag else loop.private
        over_blocks = For(number, Const(0, I64), blocks, body, tag, private, loop.finish, origin=f"blocks of {loop.variable.name}")
        return block([*steps, over_blocks]), [] if tag else rooms

    def _dealt_out(self, rows: Value, size: int) -> tuple[list[Step], Value, Parallel | None]:
        """Return the steps that compute the rows of a block, their number, and the tag of the loop over blocks."""
        tag = self.loop.tag
        if not isinstance(tag, Parallel):
            return [], Const(size, I64), None
        if tag.chunk is not None:
            return [], Const(size, I64), replace(tag, chunk=tag.chunk // size)
        a_block = Var(self.fresh(f"{self.loop.variable.name}_a_block"), I64)  # smaller if there are few rows, so that all threads get some
        several = Binary("max", Binary("/", rows, Const(size, I64), I64), Const(1, I64), I64)
        return [Declare(a_block, Binary("min", several, Const(size, I64), I64))], a_block, tag

    def _ends(self) -> Iterator[Declare]:
        """Yield the declarations of the begin and the end of a block's elements."""
        for found, first, past in zip(self.sums, self.firsts, self.pasts, strict=True):
            for end, row in ((first, self.first), (past, self.past)):
                yield Declare(end, substitute(found.begin, {self.loop.variable.name: row}))

    def _are_longer(self, number: int, length: int) -> Value:
        """Return the condition that a block's rows have more than ``length`` elements on average."""
        most = Binary("*", self.rows, Const(length, I64), I64)
        return Binary("<", most, _minus(self.pasts[number], self.firsts[number]), BOOL)

    def _are_empty(self) -> Value:
        """Return the condition that a block has no elements, as most blocks of hypersparse matrices."""
        empty: Value = Const(True, BOOL)
        for first, past in zip(self.firsts, self.pasts, strict=True):
            empty = Binary("and", empty, Binary("==", first, past, BOOL), BOOL)
        return simplify_expression(empty)

    def _are_alike(self) -> Value:
        """Return the condition that most of a block's rows are as long as the row before."""
        second = substitute(self.sums[0].begin, {self.loop.variable.name: _plus(self.first, Const(1, I64))})
        alike = Binary("*", self.rows, _minus(second, self.firsts[0]), I64)
        return Binary("==", _minus(self.pasts[0], self.firsts[0]), alike, BOOL)

    def _longest(self) -> Iterator[Step]:
        """Yield the steps that find the length of the longest row. For rows that are alike, or long on average, they give a length that
        is too long for adding rows at once."""
        long: Value = self.alike
        for number in range(len(self.sums)):
            long = Binary("or", long, self._are_longer(number, AVERAGE_BESIDE), BOOL)
        yield Declare(self.longest, simplify_expression(Select(long, Const(BESIDE[-1] + 1, I64), Const(0, I64), I64)))
        each = Steps(tuple(SetVar(self.longest, row_length(sums.begin, self.loop.variable), "max") for sums in self.sums))
        yield If(Binary("==", self.longest, Const(0, I64), BOOL), self._rows(each))

    def _steadiness(self) -> Step:
        """Return the step that counts the rows that differ in length from the row before. It is done only if rows are short enough for
        batches, and not so short that they are added at once anyway."""
        row, changes = self.loop.variable, Var(self.fresh(f"{self.loop.variable.name}_changes"), I64)
        length = row_length(self.sums[0].begin, row)
        before = simplify_expression(substitute(length, {row.name: _minus(row, Const(1, I64))}))
        change = Select(Binary("!=", length, before, BOOL), Const(1, I64), Const(0, I64), I64)
        uneven: Value = Unary("not", self.alike, BOOL)
        if not self.moving:
            uneven = Binary("and", uneven, Binary("<", Const(BESIDE[0], I64), self.longest, BOOL), BOOL)
        most = Select(self._are_longer(0, AVERAGE_STEADY), Const(int(STEADY * ROWS), I64), Const(int(STEADY_SHORT * ROWS), I64), I64)
        return If(Binary("and", uneven, Unary("not", self._are_longer(0, SHORT), BOOL), BOOL), Steps((
            Declare(changes, Const(0, I64)),
            replace(self._rows(SetVar(changes, change, "+")), low=_plus(self.first, Const(1, I64))),
            SetVar(self.alike, Binary("<=", Binary("*", changes, Const(ROWS, I64), I64), Binary("*", self.rows, most, I64), BOOL)),
        )))  # fmt: skip

    def _chosen(self) -> Step:
        """Return the step that chooses the way to sum a block's rows."""
        one_by_one, rows = self._one_by_one(), self._rows(self.loop.body)
        if self.moving:  # without batches two of the ways are one, since more would need too many registers
            return If(Binary("or", one_by_one, Unary("not", self.alike, BOOL), BOOL), rows, self._foreseen())
        return If(one_by_one, rows, If(self.alike, self._foreseen(), self._uneven()))

    def _one_by_one(self) -> Value:
        """Return the condition that vectors of each row are cheapest: rows are few, long, or alike and longer than are added at once."""
        whole: Value = Binary("<", self.rows, Const(FEWEST, I64), BOOL)
        regular = Binary("and", self.alike, self._are_longer(0, AT_ONCE), BOOL)
        for condition in (regular, *(self._are_longer(number, SHORT) for number in range(len(self.sums)))):
            whole = Binary("or", whole, condition, BOOL)
        return whole

    def _foreseen(self) -> Step:
        """Return the loop over rows of equal lengths, whose ends are predicted: in vectors if rows are long enough, else by elements."""
        vectors, alone = (self._rows(self._in_order(tag)) for tag in (Vector(vectors=1, foreseen=True), Unroll(1)))
        return If(self._are_longer(0, AVERAGE_STEADY), vectors, alone)

    def _in_order(self, tag: Vector | Unroll) -> Step:
        """Return a row's body with a tag on its sums, and with prefetches of elements of later rows that are read in order."""
        loops = {id(found.loop) for found in self.sums}

        def change(loop: For) -> Step:
            if id(loop) not in loops:
                return loop
            asked = nodes_of(asking_ahead(loop), Prefetch)  # only of elements read in order
            wider = [replace(substitute(step, {loop.variable.name: loop.low}), count=FEWEST) for step in asked]
            body = transform_steps(loop.body, lambda step: Steps(()) if step in asked else step)
            return Steps((*wider, replace(loop, body=body, tag=tag)))

        return self._changed(change)

    def _rows(self, body: Step) -> For:
        return For(self.loop.variable, self.first, self.past, body, origin=self.loop.origin)

    def _uneven(self) -> Step:
        """Return the steps that sum rows of different lengths in a batch: first all terms, then the sums."""
        ends = zip(self.sums, self.rooms, self.firsts, self.pasts, strict=True)
        twice = [self._are_longer(number, AVERAGE_ONCE) for number in range(len(self.sums))]
        at_once = [
            Declare(variable, Select(longer, Const(2 * AT_ONCE, I64), Const(AT_ONCE, I64), I64))
            for variable, longer in zip(self.at_once, twice, strict=True)
        ]
        terms = [terms_of(found, room, first, past) for found, room, first, past in ends]
        placed = [
            Placed(found.loop, found.step.variable, found.begin, room, first, self.at_once[number])
            for number, (found, room, first) in enumerate(zip(self.sums, self.rooms, self.firsts, strict=True))
        ]
        one_row = Steps((*at_once, self._rows(self._with_sums([row_sum(each, AT_ONCE, self.lanes, self.fresh) for each in placed]))))
        return Steps((*terms, If(Binary("<", Const(BESIDE[-1], I64), self.longest, BOOL), one_row, self._beside(placed))))

    def _beside(self, placed: list[Placed]) -> Step:
        """Return the steps that sum short rows, several at once: first whole groups of rows, then the remaining ones."""
        row, behind, rest = self.loop.variable, Const(self.room_length, I64), Var(self.fresh(f"{self.loop.variable.name}_rest"), I64)
        groups, left = list[Step](), list[Step]()
        for each in placed:
            beside = min(ROWS_BESIDE, self.lanes)
            rows = replace(self._rows(Steps(())), high=rest, step=beside)
            *shorter, most = (sums_beside(each, rows, self.first, behind, together, self.lanes, self.fresh) for together in BESIDE)
            chosen: Step = most
            for together, made in zip(reversed(BESIDE[:-1]), reversed(shorter), strict=True):
                chosen = If(Binary("<", Const(together, I64), self.longest, BOOL), chosen, made)
            groups.append(chosen)
            rows = replace(self._rows(Steps(())), low=rest)
            left.append(sums_beside(each, rows, self.first, behind, BESIDE[-1], self.lanes, self.fresh))
        several = Const(min(ROWS_BESIDE, self.lanes), I64)
        whole = Binary("*", Binary("/", self.rows, several, I64), several, I64)
        sums = self._with_sums([summed_beside(each, row, self.first, behind) for each in placed])
        return Steps((Declare(rest, _plus(self.first, whole)), *groups, *left, self._rows(sums)))

    def _with_sums(self, made: list[Step]) -> Step:
        """Return a row's body with other statements in place of its sums."""
        sums = {id(found.loop): step for found, step in zip(self.sums, made, strict=True)}
        return self._changed(lambda loop: sums.get(id(loop), loop))

    def _changed(self, change: Callable[[For], Step]) -> Step:
        """Return a row's body with other loops in it."""

        def visit(statement: Step) -> Step:
            if isinstance(statement, For):
                return change(statement)
            if not isinstance(statement, Steps | If):
                return statement
            return statement.rebuild(tuple(visit(child) if isinstance(child, Step) else child for child in statement.children))  # type: ignore[return-value]

        return visit(self.loop.body)
