"""How much memory a kernel allocates for its workspaces, as far as that follows from the sizes of its operands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from ..frozen import frozen
from ..ir.nodes import OPAQUE, Allocate, Binary, Cast, Const, Declare, For, Function, Grow, Node, Parallel, Publish, Step, Take, Value, Var
from ..ir.rewrite import nodes_of

Sizes = Mapping[str, int]
_OPERATORS: dict[str, Callable[[int, int], int]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": lambda left, right: left // right if right else 0,
    "%": lambda left, right: left % right if right else 0,
    "min": min,
    "max": max,
}


@frozen
class Workspace:
    """An array on the heap: its bytes as a function of the kernel's sizes, and whether every thread has one."""

    bytes: Callable[[Sizes], int]
    private: bool


def workspaces(function: Function) -> tuple[Workspace, ...]:
    """Return the arrays whose lengths follow from a kernel's sizes. Arrays of assembled results are left out: they grow with the
    entries, and the system gives no memory for room that is never written."""
    assembled = {node.array for node in nodes_of(function.body, Grow, Publish, Take)}
    known: dict[str, Callable[[Sizes], int]] = {}
    for size in function.sizes:
        known[size.name] = _parameter(size.name)
    return tuple(_found(function.body, known, assembled, False))


def workspace_bytes(found: tuple[Workspace, ...], sizes: Sizes, threads: int) -> int:
    """Return how many bytes they take together."""
    return sum(max(0, workspace.bytes(sizes)) * (threads if workspace.private else 1) for workspace in found)


def _parameter(name: str) -> Callable[[Sizes], int]:
    return lambda sizes: sizes[name]


def _found(node: Node, known: dict[str, Callable[[Sizes], int]], assembled: set[str], private: bool) -> Iterator[Workspace]:
    if isinstance(node, Declare):
        value = _value(node.value, known)
        if value is not None:
            known[node.variable.name] = value
    elif isinstance(node, Allocate) and node.storage == "heap" and node.type not in OPAQUE and node.array not in assembled:
        length = _value(node.length, known)
        if length is not None:
            yield Workspace(_times(length, node.type.bytes), private)
    inner = private or (isinstance(node, For) and isinstance(node.tag, Parallel))
    for child in node.children:
        if isinstance(child, Step):
            yield from _found(child, known, assembled, inner)


def _times(length: Callable[[Sizes], int], size: int) -> Callable[[Sizes], int]:
    return lambda sizes: length(sizes) * size


def _value(node: Value, known: Mapping[str, Callable[[Sizes], int]]) -> Callable[[Sizes], int] | None:
    """Return an expression over sizes as a function of them; None if it depends on anything else."""
    match node:
        case Const(value):
            return lambda _sizes: int(value)
        case Var(name):
            return known.get(name)
        case Cast(operand):
            return _value(operand, known)
        case Binary(op, left, right) if op in _OPERATORS:
            first, second, apply = _value(left, known), _value(right, known), _OPERATORS[op]
            if first is None or second is None:
                return None
            return lambda sizes: apply(first(sizes), second(sizes))
        case _:
            return None
