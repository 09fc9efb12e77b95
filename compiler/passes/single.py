"""Turns register arrays of one element into variables, so that a product with a matrix of one column is like one with a vector.

Passes for sums recognise only scalars: ``for p: t[0] += ...`` would get neither batches of short rows, nor lanes, nor vectors.
"""

from __future__ import annotations

from dataclasses import replace

from ..ir.arithmetic import ONE
from ..ir.nodes import Allocate, ArrayRef, Const, Declare, Fill, For, Function, Load, Node, Parallel, Prefetch, SetVar, Store, Var
from ..ir.rewrite import as_steps, nodes_of, transform


def single_registers(function: Function) -> Function:
    """Return a kernel in which register arrays of one floating-point number, which begin as 0, are variables.

    Arrays of outside to which threads store stay arrays: threads assign no variables of outside.
    """
    made = nodes_of(function.body, Allocate)
    single = {node.array: Var(node.array, node.type) for node in made if _is_single(node)}
    whole = nodes_of(function.body, ArrayRef, Fill, Prefetch)
    taken = {node.array for node in (*whole, *(node for node in made if not _is_single(node)))} | _stored_by_threads(function)
    single = {array: variable for array, variable in single.items() if array not in taken}
    if not single:
        return function

    def change(node: Node) -> Node:
        match node:
            case Allocate(array) if array in single:
                return Declare(single[array], Const(0.0, single[array].type))
            case Load(array) if array in single:  # any index means the only element
                return single[array]
            case Store(array, _, value, op) if array in single:
                return SetVar(single[array], value, op)
        return node

    return replace(function, body=as_steps(transform(function.body, change)))


def _stored_by_threads(function: Function) -> set[str]:
    """Return the arrays to which threads store and that none of them makes for itself."""
    inside = [node for loop in nodes_of(function.body, For) if isinstance(loop.tag, Parallel) for node in nodes_of(loop, Store, Allocate)]
    return {node.array for node in inside if isinstance(node, Store)} - {node.array for node in inside if isinstance(node, Allocate)}


def _is_single(node: Allocate) -> bool:
    return node.storage == "registers" and node.zero and node.length == ONE and node.type.is_float
