"""Scalars to which all threads of a block or warp add: finds them, and gives the first value of each thread's own sum."""

from __future__ import annotations

from ..errors import ScheduleError
from ..ir.nodes import (
    BOOL,
    Const,
    Declare,
    For,
    Node,
    SetVar,
    Steps,
    Type,
    Var,
)
from ..ir.rewrite import nodes_of, substitute, transform, walk


def zero(kind: Type) -> Const:
    """Return the constant 0 of a type."""
    return Const(False, BOOL) if kind == BOOL else Const(0.0 if kind.is_float else 0, kind)


def updated_scalars(body: Steps, counter: Var) -> dict[str, tuple[Var, str]]:
    """Return the scalars from outside that a loop's body updates, with the operator of their updates."""
    own = {node.variable.name for node in nodes_of(body, Declare, For)} | {counter.name}
    found: dict[str, tuple[Var, str]] = {}
    for node in walk(body):
        if isinstance(node, SetVar) and node.variable.name not in own:
            op = _operator(node)
            if op is None or found.setdefault(node.variable.name, (node.variable, op))[1] != op:
                raise ScheduleError(
                    f"iterations that a GPU runs at once assign {node.variable.name}, which stands outside of them; put its loop inside"
                )
    return found


def _operator(update: SetVar) -> str | None:
    match update:
        case SetVar(_, Const(True, kind), "") if kind == BOOL:
            return "or"
        case SetVar(_, _, "-"):
            return "+"
        case SetVar(_, _, op) if op in ("+", "*", "min", "max", "and", "or"):
            return op
    return None


def identity(op: str, kind: Type) -> Const:
    """Return the identity of an operator."""
    if kind == BOOL:
        return Const(op == "and" or op == "*" or op == "min", BOOL)
    if op in ("+", "or"):
        return zero(kind)
    if op in ("*", "and"):
        return Const(1.0 if kind.is_float else 1, kind)
    if kind.is_float:
        return Const(float("inf") if op == "min" else float("-inf"), kind)
    bits, signed = 8 * kind.bytes, kind.name.startswith("i")
    most, least = 2 ** (bits - signed) - 1, -(2 ** (bits - 1)) if signed else 0
    return Const(most if op == "min" else least, kind)


def renamed(body: Steps, variable: Var, own: Var, op: str) -> Steps:
    """Return the body with a variable, which is only updated, replaced by another one."""

    def change(node: Node) -> Node:
        if isinstance(node, SetVar) and node.variable.name == variable.name:
            return SetVar(own, node.value, node.op or op)
        return node

    changed = transform(body, change)
    if substitute(changed, {variable.name: own}) != changed:
        raise ScheduleError(f"iterations that a GPU runs at once read {variable.name}, to which they add")
    return changed
