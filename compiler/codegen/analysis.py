"""What the statement printer asks about loop IR before it prints it: what may fail, what is held, declared and reduced."""

from __future__ import annotations

from ..ir.nodes import Allocate, Call, Declare, For, Grow, Node, Parallel, SetVar, Step
from ..ir.rewrite import walk


def may_fail(statement: Step) -> bool:
    """Return whether a statement may find no memory."""
    return any(_fails(node) for node in walk(statement))


def _fails(node: Node) -> bool:
    match node:
        case Allocate(storage=storage):
            return storage == "heap"
        case Call(function=function):
            return function == "map_insert"
    return isinstance(node, Grow)


def heap_allocations(statements: tuple[Step, ...], inside_parallel: bool = False) -> dict[str, Allocate]:
    """Return the heap arrays that belong to a region, by name: those not in a parallel region of their own."""
    found: dict[str, Allocate] = {}

    def visit(node: Node) -> None:
        if isinstance(node, For) and isinstance(node.tag, Parallel) and not inside_parallel:
            visit(node.low)
            visit(node.high)
            return
        if isinstance(node, Allocate) and node.storage == "heap":
            known = found.setdefault(node.array, node)
            if known.type != node.type:
                raise ValueError(f"array {node.array} is allocated as {known.type.name} and as {node.type.name}")
        for child in node.children:
            visit(child)

    for statement in statements:
        visit(statement)
    return found


def scalar_reductions(loop: For) -> dict[str, set[str]] | None:
    """Return the scalars that a vector loop reduces into, by operator; None if one is a vector, or reduced by min, max, and, or."""
    inside = {node.variable.name for node in walk(loop.body) if isinstance(node, Declare)}
    inside |= {node.variable.name for node in walk(loop) if isinstance(node, For)}
    found: dict[str, set[str]] = {}
    for node in walk(loop.body):
        if isinstance(node, SetVar) and node.variable.name not in inside:
            if node.op not in ("+", "-", "*") or node.variable.type.lanes > 1:
                return None
            found.setdefault("+" if node.op == "-" else node.op, set()).add(node.variable.name)
    return found
