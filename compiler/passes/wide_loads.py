"""Loads 16 bytes at once if a GPU thread reads neighbouring elements of an array that is never written.

``for k in low .. low + 4: w[k - low] += a * X[j * 128 + k]`` reads four elements that lie together, from a multiple of four of them on.
They are loaded into registers before the loop. Arrays begin at such places themselves (``targets.cuda_launch``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ..ir.arithmetic import add, integer, subtract
from ..ir.nodes import (
    Allocate,
    ArrayRef,
    Binary,
    Const,
    Dealt,
    Declare,
    For,
    Function,
    Grow,
    If,
    Load,
    Node,
    Once,
    Run,
    SetVar,
    Step,
    Steps,
    Type,
    Unroll,
    Value,
    Var,
    While,
)
from ..ir.rewrite import as_steps, mentions, nodes_of, transform
from .declared import NOTHING, changing, declared_inside, value_of
from .manager import Setting

WIDE = 16
"""The bytes of a load."""

LONGEST = 32
"""The most elements that a thread loads before it uses them."""


def load_widely(function: Function, setting: Setting) -> Function:
    """Return a function whose threads load neighbouring elements together if possible."""
    read_only = {parameter.name: parameter.type for parameter in function.arrays if not parameter.writable}
    changed = changing(function)
    fresh = setting.fresh

    def visit(step: Step, declared: Mapping[str, Value], within: bool) -> Step:
        declared = declared_inside(step, declared, changed)
        if isinstance(step, For):
            if within and (found := _widened(step, read_only, declared, fresh)) is not None:
                return found
            within = within or (isinstance(step.tag, Dealt) and step.tag.unit == "thread")
        children = tuple(visit(child, declared, within) if isinstance(child, Step) else child for child in step.children)
        return step.rebuild(children) if children else step  # type: ignore[return-value]  # statements stay statements

    return replace(function, body=as_steps(visit(function.body, NOTHING, False)))


def wide_arrays(function: Function) -> frozenset[str]:
    """Return the arrays that kernels access in units of 16 bytes, in loads or in stores of results."""
    places = {"load_wide": 1, "load_wide_from": 1, "store_wide": 0}
    used = (run.arguments[places[run.function]] for run in nodes_of(function.body, Run) if run.function in places)
    return frozenset(array.array for array in used if isinstance(array, ArrayRef))


def _widened(
    loop: For, arrays: Mapping[str, Type], declared: Mapping[str, Value], fresh: Callable[[str], str]
) -> Step | None:
    """Return a loop after the wide loads of what it reads; None if it reads nothing like this."""
    count = whole_iterations(loop, declared)
    if count is None:
        return None
    own = {node.variable.name for node in nodes_of(loop.body, Declare, SetVar)}
    before: list[Step] = []
    rows: dict[Load, Load] = {}
    for load in nodes_of(loop.body, Load):
        kind = arrays.get(load.array)
        if kind is None or load in rows:
            continue
        begin = place_of_first(load.index, loop, kind, count, own, declared)
        if begin is None:
            continue
        row = fresh(f"{load.array}_row")
        before += [
            Allocate(row, kind, integer(count), "registers"),
            Run("load_wide", (ArrayRef(row, kind), ArrayRef(load.array, kind), begin, integer(count))),
        ]
        rows[load] = replace(load, array=row, index=subtract(loop.variable, loop.low))
    if not rows:
        return None

    def change(node: Node) -> Node:
        return rows.get(node, node) if isinstance(node, Load) else node

    return Steps((*before, replace(loop, body=transform(loop.body, change))))


def whole_iterations(loop: For, declared: Mapping[str, Value]) -> int | None:
    """Return how many iterations a loop has, if that is a small constant and its body has no conditions; else None."""
    if not isinstance(loop.tag, Unroll | None) or nodes_of(loop.body, If, Once, While, For, Grow, Run, Allocate):
        return None
    match loop.low, value_of(loop.high, declared):
        case Const(low), Const(high):
            count = int(high) - int(low)
        case low, Binary("+", begin, Const(length)) if begin == low:
            count = int(length)
        case _:
            return None
    return count if 1 < count <= LONGEST and loop.step == 1 else None


def place_of_first(index: Value, loop: For, kind: Type, count: int, own: set[str], declared: Mapping[str, Value]) -> Value | None:
    """Return the index in the first iteration; None unless later iterations use the elements behind it, and all together are aligned
    units of 16 bytes.

    Args:
        count: the number of iterations.
        own: variables of the loop's body, on which the index must not depend.
    """
    if kind.bytes >= WIDE or count * kind.bytes % WIDE:
        return None
    begin = _begin(index, loop.variable, loop.low)
    return begin if begin is not None and not mentions(begin, own) and _is_multiple(begin, WIDE // kind.bytes, declared) else None


def _begin(index: Value, variable: Var, low: Value) -> Value | None:
    """Return the index in the first iteration, if it increases by one in each iteration; else None."""
    match index:
        case Var() if index == variable:
            return low
        case Binary("+", left, right) if mentions(left, {variable.name}) != mentions(right, {variable.name}):
            moving, still = (left, right) if mentions(left, {variable.name}) else (right, left)
            found = _begin(moving, variable, low)
            return None if found is None else add(still, found)
    return None


def _is_multiple(value: Value, lanes: int, declared: Mapping[str, Value]) -> bool:
    match value:
        case Const(number):
            return int(number) % lanes == 0
        case Binary("+", left, right):
            return _is_multiple(left, lanes, declared) and _is_multiple(right, lanes, declared)
        case Binary("*", left, right):
            return _is_multiple(left, lanes, declared) or _is_multiple(right, lanes, declared)
        case Var(name):
            return name in declared and _is_multiple(declared[name], lanes, declared)
    return False
