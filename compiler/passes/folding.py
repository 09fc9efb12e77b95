"""Folds constants in expressions of the loop IR.

Floating-point results do not change in any bit: ``x * 0`` and ``x + 0`` stay (because of NaN, infinity and signed zeros), ``x * 1``
becomes ``x``. Integer constants are folded exactly, since valid kernels do not overflow.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from ..ir.nodes import BOOL, F32, I64, Binary, Cast, Const, Node, Select, Type, Unary, Value
from ..ir.rewrite import is_pure, settle
from ..numpy_later import np

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def simplify_expression(expr: Value) -> Value:
    """Return an expression of the same value with constants folded."""
    return settle(expr, _simpler)


def _simpler(node: Node) -> Node:
    rule = FOLDING.get(type(node))
    return node if rule is None else rule(node)


def _folded(value: float | bool, node: Value, kind: Type) -> Value:
    """Return a folded constant, or the node itself if the value overflows (in a branch that is never taken)."""
    if kind == BOOL:
        return Const(bool(value), kind)
    if kind.is_float:
        with np.errstate(over="ignore"):
            return Const(float(np.float32(value)) if kind == F32 else float(value), kind)
    if not math.isfinite(value) or not -(2 ** (8 * kind.bytes - 1)) <= int(value) < 2 ** (8 * kind.bytes - 1):
        return node
    return Const(int(value), kind)


def _simpler_unary(expr: Unary) -> Value:
    match expr:
        case Unary(op, Const(value), kind):
            return _folded(not value if op == "not" else -value, expr, kind)
        case Unary("not", Unary("not", inner)):
            return inner
    return expr


def _simpler_cast(expr: Cast) -> Value:
    operand, kind = expr.operand, expr.type
    if operand.type == kind:
        return operand
    return _folded(operand.value, expr, kind) if isinstance(operand, Const) and kind.lanes == 1 else expr


def _simpler_select(expr: Select) -> Value:
    if isinstance(expr.condition, Const):
        return expr.then if expr.condition.value else expr.otherwise
    return expr


def _simpler_binary(expr: Binary) -> Value:
    op, left, right = expr.op, expr.left, expr.right
    if isinstance(left, Const) and isinstance(right, Const):
        folded = _fold(op, left.value, right.value, expr)
        return expr if folded is None else _folded(folded, expr, expr.type)
    if op in ("and", "or"):
        return _simpler_logical(op, left, right, expr)
    if op in _COMPARE:
        return expr
    if expr.type.is_float or left.type.is_float or right.type.is_float:
        return _simpler_float(op, left, right, expr)
    return _simpler_integer(op, left, right, expr)


def _fold(op: str, a: Any, b: Any, expr: Binary) -> Any:
    if op in _COMPARE:
        return _COMPARE[op](a, b)
    if op in ("and", "or"):
        return (a and b) if op == "and" else (a or b)
    if expr.type.is_float:
        return _fold_float(op, float(a), float(b), expr.type == F32)
    return _fold_integer(op, int(a), int(b))


def _fold_integer(op: str, a: int, b: int) -> int | None:
    match op:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "min":
            return min(a, b)
        case "max":
            return max(a, b)
        case "/" if b:
            return int(math.copysign(1, a) * math.copysign(1, b)) * (abs(a) // abs(b))
        case "%" if b:
            return int(math.copysign(abs(a) % abs(b), a))
    return None


def _fold_float(op: str, a: float, b: float, single: bool) -> float | None:
    kind = np.float32 if single else np.float64
    functions = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "min": np.minimum, "max": np.maximum}
    if op not in functions:
        return None
    with np.errstate(all="ignore"):
        return float(functions[op](kind(a), kind(b)))


def _simpler_logical(op: str, left: Value, right: Value, expr: Binary) -> Value:
    absorbing = op == "or"
    if isinstance(left, Const):
        return left if bool(left.value) == absorbing else right
    if isinstance(right, Const):
        if bool(right.value) != absorbing:
            return left
        return right if is_pure(left) else expr
    return left if left == right else expr


def _simpler_float(op: str, left: Value, right: Value, expr: Binary) -> Value:
    if op in ("*", "/") and isinstance(right, Const) and right.value == 1:
        return _as(left, expr)
    if op == "*" and isinstance(left, Const) and left.value == 1:
        return _as(right, expr)
    if op == "-" and isinstance(right, Const) and right.value == 0 and math.copysign(1, right.value) > 0:
        return _as(left, expr)
    return expr


def _simpler_integer(op: str, left: Value, right: Value, expr: Binary) -> Value:
    if op in ("+", "*") and isinstance(left, Const):
        left, right = right, left
        expr = Binary(op, left, right, expr.type)
    if op in ("min", "max"):
        return _as(left, expr) if left == right else expr
    if not isinstance(right, Const):
        return Const(0, expr.type) if op == "-" and left == right and is_pure(left) and expr.type.lanes == 1 else expr
    value = int(right.value)
    match op:
        case "+" | "-":
            return _simpler_offset(left, value if op == "+" else -value, expr)
        case "*" if value == 0 and is_pure(left):
            return Const(0, expr.type)
        case "*" | "/" if value == 1:
            return _as(left, expr)
        case "%" if value == 1 and is_pure(left):
            return Const(0, expr.type)
    return expr


def _simpler_offset(left: Value, offset: int, expr: Binary) -> Value:
    """Return ``left + offset`` with constants as in ``(x + 1) + 2`` combined, as a difference if the sum of constants is negative."""
    if isinstance(left, Binary) and left.op in ("+", "-") and isinstance(left.right, Const) and left.type == expr.type:
        inner = int(left.right.value)
        left, offset = left.left, offset + (inner if left.op == "+" else -inner)
    if offset == 0:
        return _as(left, expr)
    if abs(offset) >= 2**31 and expr.type != I64:
        return expr
    op = "+" if offset > 0 else "-"
    if left is expr.left and op == expr.op and expr.right.type == expr.type.element:
        return expr
    return Binary(op, left, Const(abs(offset), expr.type.element), expr.type)


def _as(value: Value, expr: Value) -> Value:
    """Return a value, cast to the type of the expression that it replaces."""
    return value if value.type == expr.type else Cast(value, expr.type)


FOLDING: dict[type[Node], Callable[[Any], Node]] = {
    Binary: _simpler_binary, Unary: _simpler_unary, Cast: _simpler_cast, Select: _simpler_select,
}  # fmt: skip
"""What an expression becomes, by its type."""
