"""Iterations of warps that go to parts of warps, where the threads of each have fewer iterations than a warp has lanes.

Sixteen columns of a fibre leave half a warp idle. Where a warp does nothing else in an iteration, two of them run side by side: threads
get pairs of an iteration and an element, in the order in which warps would come to them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..ir.arithmetic import ZERO, add, integer, multiply, quotient, remainder, subtract
from ..ir.nodes import I64, Const, Dealt, Declare, For, Function, Step, Steps, Var
from ..ir.rewrite import flat, is_pure, transform_loops
from .block_sizes import WARP
from .manager import Setting


def share_warps(function: Function, setting: Setting) -> Function:
    """Return a function in which no warp has idle lanes where several of its iterations could run at once."""
    fresh = setting.names(function)
    body = transform_loops(function.body, lambda loop: _shared(loop, fresh))
    assert isinstance(body, Steps)
    return replace(function, body=body)


def _shared(loop: For, fresh: Callable[[str], str]) -> Step:
    *before, last = flat((loop.body,))
    if not isinstance(loop.tag, Dealt) or loop.tag.unit != "warp" or loop.private or not isinstance(last, For):
        return loop
    if any(not (isinstance(step, Declare) and is_pure(step.value)) for step in before):
        return loop
    match last:
        case For(inner, Const(0), Const(count), inside, Dealt("thread"), ()) if 0 < count < WARP:
            pair, lanes = Var(fresh(f"{loop.variable.name}_{inner.name}"), I64), integer(int(count))
            own = Declare(loop.variable, add(loop.low, quotient(pair, lanes))), Declare(inner, remainder(pair, lanes))
            high = multiply(subtract(loop.high, loop.low), lanes)
            body = Steps((*own, *before, *flat((inside,))))
            return For(pair, ZERO, high, body, replace(loop.tag, unit="thread"), origin=loop.origin)
    return loop
