"""Loops over what a thread of a GPU holds in registers, with constant places: registers have no index.

``double t[16]`` lives in registers where every place that is used is a constant, and in memory of the thread's own, which is as far as any
other, where one loop goes from a number that is known only there. Such a loop, ``for p in from .. to: s += t[p - low]``, becomes one over
all of ``t``, unrolled, each iteration under the condition that the other one comes to it (Senanayake et al., Figure 2e, lines 9 and 15).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

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
)
from ..ir.rewrite import as_steps, block, mentions, nodes_of, substitute, transform
from .declared import NOTHING, changing, declared_inside, value_of
from .manager import Setting

LONGEST = 32
"""Elements that a thread holds in registers."""


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
        elif isinstance(step, Steps) and held is not None:
            held = {**held, **_short(step)}
        children = tuple(visit(child, declared, held) if isinstance(child, Step) else child for child in step.children)
        return step.rebuild(children) if children else step  # type: ignore[return-value]  # statements stay statements

    return replace(function, body=as_steps(visit(function.body, NOTHING, None)))


def _short(steps: Steps) -> dict[str, int]:
    """Return the short arrays in registers of a block, with their lengths, of which whole loops have no part by their name."""
    made = (step for step in steps.statements if isinstance(step, Allocate) and step.storage == "registers")
    lengths = {step.array: int(step.length.value) for step in made if isinstance(step.length, Const)}
    named = {node.array for node in nodes_of(steps, ArrayRef, Fill)}
    return {array: length for array, length in lengths.items() if length <= LONGEST and array not in named}


def _along(loop: For, held: Mapping[str, int]) -> tuple[Value, int] | None:
    """Return where the array begins that every iteration of a loop uses one element of, and how long it is; None where there is none."""
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
    """Return the loop over all elements, of which those that the loop comes to are used."""
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
    """Return a body in which the elements of the array have constant places."""

    def change(node: Node) -> Node:
        return place if node == Binary("-", variable, begin, I64) else node

    changed = transform(body, change)
    return substitute(block([changed]), {variable.name: add(begin, place)})
