"""Loads of several iterations together in loops that are dealt out to the threads of a warp or block of a GPU.

A thread has every eighth entry of a row where eight lanes work on it. With ``unroll(j, 4)`` it loads the coordinates of its next four
entries, then what they need, then adds four times: the loads are on their way side by side. Those behind the end of the row load
its last entry, which another lane needs as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..ir.arithmetic import ONE, ZERO, add, compare, integer, minimum, subtract
from ..ir.nodes import I64, Dealt, Declare, For, Function, Kernel, Step, Steps, Unroll, Value, Var
from ..ir.rewrite import as_steps, transform
from .loads_ahead import iterations_at, phases_of
from .manager import Setting


def load_in_strides(function: Function, setting: Setting) -> Function:
    """Return a function whose threads load what several of the iterations that are dealt to them need before they compute."""
    constant = frozenset(parameter.name for parameter in function.arrays if not parameter.writable)
    fresh = setting.names(function)

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
    name, count = loop.variable.name, loop.tag.at_once
    begin, end, thread = (Var(fresh(f"{name}_{part}"), I64) for part in ("begin", "end", "thread"))
    later = [add(loop.variable, integer(number * members)) for number in range(count)]
    last = subtract(end, ONE)

    def there(number: int) -> Value:
        return compare("<", later[number], end)

    places = [later[0], *(minimum(place, last) for place in later[1:])]
    body = iterations_at(phases, loop.variable, places, there, fresh)
    inside = For(loop.variable, add(begin, thread), end, body, Unroll(1), step=count * members, origin=loop.origin)
    dealt = For(thread, ZERO, integer(members), inside, replace(loop.tag, at_once=1))
    return Steps((Declare(begin, loop.low), Declare(end, loop.high), dealt))
