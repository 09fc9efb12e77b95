"""Sums of rows that are nearly all empty: first zeros, then the sums of rows with elements.

``for i: t = 0; for p in pos[i] .. pos[i + 1]: t += ...; y[i] = t`` reads the end of every row and stores its sum. If most rows are empty,
this takes most of the time, and every line of the result is read before it is written. Setting the whole result to zero at once bypasses
the caches if the result is larger than they are, and runs of empty rows are skipped a line of ``pos`` at a time. Whether most rows are
empty is known when the kernel runs; the loop has both forms.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..frozen import frozen
from ..ir.nodes import (
    BOOL,
    I64,
    ArrayRef,
    Binary,
    Call,
    Cast,
    Const,
    Declare,
    Fill,
    For,
    Function,
    If,
    Load,
    Parallel,
    Prefetch,
    SetVar,
    Step,
    Steps,
    Store,
    Value,
    Var,
    While,
)
from ..ir.rewrite import as_steps, has_only, leaves, nodes_of, substitute
from .folding import simplify_expression
from .manager import Setting
from .segments import is_place

EMPTY = 16
"""Rows count as nearly all empty with at least this many rows for each element: with fewer, summing all rows is faster than searching."""

PIECE = 4096
"""The number of rows in a piece that a thread takes."""


@frozen
class _RowSums:
    """A loop that stores the sum of every row's elements.

    Attributes:
        store: the store of the sum, at the row's place.
        zero: the sum of an empty row.
        begin: the load of the begin of a row's elements.
    """

    loop: For
    store: Store
    zero: Const
    begin: Load


def skip_empty_rows(function: Function, setting: Setting) -> Function:
    """Return a kernel in which loops that store sums of rows have a second form for rows nearly all of which are empty."""
    fresh = setting.fresh

    def visit(statement: Step) -> Step:
        if isinstance(statement, For):
            rows = _row_sums(statement)
            if rows is not None:
                return If(_are_empty(rows), _filled(rows, Var(fresh(f"{statement.variable.name}_filled"), I64), fresh), statement)
            if not isinstance(statement.tag, Parallel):
                return statement  # inside a loop over blocks or batches there are too few rows
        if not isinstance(statement, Steps | If | For):
            return statement
        children = tuple(visit(child) if isinstance(child, Step) else child for child in statement.children)
        return statement if children == statement.children else statement.rebuild(children)  # type: ignore[return-value]

    return replace(function, body=as_steps(visit(function.body)))


def _row_sums(loop: For) -> _RowSums | None:
    """Return a loop that sums each row and stores the sum; None if it does anything else."""
    steps = leaves(loop.body)
    if len(steps) < 3 or loop.step != 1 or loop.private or loop.finish or not isinstance(loop.tag, Parallel | None):
        return None
    *before, sums, store = steps
    declared = {step.variable.name: step.value for step in before if isinstance(step, Declare)}
    if len(declared) != len(before) or not isinstance(store, Store) or store.op or store.atomic or store.index != loop.variable:
        return None
    inner = sums.then if isinstance(sums, If) and sums.otherwise is None else sums  # the condition is that the row has elements
    if not isinstance(inner, For) or (inner is not sums and sums != If(Binary("<", inner.low, inner.high, BOOL), inner)):
        return None
    if not has_only(inner.body, Steps, Declare, Prefetch, SetVar):
        return None
    begin, end = (_resolved(bound, declared) for bound in (inner.low, inner.high))
    zero = declared.pop(store.value.name, None) if isinstance(store.value, Var) else None
    if not isinstance(begin, Load) or not _is_segment(begin, end, loop.variable):
        return None
    if not isinstance(zero, Const) or inner.body.assigned - inner.body.declared != {store.value.name}:  # type: ignore[union-attr]
        return None
    bounds = {name for name, value in declared.items() if _resolved(value, {}) in (begin, end)}
    used = [node for node in nodes_of(loop, Load, Store, Prefetch, ArrayRef) if node.array == store.array]
    return _RowSums(loop, store, zero, begin) if bounds == declared.keys() and used == [store] else None


def _is_segment(begin: Load, end: Value, row: Var) -> bool:
    return is_place(begin, begin.array, row, 0) and is_place(end, begin.array, row, 1)


def _resolved(value: Value, declared: dict[str, Value]) -> Value:
    """Return a bound, replaced by its declared value if it is a variable."""
    value = declared.get(value.name, value) if isinstance(value, Var) else value
    return value.operand if isinstance(value, Cast) else value


def _binary(op: str, left: Value, right: Value) -> Value:
    return simplify_expression(Binary(op, left, right, I64))


def _begin(rows: _RowSums, row: Value) -> Value:
    return Cast(simplify_expression(substitute(rows.begin, {rows.loop.variable.name: row})), I64)


def _are_empty(rows: _RowSums) -> Value:
    """Return the condition that there are so few elements that nearly all rows are empty."""
    low, high = rows.loop.low, rows.loop.high
    elements = _binary("-", _begin(rows, high), _begin(rows, low))
    return Binary("<=", _binary("*", elements, Const(EMPTY, I64)), _binary("-", high, low), BOOL)


def _filled(rows: _RowSums, filled: Var, fresh: Callable[[str], str]) -> Step:
    """Return the steps that set all rows to zero, and then store the sums of rows with elements."""
    loop, array, zero = rows.loop, rows.store.array, rows.zero
    if not isinstance(loop.tag, Parallel):
        return Steps((Fill(array, loop.low, loop.high, zero), *_sums(rows, filled, loop.low, loop.high)))
    place, piece, first, past = (Var(fresh(f"{loop.variable.name}_{name}"), I64) for name in ("place", "piece", "first", "past"))
    zeros = For(place, loop.low, loop.high, Store(array, place, zero), Parallel("static"))
    length = Const(PIECE, I64)
    body = Steps((
        Declare(first, _binary("+", loop.low, _binary("*", piece, length))),
        Declare(past, _binary("min", _binary("+", first, length), loop.high)),
        *_sums(rows, filled, first, past),
    ))  # fmt: skip
    pieces = _binary("/", _binary("+", _binary("-", loop.high, loop.low), Const(PIECE - 1, I64)), length)
    tag = replace(loop.tag, chunk=None if loop.tag.chunk is None else max(loop.tag.chunk // PIECE, 1))
    return Steps((zeros, For(piece, Const(0, I64), pieces, body, tag, origin=f"pieces of {loop.variable.name}")))


def _sums(rows: _RowSums, filled: Var, low: Value, high: Value) -> tuple[Step, ...]:
    """Return the steps that store the sums of rows with elements among the rows ``low .. high``."""
    pos = ArrayRef(rows.begin.array, rows.begin.type)

    def following(row: Value) -> Value:
        return Call("filled_row", (pos, row, high), I64)

    more = SetVar(filled, following(_binary("+", filled, Const(1, I64))))
    body = Steps((Declare(rows.loop.variable, filled), *leaves(rows.loop.body), more))
    each = While(Binary("<", filled, high, BOOL), body, origin=f"{rows.loop.variable.name} with elements")
    return Declare(filled, following(low)), each
