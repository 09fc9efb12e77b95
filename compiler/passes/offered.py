"""Loops tagged ``Vector`` that have no vector form: the C compiler is told of those that it may take, the others lose the tag.

It takes loops that only read, store, and reduce scalars by operators that OpenMP knows, and that ask for no memory.
"""

from __future__ import annotations

from dataclasses import replace

from ..ir.nodes import Declare, For, Function, SetVar, Simd, Step, Vector
from ..ir.rewrite import as_steps, may_fail, nodes_of, transform_steps
from .manager import Setting


def offer_vectors(function: Function, _: Setting) -> Function:
    """Return a kernel in which no loop is tagged ``Vector``: what is left of them is tagged ``Simd``, or not at all."""

    def change(node: Step) -> Step:
        if not isinstance(node, For) or not isinstance(node.tag, Vector):
            return node
        reductions = None if may_fail(node.body) else scalar_reductions(node)
        return replace(node, tag=None if reductions is None else Simd(reductions))

    return replace(function, body=as_steps(transform_steps(function.body, change)))


def undecided(function: Function) -> str | None:
    """Return which loop is tagged ``Vector`` still."""
    loops = (node for node in nodes_of(function.body, For) if isinstance(node.tag, Vector))
    return next((f"the loop over {loop.variable.name} is tagged" for loop in loops), None)


def scalar_reductions(loop: For) -> tuple[tuple[str, tuple[str, ...]], ...] | None:
    """Return the scalars that a vector loop reduces into, by operator; None if one is a vector, or reduced by min, max, and, or."""
    inside = {node.variable.name for node in nodes_of(loop.body, Declare)}
    inside |= {node.variable.name for node in nodes_of(loop, For)}
    found: dict[str, set[str]] = {}
    for node in nodes_of(loop.body, SetVar):
        if node.variable.name not in inside:
            if node.op not in ("+", "-", "*") or node.variable.type.lanes > 1:
                return None
            found.setdefault("+" if node.op == "-" else node.op, set()).add(node.variable.name)
    return tuple((op, tuple(sorted(names))) for op, names in sorted(found.items()))
