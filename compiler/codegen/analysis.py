"""What the statement printer asks about loop IR before it prints it: which heap arrays a region holds."""

from __future__ import annotations

from ..ir.nodes import Allocate, For, Node, Parallel, Step, Take, Type


def heap_allocations(statements: tuple[Step, ...], inside_parallel: bool = False) -> dict[str, Type]:
    """Return the heap arrays that belong to a region, by name: those not in a parallel region of their own."""
    found: dict[str, Type] = {}

    def visit(node: Node) -> None:
        if node.kinds.isdisjoint((Allocate, Take)):
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
