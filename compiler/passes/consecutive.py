"""Joins loops over rows and their entries to one loop over all entries if the row does not matter.

The segments of a compressed level are consecutive, so ``for i in 0 .. n: for p in pos[i] .. pos[i + 1]: values[p] = f(p)`` is
``for p in pos[0] .. pos[n]`` if nothing uses the row. A function of every entry is then one long loop, which is cut into vectors whatever
the lengths of rows. Several levels are joined one after another, from the innermost outwards. An entry may have loops of its own, as a
fibre has that is multiplied with a vector: short fibres are then summed in batches across rows (``batches``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..ir.nodes import (
    Allocate,
    Cast,
    Const,
    Declare,
    Fill,
    For,
    Function,
    If,
    Load,
    Node,
    Parallel,
    Prefetch,
    SetVar,
    Step,
    Steps,
    Store,
    Value,
    Var,
)
from ..ir.rewrite import mentions, nodes_of, transform_steps
from .manager import Setting
from .segments import is_in_row, is_place

PIECE = 4096
"""Entries in a chunk, if the schedule gives rows to threads in chunks."""

PIECE_OF_LOOPS = 256
"""The same, if entries have loops of their own."""


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
    return replace(inner, low=low, high=high, tag=_dealt(statement.tag, inner) or inner.tag)


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
    """Whether an iteration only stores values at its own place, or in its own row."""
    own = {node.variable.name for node in nodes_of(loop.body, Declare, For)}
    own |= {node.array for node in nodes_of(loop.body, Allocate) if node.storage == "registers"}

    def may(node: Node, along: Mapping[str, Value]) -> bool:
        match node:
            case For(variable, low, high, tag=tag) if not isinstance(tag, Parallel) and not node.private and not node.finish:
                along = {**along, variable.name: high} if low == Const(0, variable.type) else along
            case SetVar(variable):
                return variable.name in own
            case Allocate(array) | Fill(array) | Store(array) if array in own:
                pass
            case Store(index=index, atomic=False):
                return is_in_row(index, loop.variable, along)
            case Step() if not isinstance(node, Steps | Declare | Prefetch | If):
                return False
        return all(may(child, along) for child in node.children)

    return may(loop.body, {})


def _at(bound: Value, place: Value) -> Value:
    """Return a bound of a segment with another expression in place of the row."""
    if isinstance(bound, Cast):
        return replace(bound, operand=_at(bound.operand, place))
    assert isinstance(bound, Load)
    return replace(bound, index=_at(bound.index, place) if isinstance(_loaded(bound.index), Load) else place)


def _dealt(tag: object, entries: For) -> Parallel | None:
    """Return the tag of the loop over entries, given that of the loop over rows."""
    if not isinstance(tag, Parallel):
        return None
    piece = PIECE_OF_LOOPS if nodes_of(entries.body, For) else PIECE
    return Parallel(tag.chunking) if tag.chunking in (None, "static") else Parallel(tag.chunking, piece)
