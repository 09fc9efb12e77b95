"""Unrolls loops over arrays in registers of a GPU thread, so that indices are constants, since registers cannot be indexed.

``double t[16]`` is in registers if every index is a constant. Otherwise it is in local memory, which is as slow as any other. A loop with
variable bounds, ``for p in from .. to: s += t[p - low]``, becomes an unrolled loop over all of ``t``, in which each iteration has the
condition that it is in the old range (Senanayake et al., Figure 2e, lines 9 and 15). Loops from row to row become one (``held_rows``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from ..ir.arithmetic import ZERO, add, integer
from ..ir.nodes import (
    BOOL,
    I64,
    Allocate,
    ArrayRef,
    Binary,
    Call,
    Const,
    Dealt,
    Declare,
    Fill,
    For,
    Function,
    If,
    Load,
    Node,
    SetVar,
    Step,
    Steps,
    Store,
    Unroll,
    Value,
    Var,
    While,
)
from ..ir.rewrite import as_steps, block, mentions, nodes_of, substitute, transform
from .declared import NOTHING, changing, declared_inside, value_of
from .held_rows import in_one_pass
from .manager import Setting

LONGEST = 32
"""The most elements of an array that a thread keeps in registers."""


def unroll_rows(function: Function, setting: Setting) -> Function:
    """Return a function whose threads use arrays of their own at constant places, as far as loops go along these."""
    fresh = setting.fresh
    changed = changing(function)

    def visit(step: Step, declared: Mapping[str, Value], held: Mapping[str, int] | None) -> Step:
        declared = declared_inside(step, declared, changed)
        if isinstance(step, For):
            if isinstance(step.tag, Dealt):
                held = {} if step.tag.unit == "thread" else None
            elif held and (found := _along(step, held)) is not None:
                return _whole(step, *found, declared, fresh)
        elif isinstance(step, While) and held and (made := in_one_pass(step, partial(_along, held=held), _at, fresh)) is not None:
            return made
        elif isinstance(step, Steps) and held is not None:
            held = {**held, **_short(step)}
        children = tuple(visit(child, declared, held) if isinstance(child, Step) else child for child in step.children)
        return step.rebuild(children) if children else step  # type: ignore[return-value]  # statements stay statements

    return replace(function, body=as_steps(visit(function.body, NOTHING, None)))


def _short(steps: Steps) -> dict[str, int]:
    """Return the short register arrays of a block, with their lengths, that are used only at single elements."""
    made = (step for step in steps.statements if isinstance(step, Allocate) and step.storage == "registers")
    lengths = {step.array: int(step.length.value) for step in made if isinstance(step.length, Const)}
    named = {node.array for node in nodes_of(steps, ArrayRef, Fill)}
    return {array: length for array, length in lengths.items() if length <= LONGEST and array not in named}


def _along(loop: For, held: Mapping[str, int]) -> tuple[Value, int] | None:
    """Return the value of a loop's variable at the first element of the array along which it runs, and the array's length; None if there
    is no such array."""
    if loop.step != 1 or not isinstance(loop.tag, Unroll | None) or nodes_of(loop.body, For):
        return None
    own = {node.variable.name for node in nodes_of(loop.body, Declare, SetVar)} | {loop.variable.name}
    for step in as_steps(loop.body).statements:
        if isinstance(step, If):
            continue
        for node in nodes_of(step, Load, Store):
            match node.index:
                case Binary("-", Var() as place, begin) if place == loop.variable and node.array in held and not mentions(begin, own):
                    return begin, held[node.array]
    return None


def _whole(loop: For, begin: Value, length: int, declared: Mapping[str, Value], fresh: Callable[[str], str]) -> Step:
    """Return the unrolled loop over all elements, with the condition that an element is in the range of the old loop."""
    place = Var(fresh(loop.variable.name), I64)
    body = _at(loop.body, loop.variable, begin, place)
    low, high = loop.low, loop.high
    if low == begin and add(begin, integer(length)) == value_of(high, declared):
        return replace(loop, variable=place, low=ZERO, high=integer(length), body=body, tag=Unroll(length))
    places = Var(fresh("places"), I64)
    taken = If(Call("has_place", (places, place), BOOL), body)
    made = replace(loop, variable=place, low=ZERO, high=integer(length), body=taken, tag=Unroll(length))
    return Steps((Declare(places, Call("places", (begin, low, high), I64)), made))


def _at(body: Step, variable: Var, begin: Value, place: Var) -> Step:
    """Return a body in which the elements of the array have constant indices."""

    def change(node: Node) -> Node:
        return place if node == Binary("-", variable, begin, I64) else node

    changed = transform(body, change)
    return substitute(block([changed]), {variable.name: add(begin, place)})
