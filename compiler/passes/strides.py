"""Groups the loads of several iterations in loops that are dealt out to the threads of a warp or block of a GPU.

If eight lanes work on a row, each thread has every eighth entry. With ``unroll(j, 4)`` it loads the coordinates of its next four
entries, then the elements that they need, then adds four times, so that the loads overlap. In the remainder, entries behind the end of
the row are replaced by its last entry, which another lane needs as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..ir.arithmetic import ONE, ZERO, add, compare, integer, minimum, multiply, quotient, subtract
from ..ir.nodes import I64, Dealt, Declare, For, Function, If, Kernel, Step, Steps, Unroll, Value, Var
from ..ir.rewrite import as_steps, transform
from .loads_ahead import Phases, iterations_at, phases_of
from .manager import Setting


def load_in_strides(function: Function, setting: Setting) -> Function:
    """Return a function whose threads load the data of several of their dealt iterations before they compute with any of it."""
    constant = frozenset(parameter.name for parameter in function.arrays if not parameter.writable)
    fresh = setting.fresh

    def visit(step: Step, kernel: Kernel) -> Step:
        if isinstance(step, For) and isinstance(step.tag, Dealt) and step.tag.unit == "thread" and step.tag.at_once > 1:
            return _in_strides(step, kernel, constant, fresh)
        children = tuple(visit(child, kernel) if isinstance(child, Step) else child for child in step.children)
        return step.rebuild(children) if children else step  # type: ignore[return-value]  # statements stay statements

    def change(node: Step) -> Step:
        return replace(node, body=visit(node.body, node)) if isinstance(node, Kernel) else node

    return replace(function, body=as_steps(transform(function.body, change)))  # type: ignore[arg-type]


def _in_strides(loop: For, kernel: Kernel, constant: frozenset[str], fresh: Callable[[str], str]) -> Step:
    assert isinstance(loop.tag, Dealt)
    members = {"warp": kernel.lanes, "block": kernel.threads}.get(loop.tag.within)
    phases = None if loop.private or loop.finish or members is None else phases_of(loop, constant, fresh)
    if phases is None or members is None:
        return replace(loop, tag=replace(loop.tag, at_once=1))
    return _dealt(loop, phases, members, fresh)


def _dealt(loop: For, phases: Phases, members: int, fresh: Callable[[str], str]) -> Step:
    """Return a loop over the threads, in which each runs through groups of its iterations, and then through the remainder."""
    assert isinstance(loop.tag, Dealt)
    name, count, stride = loop.variable.name, loop.tag.at_once, loop.tag.at_once * members
    end, thread = Var(fresh(f"{name}_end"), I64), Var(fresh(f"{name}_thread"), I64)
    first, left = Var(fresh(f"{name}_first"), I64), Var(fresh(f"{name}_left"), I64)
    many = iterations_at(phases, loop.variable, [_after(loop.variable, number, members) for number in range(count)], None, fresh)
    places = [left, *(minimum(_after(left, number, members), subtract(end, ONE)) for number in range(1, count - 1))]
    some = iterations_at(phases, loop.variable, places, lambda number: compare("<", _after(left, number, members), end), fresh)
    groups = quotient(add(subtract(end, first), integer(members - 1)), integer(stride))
    each = For(loop.variable, first, subtract(end, integer(stride - members)), many, Unroll(1), step=stride, origin=loop.origin)
    own = Declare(first, add(loop.low, thread)), Declare(left, add(first, multiply(groups, integer(stride))))
    body = Steps((*own, each, If(compare("<", left, end), some)))
    return Steps((Declare(end, loop.high), For(thread, ZERO, integer(members), body, replace(loop.tag, at_once=1))))


def _after(place: Value, number: int, members: int) -> Value:
    return add(place, integer(number * members))
