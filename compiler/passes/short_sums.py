"""Recognises loops over rows that sum the elements of each row, and makes the loops over the terms of several rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..frozen import frozen
from ..ir.limits import FEWEST, ROWS
from ..ir.nodes import (
    I64,
    Allocate,
    ArrayRef,
    Binary,
    Call,
    Const,
    Declare,
    Fill,
    For,
    Grow,
    If,
    Load,
    Node,
    Parallel,
    Run,
    SetVar,
    Step,
    Steps,
    Store,
    Value,
    Var,
    Vector,
)
from ..ir.rewrite import is_pure, mentions, nodes_of, substitute, transform, walk
from .folding import simplify_expression
from .forms import gathered_bytes
from .sums import asking_ahead, only_adds

MOST_SUMS = 8
"""The most sums of a row that are made in batches: the terms of more would not fit into the first cache, and would double the code."""


@frozen
class RowSum:
    """A loop over the elements ``begin(row) .. begin(row + 1)`` of a row that adds ``step.value`` for each to a scalar.

    Attributes:
        moving: whether terms depend on the row, for example because coordinates are relative to it, so that they cannot be batched.
    """

    loop: For
    step: SetVar
    begin: Value
    moving: bool


def rows_of(loop: For, lanes: int) -> list[RowSum] | None:
    """Return the sums of a loop over rows that may be made in batches; None if there are none.

    Sums whose terms depend on their row are returned only if all do.
    """
    if not (loop.tag is None or isinstance(loop.tag, Parallel)) or loop.step != 1 or rows_a_block(loop.tag) is None:
        return None
    inner_sums = [inner for inner in _unconditional_loops(loop.body) if inner.tag is None and inner.step == 1 and only_adds(inner)]
    if not inner_sums:
        return None
    declared = {node.variable.name: node.value for node in nodes_of(loop.body, Declare)}
    written = {node.array for node in nodes_of(loop.body, Store, Fill, Grow, Allocate)}
    changing = [step for step in walk(loop.body) if isinstance(step, Run) or (isinstance(step, Call) and not is_pure(step))]
    written |= {node.array for step in changing for node in nodes_of(step, ArrayRef)}
    assigned = set(loop.body.assigned)
    if any(_depends_on(bound, assigned, written) for bound in (loop.low, loop.high)):
        return None
    sums = []
    for inner in inner_sums:
        found = _sum_of(inner, loop.variable, declared, written, assigned)
        if found is not None and gathered_bytes(terms_of(found, "", inner.low), lanes):
            sums.append(found)
    sums = [found for found in sums if not found.moving] or sums
    return sums if 0 < len(sums) <= MOST_SUMS else None


def _unconditional_loops(statement: Step) -> Iterator[For]:
    """Yield the loops that every row runs; a condition that the row has elements does not count."""
    match statement:
        case For():
            yield statement
        case Steps(statements):
            for inner in statements:
                yield from _unconditional_loops(inner)
        case If(Binary("<", low, high), then, None):
            yield from (loop for loop in _unconditional_loops(then) if (loop.low, loop.high) == (low, high))


def _depends_on(expr: Node, variables: set[str], arrays: set[str]) -> bool:
    return mentions(expr, variables) or any(node.array in arrays for node in nodes_of(expr, Load))


def _sum_of(inner: For, row: Var, declared: dict[str, Value], written: set[str], assigned: set[str]) -> RowSum | None:
    own = {node.variable.name for node in nodes_of(inner.body, Declare)}
    steps = nodes_of(inner.body, SetVar)
    if len(steps) != 1 or steps[0].op != "+" or steps[0].variable.name in own:
        return None
    begin, end = (declared.get(bound.name, bound) if isinstance(bound, Var) else bound for bound in (inner.low, inner.high))
    following = simplify_expression(substitute(begin, {row.name: Binary("+", row, Const(1, I64), I64)}))
    if begin == following or following != simplify_expression(end):
        return None
    total, of_row = steps[0].variable.name, (declared.keys() | assigned) - own
    if mentions(steps[0].value, {total}) or _depends_on(begin, of_row, written):
        return None
    return RowSum(inner, steps[0], begin, _depends_on(inner.body, (of_row | {row.name}) - {total}, written))


def terms_of(found: RowSum, room: str, first: Value, past: Value | None = None) -> For:
    """Return the loop that stores the terms of consecutive rows in an array."""
    loop = found.loop
    place = Binary("-", loop.variable, first, I64)

    def change(node: Node) -> Node:
        return Store(room, place, found.step.value) if node == found.step else node

    made = replace(loop, low=first, high=past or loop.high, body=transform(loop.body, change), tag=Vector(vectors=2))
    return replace(made, body=asking_ahead(made))


def rows_a_block(tag: Parallel | Vector | object) -> int | None:
    """Return how many rows are a block: at most a chunk of a thread; None if that is too few."""
    chunk = tag.chunk if isinstance(tag, Parallel) else None
    return None if chunk is not None and chunk < FEWEST else min(chunk or ROWS, ROWS)
