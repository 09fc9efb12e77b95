"""The sums that are made in vectors if a schedule says nothing of them: those of consecutive elements, or of gathered ones.

A sum of floats one by one waits three to five cycles for each addition before the next; in vectors several run side by
side, as in NumPy's own sums. ``unroll(j, 1)`` keeps the additions of a loop one by one. A sum that gathers is then faster
than memory hands out what it reads in order, and asks for that ahead. Where machines gather by reading elements one by one, short
sums stay as they are.
"""

from __future__ import annotations

from dataclasses import replace

from ..ir.nodes import I64, Binary, Comment, Const, Declare, For, Function, Load, Prefetch, SetVar, Step, Steps, Vector
from ..ir.rewrite import as_steps, nodes_of, transform_loops, walk
from .forms import gathered_bytes
from .manager import Setting

AHEAD = 512  # elements: some pages; processors do not prefetch across pages


def sum_in_vectors(function: Function, setting: Setting) -> Function:
    """Tag the loops that do nothing but add to scalars."""
    lanes, gathers = setting.lanes, setting.unit.gathers
    if lanes == 1:
        return function

    def change(node: For) -> Step:
        if node.tag is not None or not only_adds(node):
            return node
        tagged = replace(node, tag=Vector())
        places = gathered_bytes(tagged, lanes)
        if places is None or (places and gathers is None):
            return node
        return replace(tagged, tag=Vector(least=gathers or 0), body=asking_ahead(node)) if places else tagged

    return replace(function, body=as_steps(transform_loops(function.body, change)))


def asking_ahead(loop: For) -> Step:
    """Return a loop's body behind prefetches of the arrays that it reads in order, unless it has some."""
    nodes = list(walk(loop.body))
    if any(isinstance(node, Prefetch) for node in nodes):
        return loop.body
    arrays = dict.fromkeys(node.array for node in nodes if isinstance(node, Load) and node.index == loop.variable)
    place = Binary("+", loop.variable, Const(AHEAD, I64), I64)
    return Steps((*(Prefetch(array, place) for array in arrays), loop.body))


def only_adds(loop: For) -> bool:
    """Return whether a loop has none inside, stores nothing and adds floats to scalars from outside."""
    if any(issubclass(kind, Step) for kind in loop.body.kinds - {Steps, Comment, Declare, Prefetch, SetVar}):
        return False
    own = {step.variable.name for step in nodes_of(loop.body, Declare)}
    sums = [step for step in nodes_of(loop.body, SetVar) if step.variable.name not in own]
    return bool(sums) and all(step.variable.type.is_float and step.op in ("+", "-") for step in sums)
