"""Joins loops over rows and their entries to one loop over all entries if the row does not matter.

The segments of a compressed level are consecutive, so ``for i in 0 .. n: for p in pos[i] .. pos[i + 1]: values[p] = f(p)`` is
``for p in pos[0] .. pos[n]`` if nothing uses the row. A function of every entry is then one long loop, which is cut into vectors whatever
the lengths of rows. Several levels are joined one after another, from the innermost outwards.
"""

from __future__ import annotations

from dataclasses import replace

from ..ir.nodes import Cast, Const, Declare, For, Function, Load, Parallel, Prefetch, Step, Steps, Store, Value, Var
from ..ir.rewrite import mentions, transform_steps, walk
from .manager import Setting
from .segments import is_place

PIECE = 4096
"""Entries in a chunk, if the schedule gives rows to threads in chunks."""


def join_segments(function: Function, _: Setting) -> Function:
    """Return a kernel in which loops over consecutive segments that treat every entry by itself are loops over all entries."""
    sizes = frozenset(size.name for size in function.sizes)
    body = transform_steps(function.body, lambda statement: _joined(statement, sizes))
    return function if body is function.body else replace(function, body=body)


def _joined(statement: Step, sizes: frozenset[str]) -> Step:
    if not isinstance(statement, For) or statement.step != 1 or not (statement.tag is None or isinstance(statement.tag, Parallel)):
        return statement
    inner, row = _only(statement.body), statement.variable
    if not isinstance(inner, For) or inner.step != 1 or not _is_segment(inner.low, inner.high, row):
        return statement
    if statement.private or statement.finish or inner.private or inner.finish or isinstance(inner.tag, Parallel):
        return statement
    if not _is_whole(statement, sizes) or mentions(inner.body, {row.name}) or not _is_by_entry(inner):
        return statement
    low, high = (_at(bound, place) for bound, place in ((inner.low, statement.low), (inner.high, statement.high)))
    return replace(inner, low=low, high=high, tag=_dealt(statement.tag) or inner.tag)


def _only(body: Step) -> Step:
    """Return the only statement of a body, or the body."""
    while isinstance(body, Steps) and len(body.statements) == 1:
        body = body.statements[0]
    return body


def _loaded(expr: Value) -> Value:
    return expr.operand if isinstance(expr, Cast) else expr


def _is_segment(low: Value, high: Value, row: Var) -> bool:
    """Whether two bounds are those of the segment of a row, possibly through several levels."""
    first, last = _loaded(low), _loaded(high)
    if not isinstance(first, Load) or not isinstance(last, Load) or first.array != last.array:
        return False
    here = is_place(first, first.array, row, 0) and is_place(last, last.array, row, 1)
    return here or _is_segment(first.index, last.index, row)


def _is_whole(loop: For, sizes: frozenset[str]) -> bool:
    """Whether a loop over segments runs over all rows, or over a segment of the level above."""
    if loop.low == Const(0, loop.variable.type):
        return isinstance(loop.high, Const) or (isinstance(loop.high, Var) and loop.high.name in sizes)
    return all(isinstance(_loaded(end), Load) for end in (loop.low, loop.high))


def _is_by_entry(loop: For) -> bool:
    """Whether an iteration only stores values at its own place."""
    statements = (node for node in walk(loop.body) if isinstance(node, Step))
    return all(
        isinstance(step, Steps | Declare | Prefetch) or (isinstance(step, Store) and step.index == loop.variable and not step.op)
        for step in statements
    )


def _at(bound: Value, place: Value) -> Value:
    """Return a bound of a segment with another expression in place of the row."""
    if isinstance(bound, Cast):
        return replace(bound, operand=_at(bound.operand, place))
    assert isinstance(bound, Load)
    return replace(bound, index=_at(bound.index, place) if isinstance(_loaded(bound.index), Load) else place)


def _dealt(tag: object) -> Parallel | None:
    """Return the tag of the loop over entries, given that of the loop over rows."""
    if not isinstance(tag, Parallel):
        return None
    return Parallel(tag.chunking) if tag.chunking in (None, "static") else Parallel(tag.chunking, PIECE)
