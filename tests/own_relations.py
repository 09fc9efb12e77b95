"""Four relations and their directives that no file of the compiler knows: one class each, and a function that puts its loop."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass

from sparsetune.compiler.concrete.arithmetic import Bounds, Value
from sparsetune.compiler.concrete.nodes import Program
from sparsetune.compiler.concrete.provenance import Provenance, Recovery
from sparsetune.compiler.concrete.relations import Relation
from sparsetune.compiler.concrete.shapes import Shape, Through
from sparsetune.compiler.schedule import directives as d
from sparsetune.compiler.schedule.context import Context
from sparsetune.compiler.schedule.loop_directives import replace_loop


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
