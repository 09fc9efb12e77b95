"""Finds the heap arrays of a region, and the sums of a loop, for the printer of statements."""

from __future__ import annotations

from ..ir.nodes import Allocate, Declare, For, Load, Node, Parallel, SetVar, Step, Take, Type, Var, While
from ..ir.rewrite import as_steps, flat, has, mentions, nodes_of, own_declarations


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


def gathered_sums(body: Step) -> list[Var]:
    """Return the floating-point scalars to which the iterations of an innermost loop add, one after another, what is read at places that
    are read too."""
    if has(body, For, While):
        return []
    steps = list(flat((body,)))
    places = {one.variable.name for one in steps if isinstance(one, Declare) and has(one.value, Load)}
    if not any(has(load.index, Load) or mentions(load.index, places) for load in nodes_of(body, Load)):
        return []
    own = own_declarations(as_steps(body))
    changed = dict.fromkeys(one.variable for one in steps if isinstance(one, SetVar) and one.op == "+")
    return [variable for variable in changed if variable.type.is_float and variable.type.lanes == 1 and variable.name not in own]
