"""Rows whose elements are interleaved, as in sliced levels: one lane for each row (SELL-C, Kreutzer et al., 2014).

``for i: for s in 0 .. slices[i / C + 1] - slices[i / C]: p = (slices[i / C] + s) * C + i % C; if harmless(p / C < ends[i]): t += ...``
has the same length for C consecutive rows, and reads neighbouring elements for neighbouring rows. So C rows are computed at once: nothing
is added across lanes, no row has a remainder, and each lane tests whether its row has ended. Rows behind the last whole slice are
computed one by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..ir.arithmetic import ONE, ZERO, add, ceiling_quotient, compare, integer, minimum, multiply, quotient
from ..ir.nodes import (
    I64,
    SHARE_BEGIN,
    SHARE_NUMBER,
    Binary,
    Call,
    Const,
    Declare,
    For,
    Function,
    If,
    Node,
    Parallel,
    Select,
    SetVar,
    Step,
    Steps,
    Value,
    Var,
    Vector,
)
from ..ir.rewrite import as_steps, leaves, nodes_of, substitute, transform, transform_loops
from .folding import simplify_expression
from .forms import are_apart, vector_form
from .manager import Setting


def rows_abreast(function: Function, setting: Setting) -> Function:
    """Return a kernel in which loops over rows whose elements lie side by side compute as many rows at once."""
    lanes = setting.lanes
    if lanes == 1 or setting.unit.gathers is None:
        return function
    fresh = setting.fresh

    def change(loop: For) -> Step:
        rows = _rows_of_a_slice(loop)
        if rows is None or not _is_plain(loop, rows):
            return loop
        number, lane = (Var(fresh(f"{loop.variable.name}_{part}"), I64) for part in ("slice", "lane"))
        abreast = For(lane, ZERO, integer(rows), _body_of(loop, rows, number, lane), Vector(), origin=loop.origin)
        if nodes_of(abreast.body, If) or not are_apart(replace(abreast, tag=None)) or vector_form(abreast, lanes) is None:
            return loop
        first, past = multiply(number, integer(rows)), multiply(add(number, ONE), integer(rows))
        whole = compare("<=", past, loop.high)
        one_by_one = replace(loop, low=first, high=minimum(past, loop.high), tag=None, private=(), finish=())
        low, high = simplify_expression(quotient(loop.low, integer(rows))), ceiling_quotient(loop.high, integer(rows))
        tag = loop.tag
        if isinstance(tag, Parallel) and tag.chunk is not None:
            tag = replace(tag, chunk=tag.chunk // rows)
        body = If(whole, Steps((abreast,)), Steps((one_by_one,)))
        return replace(loop, variable=number, low=low, high=high, body=body, tag=tag)

    return replace(function, body=as_steps(transform_loops(function.body, change)))


def _rows_of_a_slice(loop: For) -> int | None:
    """Return the number by which a loop divides its variable to find the elements of a row; None if there is no such number."""
    if not any(call.function == "harmless" for call in nodes_of(loop.body, Call)):
        return None
    found = {node.right.value for node in nodes_of(loop.body, Binary)
             if node.op == "/" and node.left == loop.variable and isinstance(node.right, Const)}  # fmt: skip
    return int(found.pop()) if len(found) == 1 else None


def _is_plain(loop: For, rows: int) -> bool:
    """Return whether a loop begins at the start of a slice, and may be cut into slices."""
    match loop.low:
        case Const(value) | Binary("*", _, Const(value)):
            begins = int(value) % rows == 0
        case _:
            begins = False
    tag = loop.tag
    dealt = tag is None or (isinstance(tag, Parallel) and (tag.chunk is None or tag.chunk % rows == 0))
    shares = any(call.function in (SHARE_BEGIN, SHARE_NUMBER) for call in nodes_of(loop, Call))
    return begins and dealt and loop.step == 1 and not shares


def _body_of(loop: For, rows: int, number: Var, lane: Var) -> Step:
    """Return the body for the row of a lane; additions under harmless conditions become unconditional additions of a choice."""
    body = substitute(loop.body, {loop.variable.name: Binary("+", multiply(number, integer(rows)), lane, I64)})
    declared: dict[str, Value] = {}

    def change(node: Node) -> Node:
        match node:
            case Binary("/", dividend, Const(width)) if width == rows:
                parts = _parts(dividend, rows, lane, declared)
                return node if parts is None else parts[0]
            case Binary("%", dividend, Const(width)) if width == rows:
                parts = _parts(dividend, rows, lane, declared)
                return node if parts is None else parts[1]
            case Binary("-") if node.type == I64:
                return simplify_expression(node)
            case Declare(variable, value) if variable.type == I64:
                declared[variable.name] = value
            case If(Call("harmless", (condition,)), then, None):
                return _added_where(condition, then) or node
        return node

    return transform(body, change)


def _parts(value: Value, rows: int, lane: Var, declared: Mapping[str, Value]) -> tuple[Value, Value] | None:
    """Return (q, r) such that a value is q * rows + r, where r is the lane or 0."""
    match value:
        case Var(name) if name == lane.name:
            return ZERO, lane
        case Var(name) if name in declared:
            return _parts(declared[name], rows, lane, declared)
        case Const(number) if number % rows == 0:
            return integer(int(number) // rows), ZERO
        case Binary("*", factor, Const(width)) if width % rows == 0:
            return multiply(factor, integer(int(width) // rows)), ZERO
        case Binary("+", left, right):
            one, other = _parts(left, rows, lane, declared), _parts(right, rows, lane, declared)
            if one is not None and other is not None and ZERO in (one[1], other[1]):
                return add(one[0], other[0]), add(one[1], other[1])
    return None


def _added_where(condition: Value, then: Step) -> Step | None:
    """Return additions to scalars that add 0 if a condition does not hold; None if a step does anything else."""
    made = list[Step]()
    for step in leaves(then):
        match step:
            case Declare():
                made.append(step)
            case SetVar(variable, value, "+") if variable.type.is_float:
                made.append(replace(step, value=Select(condition, value, Const(0.0, variable.type), variable.type)))
            case _:
                return None
    return Steps(tuple(made))
