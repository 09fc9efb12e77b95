"""Keeps elements that a loop updates in every iteration in registers while it runs.

``for p: for k in 0 .. 32: Y[i*32 + k] += ...`` reads and writes the same row for every p. If the row does not depend on
p and nothing else uses ``Y``, it is read into a ``registers`` array before the loop and written back after it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..frozen import frozen
from ..ir.nodes import (
    I64,
    Allocate,
    ArrayRef,
    Const,
    Declare,
    Fill,
    For,
    Function,
    Grow,
    Load,
    Node,
    Parallel,
    Prefetch,
    Publish,
    SetVar,
    Step,
    Store,
    Type,
    Value,
    Var,
    Vector,
)
from ..ir.rewrite import array_types, as_steps, block, has, mentions, nodes_of, remembered
from .forms import WRITTEN_OUT, is_short, is_vectorizable
from .manager import Setting

_UPDATES = frozenset(("+", "-", "*", "min", "max"))


@frozen
class Row:
    """Consecutive elements that a loop updates: ``array[place]`` for ``variable`` in 0 .. ``extent``."""

    array: str
    place: Value
    variable: Var
    extent: int


def keep_accumulators(function: Function, setting: Setting) -> Function:
    """Return a kernel in which updated rows live in registers around the outermost loops that do not move them."""
    lanes = setting.lanes
    if lanes == 1:
        return function
    types, fresh = {name: Type(kind) for name, kind in array_types(function).items()}, setting.fresh
    registers = {node.array for node in nodes_of(function.body, Allocate) if node.storage == "registers"}

    def fits(loop: For, extent: int) -> bool:
        return is_short(extent, WRITTEN_OUT, lanes) and is_vectorizable(loop, lanes)

    def visit(statement: Step) -> Step:
        if not has(statement, For):
            return statement
        if isinstance(statement, For) and not isinstance(statement.tag, Parallel | Vector):
            rows = [row for row in _rows(statement) if row.array not in registers and fits(_loop_over(statement, row), row.extent)]
            if rows:
                return _keep(statement, rows, types, fresh)
        children = tuple(visit(child) if isinstance(child, Step) else child for child in statement.children)
        return statement.rebuild(children) if children else statement  # type: ignore[return-value]  # statements stay statements

    return replace(function, body=as_steps(visit(function.body)))


def _rows(loop: For) -> list[Row]:
    """Return the rows that a loop only updates, at the same place in all iterations, and in loops over the same extent."""
    if not _runs_through_rows(loop.body) or any(isinstance(node.tag, Parallel) for node in nodes_of(loop.body, For)):
        return []
    bound = {node.name for node in _declared(loop)}
    found: dict[str, Row] = {}
    spoilt: set[str] = set()

    def visit(node: Node, inner: For | None) -> None:
        match node:
            case Store(array, index, _, op, atomic):
                row = None if inner is None or atomic or op not in _UPDATES else _row(array, index, inner, bound)
                if row is None or found.setdefault(array, row) != row:
                    spoilt.add(array)
            case Load(array) | ArrayRef(array) | Fill(array) | Grow(array) | Prefetch(array) | Allocate(array) | Publish(_, array):
                spoilt.add(array)
            case For():
                inner = node if _is_row(node) else None
        for child in node.children:
            visit(child, inner)

    visit(loop.body, None)
    return [row for array, row in found.items() if array not in spoilt]


@remembered
def _runs_through_rows(node: Node) -> bool:
    if not has(node, For):
        return False
    return (isinstance(node, For) and _is_row(node)) or any(_runs_through_rows(child) for child in node.children if isinstance(child, Step))


def _is_row(loop: For) -> bool:
    """Return whether a loop runs from zero to a constant."""
    return isinstance(loop.low, Const) and loop.low.value == 0 and isinstance(loop.high, Const)


def _row(array: str, index: Value, inner: For, bound: set[str]) -> Row | None:
    assert isinstance(inner.high, Const)
    if mentions(index, bound - {inner.variable.name}) or not mentions(index, {inner.variable.name}):
        return None
    return Row(array, index, inner.variable, int(inner.high.value))


def _declared(loop: For) -> list[Var]:
    """Return everything that a loop and the statements in it declare or assign."""
    return [loop.variable, *(node.variable for node in nodes_of(loop.body, Declare, SetVar, For))]


def _loop_over(loop: For, row: Row) -> For:
    """Return the loop that updates a row."""
    loops = [node for node in nodes_of(loop.body, For) if node.variable == row.variable]
    return next(inner for inner in loops if any(node.array == row.array for node in nodes_of(inner.body, Store)))


def _keep(loop: For, rows: list[Row], types: dict[str, Type], fresh: Callable[[str], str]) -> Step:
    names = {row.array: fresh(f"{row.array}_kept") for row in rows}
    places = {row.array: row.variable for row in rows}

    def redirect(node: Step) -> Step:
        if isinstance(node, Store) and node.array in names:
            return replace(node, array=names[node.array], index=places[node.array])
        children = tuple(redirect(child) if isinstance(child, Step) else child for child in node.children)
        return node.rebuild(children) if children else node  # type: ignore[return-value]

    before: list[Step] = []
    after: list[Step] = []
    for row in rows:
        kept, kind, extent = names[row.array], types[row.array], Const(row.extent, I64)
        load = Store(kept, row.variable, Load(row.array, row.place, kind))
        store = Store(row.array, row.place, Load(kept, row.variable, kind))
        before += [Allocate(kept, kind, extent, "registers"), For(row.variable, Const(0, I64), extent, load)]
        after.append(For(row.variable, Const(0, I64), extent, store))
    return block([*before, redirect(loop), *after])
