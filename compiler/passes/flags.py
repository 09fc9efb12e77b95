"""Flags that a loop sets in every iteration are set before the loop, if it has any iteration.

``for p in begin .. end: { t += ...; seen = true }`` is not a plain sum because of the flag; with ``seen = seen or begin < end`` before the
loop it is.
"""

from __future__ import annotations

from dataclasses import replace

from ..ir.nodes import BOOL, Binary, Const, Declare, For, Function, Parallel, SetVar, Step, Steps, Var
from ..ir.rewrite import as_steps, block, is_pure, nodes_of, transform_steps
from .manager import Setting


def raise_flags_before_loops(function: Function, _: Setting) -> Function:
    """Return a kernel in which a comparison of bounds sets the flags that loops set in every iteration and never read."""

    def change(node: Step) -> Step:
        if not isinstance(node, For) or not (raised := _raised(node)):
            return node
        some = Binary("<", node.low, node.high, BOOL)
        rest = transform_steps(node.body, lambda inner: Steps(()) if any(inner is step for step in raised) else inner)
        return block([*(SetVar(step.variable, some, "or") for step in raised), replace(node, body=rest)])

    return replace(function, body=as_steps(transform_steps(function.body, change)))


def raised_in_loops(function: Function) -> str | None:
    """Return a fault: a loop that sets a flag in every iteration; None if there is none."""
    loops = (node for node in nodes_of(function.body, For) if _raised(node))
    return next((f"the loop over {loop.variable.name} raises a flag in every iteration" for loop in loops), None)


def _raised(loop: For) -> list[SetVar]:
    """Return the assignments by which a loop sets flags in every iteration."""
    if isinstance(loop.tag, Parallel) or not all(map(is_pure, (loop.low, loop.high))):
        return []
    return [step for step in _always(loop.body) if _raises(step) and _is_untouched(loop, step)]


def _always(statement: Step) -> list[SetVar]:
    """Return the assignments that a body makes unconditionally."""
    match statement:
        case SetVar():
            return [statement]
        case Steps(statements):
            return [step for inner in statements for step in _always(inner)]
    return []


def _raises(step: SetVar) -> bool:
    return step.value == Const(True, BOOL) and step.op in ("", "or")


def _is_untouched(loop: For, step: SetVar) -> bool:
    """Return whether a flag is declared outside a loop, and nothing else in the loop uses it."""
    name = step.variable.name
    uses = sum(node.name == name for node in nodes_of(loop.body, Var))
    declared = any(node.variable.name == name for node in nodes_of(loop.body, Declare, For))
    return uses == 1 and not declared
