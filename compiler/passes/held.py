"""Keeps rows that a loop only reads, and that do not change in it, in registers while it runs.

``for p: for k in 0 .. 32: Y[crd[p]*32 + k] += x[p] * U[i*32 + k]`` reads the same row of ``U`` for every p. The C compiler loads it
again each time, since it cannot know that ``Y`` does not overlap. In short loops the row often comes from memory, and is loaded only
after the length of the loop is known. This pass loads it into a ``registers`` array before the loop, if the loop runs at all. Loops over
what is stored below a stored coordinate are not asked that: a tensor has entries there (``Tensor``), and where fibres are short the
question takes a part of the time. Were there none, a row would be loaded for nothing.

A row that is only read to be multiplied with a row that is held already is held as their product, which the C compiler would compute for
each entry of an inner loop. The order of multiplications does not change, so that results are the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..frozen import frozen
from ..ir.arithmetic import ONE, add
from ..ir.nodes import (
    BOOL,
    I64,
    Allocate,
    ArrayRef,
    Binary,
    Cast,
    Const,
    Declare,
    Fill,
    For,
    Function,
    Grow,
    If,
    Load,
    Node,
    Parallel,
    Publish,
    Select,
    SetVar,
    Step,
    Steps,
    Store,
    Take,
    Value,
    Var,
    While,
)
from ..ir.rewrite import as_steps, block, has, mentions, nodes_of, transform
from ..native.machine import held_vectors
from .forms import WRITTEN_OUT, is_short, is_vectorizable
from .manager import Setting
from .plan import chunks_of

SHORTEST = 4
"""The least elements of a row that is kept in registers: shorter rows, up to a vector of 16 bytes, are loaded when they are needed."""


@frozen
class Row:
    """Consecutive elements that a loop needs: ``value`` for ``variable`` in 0 .. ``extent``, a load, or its product with a row that is
    held."""

    array: str
    value: Value
    variable: Var
    extent: int


def hold_rows(function: Function, setting: Setting) -> Function:
    """Return a kernel in which rows that loops read again and again are in registers around the outermost loops that do not move them."""
    lanes = setting.lanes
    return function if lanes == 1 else replace(function, body=as_steps(_Pass(function, setting, lanes).visit(function.body)))


class _Pass:
    def __init__(self, function: Function, setting: Setting, lanes: int) -> None:
        self.lanes, self.fresh = lanes, setting.fresh
        held = [node for node in nodes_of(function.body, Allocate) if node.storage == "registers"]
        self.registers, self.held = {node.array for node in held}, set[str]()
        taken = sum(len(chunks_of(int(node.length.value), lanes)) for node in held if isinstance(node.length, Const))
        self.room = held_vectors(setting.unit.bytes) - taken

    def visit(self, statement: Step, stored: frozenset[Value] = frozenset()) -> Step:
        """Return a statement with rows in registers; ``stored``: variables of loops around it that go through stored coordinates."""
        if not has(statement, For):
            return statement
        if isinstance(statement, For) and statement.tag is None and not is_vectorizable(statement, self.lanes):
            before: list[Step] = []
            changed: Step = statement
            for row in self._rows(statement):
                size = len(chunks_of(row.extent, self.lanes))
                if size <= self.room:
                    self.room -= size
                    name = self.fresh(f"{row.array}_held")
                    self.registers.add(name)
                    made, changed = _held(self._multiplied(row, changed), changed, name)
                    self.held.add(name)
                    before += made
            if before:
                assert isinstance(changed, For)
                inner = self._children(changed, stored)
                if _segment(statement) in stored:
                    return block([*before, inner])
                return If(Binary("<", statement.low, statement.high, BOOL), block([*before, inner]))
        return self._children(statement, stored)

    def _children(self, statement: Step, stored: frozenset[Value]) -> Step:
        if isinstance(statement, For) and _segment(statement) is not None:
            stored |= {statement.variable}
        children = tuple(self.visit(child, stored) if isinstance(child, Step) else child for child in statement.children)
        return statement.rebuild(children) if children else statement  # type: ignore[return-value]  # statements stay statements

    def _rows(self, loop: For) -> list[Row]:
        """Return the rows that every iteration of a loop reads, at the same place, and that the loop does not write."""
        fitting = [inner for inner in always_inside(loop.body) if is_row_loop(inner, self.lanes)]
        if not fitting or any(isinstance(node.tag, Parallel) for node in nodes_of(loop.body, For)):
            return []
        bound = {loop.variable.name, *(node.variable.name for node in nodes_of(loop.body, Declare, SetVar, For))}
        spoilt = self.registers | {node.array for node in nodes_of(loop.body, Store, ArrayRef, Fill, Grow, Take, Allocate, Publish)}
        found: dict[Load, Row] = {}
        for inner in fitting:
            assert isinstance(inner.high, Const)
            for load in nodes_of(inner.body, Load):
                still = not mentions(load.index, bound - {inner.variable.name})
                row = load.type.is_float and load.first is None and is_consecutive(load, inner.variable)
                if row and still and load.array not in spoilt:
                    found.setdefault(load, Row(load.array, load, inner.variable, int(inner.high.value)))
        return list(found.values())

    def _multiplied(self, row: Row, loop: Step) -> Row:
        """Return the product that a loop computes wherever it reads a row, if the other factor is a row that is held; else the row."""
        products = [node for node in nodes_of(loop, Binary) if node.op == "*" and row.value in (node.left, node.right)]
        if not products or len(set(products)) > 1 or len(products) < sum(node == row.value for node in nodes_of(loop, Load)):
            return row
        other = products[0].right if products[0].left == row.value else products[0].left
        return replace(row, value=products[0]) if isinstance(other, Load) and other.array in self.held else row


def is_row_loop(loop: For, lanes: int) -> bool:
    """Return whether a loop runs through a row of a few vectors."""
    if not isinstance(loop.high, Const) or not isinstance(loop.low, Const) or loop.low.value != 0:
        return False
    if nodes_of(loop.body, For, If, While, Select):
        return False
    extent = int(loop.high.value)
    return extent >= SHORTEST and is_short(extent, WRITTEN_OUT, lanes) and is_vectorizable(loop, lanes)


def _segment(loop: For) -> Value | None:
    """Return the position whose stored coordinates a loop goes through, those below it in the next level; None for other loops."""
    low, high = (bound.operand if isinstance(bound, Cast) else bound for bound in (loop.low, loop.high))
    return low.index if isinstance(low, Load) and high == replace(low, index=add(low.index, ONE)) else None


def always_inside(statement: Step) -> Iterator[For]:
    """Yield the loops in a statement that are not under a condition."""
    for inner in statement.statements if isinstance(statement, Steps) else (statement,):
        if isinstance(inner, For):
            yield inner
            yield from always_inside(inner.body)
        elif isinstance(inner, Steps):
            yield from always_inside(inner)


def is_consecutive(load: Load, variable: Var) -> bool:
    """Return whether a load reads the next element when a variable increases by one."""
    match load.index:
        case Var() as place:
            return place == variable
        case Binary("+", base, place) if place == variable:
            return not mentions(base, {variable.name})
    return False


def _held(row: Row, loop: Step, name: str) -> tuple[list[Step], Step]:
    """Return the steps that bring a row into registers, and the loop that reads it there."""
    extent, kind = Const(row.extent, I64), row.value.type
    copy = Load(name, row.variable, kind)

    def redirect(node: Node) -> Node:
        return copy if node == row.value else node

    read = For(row.variable, Const(0, I64), extent, Store(name, row.variable, row.value))
    return [Allocate(name, kind, extent, "registers"), read], transform(loop, redirect)
