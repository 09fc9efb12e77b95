"""Cuts loops into vectors of the machine's width, and turns small arrays into vector registers.

A loop tagged ``Vector`` (its lanes are independent; scalars that it updates are reductions, which may be reassociated; ``sums``
tags sums by default), or an untagged one whose iterations are provably independent, is vectorized if every part
of it has a vector form: consecutive elements, values that are the same for all lanes, arithmetic. With small
constant bounds it is written out completely, in full vectors and then smaller ones. Otherwise a loop over vectors is followed by
the remainder: one vector of which only the first lanes are read, if the machine has masks and the loop sums, else a loop over
elements. A loop tagged ``Vector`` without such a form keeps its tag (``passes.offered``).

A ``registers`` array that is used only in such loops over all of it becomes one variable for each of its vectors, so
that an accumulator stays in registers inside a sparse loop (DESIGN 2.8).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from ..ir.nodes import (
    BOOL,
    I64,
    Allocate,
    Binary,
    Call,
    Cast,
    Const,
    Declare,
    Fill,
    For,
    Function,
    If,
    Prefetch,
    SetVar,
    Step,
    Steps,
    Store,
    Type,
    Value,
    Var,
    Vector,
    While,
)
from ..ir.rewrite import as_steps, block, block_again, has, leaves, mentions, nodes_of, transform_steps
from .folding import simplify_expression
from .forms import WRITTEN_OUT, gathered_bytes, is_short, is_vectorizable
from .lanes import NoVectors, Vectorizer, element_accesses
from .manager import Setting
from .narrow import WIDE, narrow_extents
from .overlaps import overlapping_extents
from .plan import REDUCTIONS, Chunk, Plan, begun, chunks_of, combined, first_values, make_plan
from .register_arrays import register_lengths, vector_loops

ACCUMULATORS = 4
"""The number of independent partial sums of a reduction: enough to hide the latency of additions."""

WRITTEN_ACCUMULATORS = 2
"""The same for a sum that is written out: sums of further outer iterations overlap with it, and all partial sums must be added in the
end."""

GATHERING = 2
"""The same for sums that gather by single loads. With gather instructions one is enough, since these take longer than the additions."""

REGISTERS = 28
"""The most vector registers for arrays; larger arrays stay in memory."""

_REWRITTEN = (Steps, For, Allocate, Fill)


def vectorize(function: Function, setting: Setting) -> Function:
    """Return a kernel whose vector loops are made of vectors, and whose register arrays are variables where they can be."""
    return function if setting.lanes == 1 else replace(function, body=_Pass(function, setting).run(function.body))


class _Pass:
    def __init__(self, function: Function, setting: Setting) -> None:
        unit, self.widest, self.lanes = setting.unit, setting.widest, setting.lanes
        self.narrows, self.narrow, self.overlapping = unit.bytes == WIDE, frozenset[int](), frozenset[int]()
        self.masks, self.gather_bytes = unit.masks, min(unit.bytes, unit.gather_bytes)
        self.gathering = GATHERING if self.gather_bytes < unit.bytes else 1
        self.fresh = setting.fresh
        self.registers: dict[str, tuple[Chunk, ...]] = {}
        self.names: dict[tuple[str, int], str] = {}

    def run(self, body: Steps) -> Steps:
        loops = vector_loops(body, self.lanes)
        if self.narrows:
            self.narrow = narrow_extents(loops, self.lanes)
        lengths = register_lengths(body, self.lanes)
        self.overlapping = overlapping_extents(loops, lengths)
        self._allot(lengths)
        return as_steps(self.statement(body))

    # Registers

    def _allot(self, lengths: Mapping[str, int]) -> None:
        """Keep arrays in registers while there are some left. Vectors along an array that stays in memory do not overlap."""
        while True:
            self.registers = self._fitting(lengths)
            in_memory = {length for array, length in lengths.items() if array not in self.registers}
            if self.overlapping.isdisjoint(in_memory):
                break
            self.overlapping -= in_memory
        for array, chunks in self.registers.items():
            self.names |= {(array, chunk.first): self.fresh(f"{array}_{chunk.first}") for chunk in chunks}

    def _fitting(self, lengths: Mapping[str, int]) -> dict[str, tuple[Chunk, ...]]:
        """Return the vectors of the arrays for which there are registers."""
        found, taken = dict[str, tuple[Chunk, ...]](), 0
        for array, length in lengths.items():
            chunks = self._chunks(length)
            if taken + len(chunks) <= REGISTERS:
                found[array], taken = chunks, taken + len(chunks)
        return found

    def _chunks(self, extent: int) -> tuple[Chunk, ...]:
        """Return the vectors of a loop that is written out, or of a register array that such loops use."""
        return chunks_of(extent, self.lanes // 2 if extent in self.narrow else self.lanes, extent in self.overlapping)

    # Rewriting

    def statement(self, statement: Step) -> Step:
        match statement:
            case Steps(statements):
                return block_again(statement, _with_first_values([self.statement(inner) for inner in statements]))
            case Allocate(array, kind) if array in self.registers:
                return Steps(tuple(Declare(register, Cast(Const(0.0, kind), register.type)) for register in self._variables(array, kind)))
            case Fill(array, _, _, value) if array in self.registers:
                kind = value.type
                return Steps(tuple(SetVar(register, Cast(value, register.type)) for register in self._variables(array, kind)))
            case For():
                return self._loop(statement)
        if not has(statement, *_REWRITTEN):
            return statement
        children = tuple(self.statement(child) if isinstance(child, Step) else child for child in statement.children)
        return statement.rebuild(children)  # type: ignore[return-value]  # statements rebuild to statements

    def _variables(self, array: str, kind: Type) -> list[Var]:
        return [Var(self.names[array, chunk.first], kind.vector(chunk.lanes)) for chunk in self.registers[array]]

    def _loop(self, loop: For) -> Step:
        if isinstance(loop.tag, Vector):
            loop, after = self._without_stores_to_one_place(loop)
            if after:
                return block([after[0], self._loop(loop), after[1]])
        if not is_vectorizable(loop, self.lanes):
            parts = tuple(self.statement(child) if isinstance(child, Step) else child for child in loop.children)
            return loop.rebuild(parts)  # type: ignore[return-value]
        if isinstance(loop.low, Const) and isinstance(loop.high, Const):
            extent = int(loop.high.value) - int(loop.low.value)
            most = WRITTEN_OUT // 4 if nodes_of(loop.body, For) else WRITTEN_OUT
            used = {array for array, _, _ in element_accesses(loop.body)}
            if is_short(extent, most, self.lanes) or used & self.registers.keys():
                return self._written_out(loop, self._chunks(extent))
        return self._vector_loop(loop)

    def _without_stores_to_one_place(self, loop: For) -> tuple[For, tuple[Step, Step] | None]:
        """Turn a reduction into an array element into one into a scalar, which is added to the element once."""
        stores = nodes_of(loop.body, Store)
        touched = Counter(array for array, _, _ in element_accesses(loop.body))
        for store in stores:
            inside = {node.variable.name for node in nodes_of(loop.body, Declare, For)} | {loop.variable.name}
            if store.op not in REDUCTIONS or mentions(store.index, inside) or touched[store.array] != 1:
                continue
            total = Var(self.fresh(f"{store.array}_sum"), store.value.type)
            body = _replaced(loop.body, store, SetVar(total, store.value, store.op))
            first = Const(float(REDUCTIONS[store.op][1]), total.type) if total.type.is_float else Const(REDUCTIONS[store.op][1], total.type)
            back = replace(store, value=total, op="+" if store.op == "-" else store.op)
            return replace(loop, body=body), (Declare(total, first), back)
        return loop, None

    def _written_out(self, loop: For, chunks: tuple[Chunk, ...]) -> Step:
        plan = make_plan(loop, self.fresh)
        plan.registers = self.names
        stored = {array for array, _, written in element_accesses(loop.body) if written}
        loaded = {array for array, _, written in element_accesses(loop.body) if not written}
        plan.hoisted = None if stored & loaded - self.registers.keys() else {}
        low, accumulators = int(_constant(loop.low)), _vectors_a_step(loop) or WRITTEN_ACCUMULATORS
        made = []
        for number, chunk in enumerate(chunks):
            place = Const(low + chunk.first, I64)
            vectorizer = Vectorizer(plan, place, chunk.lanes, number, number % accumulators, chunk.first, _constant(loop.high) - low)
            made.append(vectorizer.statement(loop.body))
        hoisted = list((plan.hoisted or {}).values())
        return block([*hoisted, *begun(plan, block(made)), *combined(plan)])

    def _vector_loop(self, loop: For) -> Step:
        plan = make_plan(loop, self.fresh)
        steps: list[Step] = []
        low, high = (self._named(bound, loop, suffix, steps) for bound, suffix in ((loop.low, "begin"), (loop.high, "end")))
        reduces = any(node.variable.name not in plan.inside for node in nodes_of(loop.body, SetVar))
        gathered = gathered_bytes(loop, self.lanes) or 0
        lanes = self.gather_bytes // max(gathered, self.widest) if gathered else self.lanes
        suiting = (self.gathering if gathered else ACCUMULATORS) if reduces else 1
        widths = sorted({lanes * (_vectors_a_step(loop) or suiting), lanes}, reverse=True)
        closed = isinstance(low, Const) and isinstance(high, Const)
        at = loop.variable if closed else Var(self.fresh(f"{loop.variable.name}_at"), loop.variable.type)
        loops: list[Step] = [] if closed else [Declare(at, low)]
        for width in widths:
            body: list[Step] = []
            for part in range(width // lanes):
                place = simplify_expression(Binary("+", at, Const(part * lanes, I64), I64))
                body.append(Vectorizer(plan, place, lanes, part, part, row=width).statement(loop.body))
            if closed:
                stop = _last_whole(_constant(low), _constant(high), width)
                loops.append(For(at, low, stop, block(body), step=width, origin=loop.origin))
                low = stop
            else:  # the end of whole steps is not computed before, since short loops would wait for it
                more = Binary("<", at, Binary("-", high, Const(width - 1, I64), I64), BOOL)
                loops.append(While(more, block([*body, SetVar(at, Const(width, I64), "+")]), loop.origin))
        foreseen = isinstance(loop.tag, Vector) and loop.tag.foreseen
        rest = self._first_lanes(loop, plan, at, high, lanes) if not closed and reduces and self.masks and not foreseen else None
        least = loop.tag.least if not closed and isinstance(loop.tag, Vector) else 0
        if rest is not None:
            loops.append(block([rest, SetVar(at, high)]) if least else rest)
        whole = [*first_values(plan), *loops, *combined(plan)]
        if least:
            enough = Binary("<=", Const(least, I64), Binary("-", high, low, I64), BOOL)
            whole = [loops[0], If(Call("seldom", (enough,), BOOL), block([*first_values(plan), *loops[1:], *combined(plan)]))]
        elif rest is not None:
            some = block([*first_values(plan), *loops[1:], *combined(plan)])
            return block([*steps, loops[0], If(Binary("<", at, high, BOOL), some)])
        left = For(loop.variable, low if closed else at, high, _without_prefetches(loop.body), origin=loop.origin)
        return block([*steps, *whole, left])

    def _first_lanes(self, loop: For, plan: Plan, at: Var, high: Value, lanes: int) -> Step | None:
        """Return the remainder of a loop as one partial vector; None if it has no such form.

        The remainder may be empty. Testing that would cost more, since the length of a sparse loop is hard to predict.
        """
        present = Var(self.fresh(f"{loop.variable.name}_left"), I64)
        try:
            body = Vectorizer(plan, at, lanes, 0, 0, present=present).statement(loop.body)
        except NoVectors:
            return None
        return block([Declare(present, Binary("-", high, at, I64)), body])

    def _named(self, bound: Value, loop: For, suffix: str, steps: list[Step]) -> Value:
        if isinstance(bound, Const | Var):
            return bound
        variable = Var(self.fresh(f"{loop.variable.name}_{suffix}"), loop.variable.type)
        steps.append(Declare(variable, bound))
        return variable


def _without_prefetches(body: Step) -> Step:
    """Return a body for the remainder, without prefetches: the vectors before have prefetched its data."""
    return transform_steps(body, lambda node: Steps(()) if isinstance(node, Prefetch) else node)


def _vectors_a_step(loop: For) -> int | None:
    return loop.tag.vectors if isinstance(loop.tag, Vector) else None


def _last_whole(low: int, high: int, width: int) -> Const:
    """Return the end of the last whole step of ``width`` iterations; ``low`` if there is none."""
    return Const(high - max(0, high - low) % width, I64)


def _constant(expr: Value) -> int:
    assert isinstance(expr, Const)
    return int(expr.value)


def _with_first_values(statements: list[Step]) -> list[Step]:
    """Declare registers with the values that the next statements assign to them."""
    made: list[Step] = []
    for statement in statements:
        if not made or not isinstance(made[-1], Steps | Declare) or not isinstance(statement, Steps | SetVar):
            made.append(statement)
            continue
        declared, assigned = leaves(made[-1]), leaves(statement)
        sets = [leaf for leaf in assigned if isinstance(leaf, SetVar) and not leaf.op]
        variables = [leaf.variable for leaf in declared if isinstance(leaf, Declare)]
        whole = bool(sets) and len(sets) == len(assigned) and len(variables) == len(declared)
        reads = {name for leaf in sets for name in leaf.value.variables}  # a value that reads one of them may need its old value
        if whole and [leaf.variable for leaf in sets] == variables and reads.isdisjoint(variable.name for variable in variables):
            made[-1] = Steps(tuple(Declare(leaf.variable, leaf.value) for leaf in sets))
        else:
            made.append(statement)
    return made


def _replaced(statement: Step, old: Step, new: Step) -> Step:
    if statement is old:
        return new
    children = tuple(_replaced(child, old, new) if isinstance(child, Step) else child for child in statement.children)
    return statement.rebuild(children) if children else statement  # type: ignore[return-value]
