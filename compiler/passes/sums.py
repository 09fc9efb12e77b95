"""Chooses the sums that are made in vectors by default: sums of consecutive elements, or of gathered ones.

A scalar sum of floats waits three to five cycles for each addition; in vectors several additions overlap, as in NumPy's own sums.
``unroll(j, 1)`` keeps the additions of a loop one by one. A sum that gathers in vectors is limited by the memory that it reads
in order, which is therefore prefetched. On machines that gather by single loads, short sums stay scalar.
"""

from __future__ import annotations

from dataclasses import replace

from ..ir.nodes import I64, Binary, Comment, Const, Declare, For, Function, Load, Prefetch, SetVar, Step, Steps, Vector
from ..ir.rewrite import as_steps, has_only, nodes_of, transform_loops
from .forms import gathered_bytes
from .manager import Setting

AHEAD = 512  # elements, some pages ahead: processors do not prefetch across pages


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
    """Return a loop's body after prefetches of the arrays that it reads in order, unless it has prefetches already."""
    nodes = nodes_of(loop.body, Prefetch, Load)
    if any(isinstance(node, Prefetch) for node in nodes):
        return loop.body
    arrays = dict.fromkeys(node.array for node in nodes if isinstance(node, Load) and node.index == loop.variable)
    place = Binary("+", loop.variable, Const(AHEAD, I64), I64)
    return Steps((*(Prefetch(array, place) for array in arrays), loop.body))


def only_adds(loop: For) -> bool:
    """Return whether a loop has no inner loop, stores nothing, and adds floats to scalars from outside."""
    if not has_only(loop.body, Steps, Comment, Declare, Prefetch, SetVar):
        return False
    own = {step.variable.name for step in nodes_of(loop.body, Declare)}
    sums = [step for step in nodes_of(loop.body, SetVar) if step.variable.name not in own]
    return bool(sums) and all(step.variable.type.is_float and step.op in ("+", "-") for step in sums)
