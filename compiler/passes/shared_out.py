"""Deals out loops in which a block or warp of a GPU writes a different element in every iteration to its threads.

``for p in 0 .. count: C_vals[n] = w_vals[p]; n += 1`` appends. If every iteration appends once, it writes element ``n + p`` for a constant
``n``, and iterations are independent.
"""

from __future__ import annotations

from dataclasses import replace

from ..ir.arithmetic import ZERO, add, maximum, subtract
from ..ir.nodes import ArrayRef, Const, Dealt, Declare, For, Group, Load, SetVar, Step, Steps, Store, Value, Var
from ..ir.rewrite import as_steps, is_pure, mentions, nodes_of, substitute


def shared_out(loop: For, group: Group, own: frozenset[str]) -> Step | None:
    """Return a loop that is dealt out to the threads of a group; None if iterations depend on one another.

    Args:
        own: the arrays that every thread has for itself.
    """
    if loop.tag is not None or loop.step != 1 or loop.variable.type.bytes != 8:
        return None
    cursors: list[Var] = []
    kept: list[Step] = []
    for step in as_steps(loop.body).statements:
        match step:
            case SetVar(variable, Const(1), "+"):
                cursors.append(variable)
            case Declare(_, value) if is_pure(value) and not cursors:
                kept.append(step)
            case Store(_, index, value) if is_pure(index) and is_pure(value) and not cursors and not step.atomic and not step.op:
                kept.append(step)
            case _:
                return None
    stores = [step for step in kept if isinstance(step, Store)]
    names = {cursor.name for cursor in cursors}
    written = [store.array for store in stores]
    read = {node.array for step in kept for node in nodes_of(step, Load, ArrayRef)}
    apart = all(store.index == loop.variable or store.index in cursors for store in stores)
    if not apart or read & set(written) or len(set(written)) < len(written) or own & set(written) or len(names) < len(cursors):
        return None
    passed = subtract(loop.variable, loop.low)
    moved: dict[str, Value] = {cursor.name: add(cursor, passed) for cursor in cursors}
    if any(mentions(bound, names) for bound in (loop.low, loop.high)):
        return None
    dealt = replace(loop, body=substitute(Steps(tuple(kept)), moved), tag=Dealt("thread", group))
    count = maximum(subtract(loop.high, loop.low), ZERO)
    return Steps((*((dealt,) if stores else ()), *(SetVar(cursor, count, "+") for cursor in cursors)))
