"""Finds the heap arrays of a region, for the printer of statements."""

from __future__ import annotations

from ..ir.nodes import Allocate, For, Node, Parallel, Step, Take, Type
from ..ir.rewrite import has


def heap_allocations(statements: tuple[Step, ...], inside_parallel: bool = False) -> dict[str, Type]:
    """Return the heap arrays of a region, by name, without those of parallel regions inside it."""
    found: dict[str, Type] = {}

    def visit(node: Node) -> None:
        if not has(node, Allocate, Take):
            return
        if isinstance(node, For) and isinstance(node.tag, Parallel) and not inside_parallel:
            visit(node.low)
            visit(node.high)
            return
        if isinstance(node, Take) or (isinstance(node, Allocate) and node.storage == "heap"):
            known = found.setdefault(node.array, node.type)
            if known != node.type:
                raise ValueError(f"array {node.array} is allocated as {known.name} and as {node.type.name}")
        for child in node.children:
            visit(child)

    for statement in statements:
        visit(statement)
    return found
