"""Searches in which the lanes of a warp work together: if a block or warp of a GPU searches one place, each lane examines another one.

For example, a block finds the row of its first position by bisection with twenty loads, each of which waits for the one before; 32
lanes together need four.
"""

from __future__ import annotations

from dataclasses import replace

from ..ir.nodes import Call, Dealt, For, Function, Kernel, Node, Once, Step, Value
from ..ir.rewrite import transform
from .manager import Setting

SEARCHES = frozenset(("lower_bound", "upper_bound", "path_fibre"))


def search_together(function: Function, setting: Setting) -> Function:
    """Return a function in whose kernels lanes that search for the same place do so together."""

    def change(node: Node) -> Node:
        return replace(node, body=_visited(node.body, False)) if isinstance(node, Kernel) and node.threads > 1 else node

    return replace(function, body=transform(function.body, change))


def _visited(step: Step, together: bool) -> Step:
    """Return a rewritten step; ``together``: whether all threads of a warp run it with the same scalars."""
    inside = together
    match step:
        case For(tag=Dealt(unit=unit)):
            inside = unit != "thread"
        case Once():
            return step
    children = tuple(
        _visited(child, inside) if isinstance(child, Step) else _searched(child) if isinstance(child, Value) and together else child
        for child in step.children
    )
    return step.rebuild(children) if children else step  # type: ignore[return-value]  # statements stay statements


def _searched(value: Value) -> Value:
    def change(node: Node) -> Node:
        return replace(node, function=f"{node.function}_of_warp") if isinstance(node, Call) and node.function in SEARCHES else node

    return transform(value, change)
