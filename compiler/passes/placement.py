"""Moves local arrays that are too large for a thread's stack to the heap."""

from __future__ import annotations

from dataclasses import replace

from ..ir.nodes import Allocate, Const, Free, Function, Step, Steps
from ..ir.rewrite import nodes_of

STACK_BYTES = 64 * 1024
"""The largest array on the stack, in bytes; threads of the team have a stack of two megabytes."""


def place_large_arrays(function: Function) -> Function:
    """Return a function in which register arrays that could overflow the stack are on the heap."""
    return function if too_large_for_stack(function) is None else replace(function, body=_block(function.body))


def too_large_for_stack(function: Function) -> str | None:
    """Return a fault: an array that could overflow the stack; None if there is none."""
    found = (node.array for node in nodes_of(function.body, Allocate) if _overflows(node))
    return next((f"array {array} is larger than the stack of a thread may hold" for array in found), None)


def _visit(statement: Step) -> Step:
    if isinstance(statement, Steps):
        return _block(statement)
    children = tuple(_visit(child) if isinstance(child, Step) else child for child in statement.children)
    return statement.rebuild(children) if children else statement  # type: ignore[return-value]  # statements stay statements


def _block(whole: Steps) -> Steps:
    made: list[Step] = []
    freed: list[Step] = []
    for statement in whole.statements:
        if isinstance(statement, Allocate) and _overflows(statement):
            made.append(replace(statement, storage="heap"))
            freed.insert(0, Free(statement.array))
        else:
            made.append(_visit(statement))
    return Steps((*made, *freed))


def _overflows(allocation: Allocate) -> bool:
    length = allocation.length
    return allocation.storage == "registers" and isinstance(length, Const) and int(length.value) * allocation.type.bytes > STACK_BYTES
