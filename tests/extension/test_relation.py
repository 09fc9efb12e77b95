"""Four relations and their directives that no file of the compiler knows: one class each, and a function that puts its loop."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass

import pytest
from differential import scheduled
from differential.scheduled import Scheduled, kinds_of
from sparsetune.compiler.concrete.arithmetic import Bounds, Value
from sparsetune.compiler.concrete.nodes import Program
from sparsetune.compiler.concrete.provenance import Provenance, Recovery
from sparsetune.compiler.concrete.relations import Relation
from sparsetune.compiler.concrete.shapes import Shape, Through
from sparsetune.compiler.errors import ScheduleError
from sparsetune.compiler.schedule import directives as d
from sparsetune.compiler.schedule.apply import register, unregister
from sparsetune.compiler.schedule.context import Context
from sparsetune.compiler.schedule.loop_directives import replace_loop
from sparsetune.compiler.schedule.schedule import Schedule


@dataclass(frozen=True)
class Reversal(Relation):
    """``parent`` from its last value to its first: ``parent = low + length - 1 - child``."""

    parent: str
    child: str

    @property
    def parents(self) -> tuple[str, ...]:
        return (self.parent,)

    @property
    def children(self) -> tuple[str, ...]:
        return (self.child,)

    def _mirrored(self, value: Value, recovery: Recovery[Value]) -> Value:
        arith = recovery.arithmetic
        return arith.sub(arith.sub(recovery.length(self.parent), arith.constant(1)), value)

    def recover_parent(self, parent: str, recovery: Recovery[Value]) -> Value:
        return recovery.arithmetic.add(recovery.bounds(self.parent)[0], self._mirrored(recovery.value(self.child), recovery))

    def recover_child(self, child: str, recovery: Recovery[Value]) -> Value:
        offset = recovery.arithmetic.sub(recovery.value(self.parent), recovery.bounds(self.parent)[0])
        return self._mirrored(offset, recovery)

    def child_bounds(self, child: str, recovery: Recovery[Value]) -> Bounds[Value]:
        return recovery.arithmetic.constant(0), recovery.length(self.parent)

    def child_extent(self, child: str, graph: Provenance, extents: Mapping[str, int]) -> int | None:
        return graph.constant_extent(self.parent, extents)

    def child_low(self, child: str, graph: Provenance) -> int | None:
        return 0

    def __str__(self) -> str:
        return f"{self.child} = {self.parent} backwards"


@dataclass(frozen=True)
class Shift(Relation):
    """``child = parent + amount``, as an affine subscript has it."""

    parent: str
    child: str
    amount: int

    @property
    def parents(self) -> tuple[str, ...]:
        return (self.parent,)

    @property
    def children(self) -> tuple[str, ...]:
        return (self.child,)

    def recover_parent(self, parent: str, recovery: Recovery[Value]) -> Value:
        return recovery.arithmetic.sub(recovery.value(self.child), recovery.arithmetic.constant(self.amount))

    def recover_child(self, child: str, recovery: Recovery[Value]) -> Value:
        return recovery.arithmetic.add(recovery.value(self.parent), recovery.arithmetic.constant(self.amount))

    def child_bounds(self, child: str, recovery: Recovery[Value]) -> Bounds[Value]:
        arith, amount = recovery.arithmetic, recovery.arithmetic.constant(self.amount)
        low, high = recovery.bounds(self.parent)
        return arith.add(low, amount), arith.add(high, amount)

    def child_extent(self, child: str, graph: Provenance, extents: Mapping[str, int]) -> int | None:
        return graph.constant_extent(self.parent, extents)

    def child_low(self, child: str, graph: Provenance) -> int | None:
        low = graph.constant_low(self.parent)
        return None if low is None else low + self.amount

    def __str__(self) -> str:
        return f"{self.child} = {self.parent} + {self.amount}"


@dataclass(frozen=True)
class OrderedShift(Shift):
    """A shift that goes through what its parent goes through: stored entries in their order, none of which is searched for."""

    in_order = True

    def shape(self, child: str, graph: Provenance, known: Container[str]) -> Shape:
        return Through(self.parent)


@dataclass(frozen=True)
class Dealt(Relation):
    """``parent`` dealt out in turn, as cards are: ``parent = low + turn * hands + hand``; in the last turn it may leave its range."""

    parent: str
    hand: str
    turn: str
    hands: int

    @property
    def parents(self) -> tuple[str, ...]:
        return (self.parent,)

    @property
    def children(self) -> tuple[str, ...]:
        return (self.hand, self.turn)

    def recover_parent(self, parent: str, recovery: Recovery[Value]) -> Value:
        arith = recovery.arithmetic
        offset = arith.add(arith.mul(recovery.value(self.turn), arith.constant(self.hands)), recovery.value(self.hand))
        return arith.add(recovery.bounds(self.parent)[0], offset)

    def recover_child(self, child: str, recovery: Recovery[Value]) -> Value:
        arith, hands = recovery.arithmetic, recovery.arithmetic.constant(self.hands)
        offset = arith.sub(recovery.value(self.parent), recovery.bounds(self.parent)[0])
        return arith.mod(offset, hands) if child == self.hand else arith.floordiv(offset, hands)

    def child_bounds(self, child: str, recovery: Recovery[Value]) -> Bounds[Value]:
        arith, hands = recovery.arithmetic, recovery.arithmetic.constant(self.hands)
        return arith.constant(0), hands if child == self.hand else arith.ceildiv(recovery.length(self.parent), hands)

    def child_extent(self, child: str, graph: Provenance, extents: Mapping[str, int]) -> int | None:
        whole = graph.constant_extent(self.parent, extents)
        return self.hands if child == self.hand else None if whole is None else -(-whole // self.hands)

    def child_low(self, child: str, graph: Provenance) -> int | None:
        return 0

    def overruns(self, parent: str, graph: Provenance, extents: Mapping[str, int]) -> bool:
        return super().overruns(parent, graph, extents) or not graph.divisible(self.parent, self.hands, extents)

    def __str__(self) -> str:
        return f"{self.parent} = {self.turn} * {self.hands} + {self.hand}"


@dataclass(frozen=True)
class Reverse(d.Directive):
    """Run through a loop backwards."""

    keyword = "reverse"
    parameters = (d.Parameter("index", "index"), d.Parameter("child", "new"))
    index: str
    child: str


@dataclass(frozen=True)
class ShiftBy(d.Directive):
    """Count a loop from somewhere else."""

    keyword = "shift"
    parameters = (d.Parameter("index", "index"), d.Parameter("child", "new"), d.Parameter("amount", "integer"))
    index: str
    child: str
    amount: int


@dataclass(frozen=True)
class Displace(ShiftBy):
    """Count a loop from somewhere else, in its order."""

    keyword = "displace"


@dataclass(frozen=True)
class Deal(d.Directive):
    """Deal the iterations of a loop out in turn."""

    keyword = "deal"
    parameters = (d.Parameter("index", "index"), d.Parameter("hand", "new"), d.Parameter("turn", "new"), d.Parameter("hands", "integer"))
    index: str
    hand: str
    turn: str
    hands: int


def reverse(program: Program, directive: Reverse, context: Context) -> Program:
    return replace_loop(program, directive.index, Reversal(directive.index, directive.child), directive.path)


def shift(program: Program, directive: ShiftBy, context: Context) -> Program:
    return replace_loop(program, directive.index, Shift(directive.index, directive.child, directive.amount), directive.path)


def displace(program: Program, directive: Displace, context: Context) -> Program:
    return replace_loop(program, directive.index, OrderedShift(directive.index, directive.child, directive.amount), directive.path)


def deal(program: Program, directive: Deal, context: Context) -> Program:
    relation = Dealt(directive.index, directive.hand, directive.turn, directive.hands)
    return replace_loop(program, directive.index, relation, directive.path)


@pytest.fixture(autouse=True)
def _directives() -> Iterator[None]:
    register(Reverse, reverse)
    register(ShiftBy, shift)
    register(Displace, displace)
    register(Deal, deal)
    yield
    unregister(Reverse)
    unregister(ShiftBy)
    unregister(Displace)
    unregister(Deal)


CASES = (
    ("y(i) = A(i,j) * x(j)", "A=csr", "reverse(i, r)"),
    ("y(i) = A(i,j) * x(j)", "A=csr", "reverse(j, r)"),
    ("y(i) = A(i,j) * x(j)", "A=dcsr x=compressed", "reverse(i, r); reverse(j, s)"),
    ("y(i) = A(i,j) * x(j)", "A=csr", "reverse(i, r); split(r, a, b, 4)"),
    ("y(i) = A(i,j) * x(j)", "A=csr", "split(i, a, b, 4); reverse(b, r)"),
    ("y(i) = A(i,j) * x(j)", "A=csr", "split(i, a, b, 4); reverse(a, r)"),
    ("y(i) = A(i,j) * x(j)", "A=csr", "reverse(i, r); reverse(r, s)"),
    ("y(i) = A(i,j) * x(j)", "A=csr", "reverse(i, r); parallelize(r, cpu_thread, no_races)"),
    ("y(i) = A(i,j) * x(j)", "A=csr", "reverse(i, r); split(r, a, b, 2); parallelize(a, cpu_thread, no_races)"),
    ("y(i) = A(i,j) * x(j)", "A=csc", "reverse(j, r); parallelize(r, cpu_thread, atomics)"),
    ("y(i) = A(i,j) * x(j)", "A=csr", "reverse(i, r); collapse(r, j, f)"),
    ("y(i) = A(i,j) * x(j)", "A=csr y=compressed", "reverse(i, r)"),
    ("Y(i,k) = A(i,j) * X(j,k)", "A=csr", "reverse(k, r)"),
    ("Y(i,k) = A(i,j) * X(j,k)", "A=csr", "reverse(k, r); parallelize(r, cpu_vector, no_races)"),
    ("C(i,j) = A(i,k) * B(k,j)", "A=csr B=csr C=csr", "reverse(i, r)"),
    ("Z(i,j) = B(i,j) + C(i,j)", "B=csr C=csr Z=csr", "reverse(j, r)"),
    ("Z(i,j) = B(i,j) + C(i,j)", "B=csr C=csr", "reverse(i, r); reverse(j, s)"),
    ("Z(i,j) = B(i,j) * C(i,k) * D(j,k)", "B=csr Z=csr", "reverse(k, r)"),
    ("y(i) = A(i,j) * x(j)", "A=csr", "precompute(A(i,j) * x(j), j, j, w); reverse([0], j, r)"),
    ("y(i) = A(i,j) * x(j)", "A=csr", "shift(i, s, 3)"),
    ("y(i) = A(i,j) * x(j)", "A=csr", "shift(j, s, 5); shift(s, t, 2)"),
    ("y(i) = A(i,j) * x(j)", "A=csr", "shift(i, s, 3); reverse(s, r)"),
    ("y(i) = A(i,j) * x(j)", "A=csr", "shift(i, s, 3); split(s, a, b, 4); parallelize(a, cpu_thread, no_races)"),
    ("Z(i,j) = B(i,j) + C(i,j)", "B=csr C=csr Z=csr", "shift(i, s, 1); shift(j, t, 2)"),
    ("y(i) = A(i,j) * x(j)", "A=csr", "displace(j, s, 5)"),
    ("y(i) = A(i,j) * x(j)", "A=dcsr x=compressed", "displace(i, s, 3); displace(j, t, 1)"),
    ("y(i) = A(i,j) * x(j)", "A=csr", "displace(i, s, 3); split(s, a, b, 4); displace(b, c, 2)"),
    ("y(i) = A(i,j) * x(j)", "A=csr", "displace(j, s, 3); split(s, a, b, 4); split(b, c, d, 2)"),
    ("y(i) = A(i,j) * x(j)", "A=csr", "split(i, a, b, 4); displace(b, c, 2); split(c, e, f, 3); reorder(f, e)"),
    ("y(i) = A(i,j) * x(j)", "A=csr", "displace(j, s, 3); reverse(s, r)"),
    ("y(i) = A(i,j) * x(j)", "A=csr", "split(i, a, b, 5000); reorder(b, a); reverse(b, r)"),
    ("Z(i,j) = B(i,j) + C(i,j)", "B=csr C=csr Z=csr", "displace(j, s, 7)"),
    ("Z(i,j) = B(i,j) + C(i,j)", "B=csr C=csr Z=csr", "displace(i, s, 7); parallelize(s, cpu_thread, no_races); assemble(Z, insert)"),
    ("C(i,j) = A(i,k) * B(k,j)", "A=csr B=csr C=csr", "displace(k, s, 7); displace([0], j, t, 3)"),
    ("Z(i,j) = B(i,j) * C(i,k) * D(j,k)", "B=csr Z=csr", "displace(j, s, 1); displace(k, t, 2)"),
    ("y(i) = A(i,j) * x(j)", "A=csr", "deal(i, w, t, 3)"),
    ("y(i) = A(i,j) * x(j)", "A=csr", "deal(i, w, t, 3); split(t, a, b, 2); deal(b, c, e, 4)"),
    ("y(i) = A(i,j) * x(j)", "A=csr", "split(i, a, b, 8); deal(b, w, t, 3); reorder(t, w)"),
    ("y(i) = A(i,j) * x(j)", "A=csr", "deal(i, w, t, 3); collapse(w, t, f)"),
    ("y(i) = A(i,j) * x(j)", "A=csr", "pos(j, p, A); deal(p, w, t, 3)"),
    ("y(i) = A(i,j) * x(j)", "A=csr", "collapse(i, j, f); pos(f, p, A); deal(p, w, t, 3); parallelize(w, cpu_thread, atomics)"),
    ("y(i) = A(i,j) * x(j)", "A=dcsr x=compressed", "deal(i, w, t, 4); deal(j, u, v, 2)"),
    ("Y(i,k) = A(i,j) * X(j,k)", "A=csr", "deal(k, w, t, 4); reorder(t, w); parallelize(w, cpu_vector, no_races)"),
    ("C(i,j) = A(i,k) * B(k,j)", "A=csr B=csr C=csr", "deal(i, v, t, 4)"),
    ("Z(i,j) = B(i,j) * C(i,k) * D(j,k)", "B=csr Z=csr", "pos(j, p, B); deal(p, w, t, 4); parallelize(t, cpu_thread, no_races)"),
)


@pytest.mark.parametrize(("expression", "kinds", "schedule"), CASES)
def test_a_relation_of_ones_own_is_lowered_and_right(expression: str, kinds: str, schedule: str) -> None:
    case = Scheduled(0, expression, kinds_of(kinds), schedule)
    assert scheduled.interpreted_fault(case, case.compiled()) is None


@pytest.mark.cc
@pytest.mark.parametrize(
    "schedule", ["reverse(i, r); split(r, a, b, 2); parallelize(a, cpu_thread, no_races)", "shift(i, s, 3)", "deal(i, w, t, 3)"]
)
def test_it_is_compiled_too(schedule: str) -> None:
    case = Scheduled(0, "y(i) = A(i,j) * x(j)", kinds_of("A=csr"), schedule)
    assert scheduled.fault(case, case.compiled()) is None


def test_what_goes_through_its_parent_steps_through_stored_levels() -> None:
    expression, kinds = "y(i) = A(i,j) * x(j)", kinds_of("A=csr")
    displaced = Scheduled(0, expression, kinds, "displace(j, s, 5)").compiled().source
    searched = Scheduled(0, expression, kinds, "shift(j, s, 5)").compiled().source
    assert "lower_bound" not in displaced.partition("static")[2]
    assert "lower_bound" in searched


def test_its_directive_has_a_text_and_reasons() -> None:
    assert str(Schedule("reverse( i,r )")) == "reverse(i, r)"
    with pytest.raises(ScheduleError, match="the name j is taken"):
        Scheduled(0, "y(i) = A(i,j) * x(j)", kinds_of("A=csr"), "reverse(i, j)").compiled()
    with pytest.raises(ScheduleError, match="take the positions first"):
        Scheduled(0, "y(i) = A(i,j) * x(j)", kinds_of("A=csr"), "reverse(j, r); pos(r, p, A)").compiled()
    with pytest.raises(ValueError, match="there is a directive reverse already"):
        register(Reverse, reverse)
