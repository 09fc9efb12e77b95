"""Flags that a loop raises in every iteration: whether it has any iteration says the same, without a word in the loop.

``for p in begin .. end: { t += ...; seen = true }`` is no plain sum, as it keeps a flag; ``seen = seen or begin < end`` before it is.
"""

from __future__ import annotations

from dataclasses import replace

from ..ir.nodes import BOOL, Binary, Const, Declare, For, Function, Parallel, SetVar, Step, Steps, Var
from ..ir.rewrite import as_steps, block, is_pure, nodes_of, transform_steps
from .manager import Setting


def raise_flags_before_loops(function: Function, _: Setting) -> Function:
    """Return a kernel in which a comparison of bounds raises the flags that loops raise in every iteration and never look at."""

    def change(node: Step) -> Step:
        if not isinstance(node, For) or not (raised := _raised(node)):
            return node
        some = Binary("<", node.low, node.high, BOOL)
        rest = transform_steps(node.body, lambda inner: Steps(()) if any(inner is step for step in raised) else inner)
        return block([*(SetVar(step.variable, some, "or") for step in raised), replace(node, body=rest)])

    return replace(function, body=as_steps(transform_steps(function.body, change)))


def raised_in_loops(function: Function) -> str | None:
    """Return a fault: a loop that raises a flag in every iteration; None if there is none."""
    loops = (node for node in nodes_of(function.body, For) if _raised(node))
    return next((f"the loop over {loop.variable.name} raises a flag in every iteration" for loop in loops), None)


def _raised(loop: For) -> list[SetVar]:
    """Return the assignments by which a loop raises flags in every iteration."""
    if isinstance(loop.tag, Parallel) or not all(map(is_pure, (loop.low, loop.high))):
        return []
    return [step for step in _always(loop.body) if _raises(step) and _is_untouched(loop, step)]


def _always(statement: Step) -> list[SetVar]:
    """Return the assignments that a body makes whatever it finds."""
    match statement:
        case SetVar():
            return [statement]
        case Steps(statements):
            return [step for inner in statements for step in _always(inner)]
    return []


def _raises(step: SetVar) -> bool:
    return step.value == Const(True, BOOL) and step.op in ("", "or")


def _is_untouched(loop: For, step: SetVar) -> bool:
    """Return whether nothing else in a loop uses a flag of outside it."""
    name = step.variable.name
    uses = sum(node.name == name for node in nodes_of(loop.body, Var))
    declared = any(node.variable.name == name for node in nodes_of(loop.body, Declare, For))
    return uses == 1 and not declared
