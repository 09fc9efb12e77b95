"""Builds expressions of the loop IR and simplifies obvious cases, so that generated code has no ``0 + i * 1``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .nodes import BOOL, I64, Binary, Cast, Const, Load, Type, Value


def integer(value: int) -> Const:
    """Return a constant of 64 bits."""
    return Const(value, I64)


ZERO, ONE = integer(0), integer(1)
FALSE, TRUE = Const(False, BOOL), Const(True, BOOL)


def is_constant(expr: Value, value: int) -> bool:
    """Return whether an expression is a constant with the given value."""
    return isinstance(expr, Const) and expr.value == value


def add(left: Value, right: Value) -> Value:
    """Return a sum. Constants are added, and 0 is left out."""
    if isinstance(left, Const) and isinstance(right, Const):
        return integer(int(left.value + right.value))
    if is_constant(left, 0):
        return right
    return left if is_constant(right, 0) else Binary("+", left, right, I64)


def subtract(left: Value, right: Value) -> Value:
    """Return a difference. It is simplified for constants and for equal expressions."""
    if left == right:
        return ZERO
    if isinstance(left, Const) and isinstance(right, Const):
        return integer(int(left.value - right.value))
    return left if is_constant(right, 0) else Binary("-", left, right, I64)


def multiply(left: Value, right: Value) -> Value:
    """Return a product. Constants are multiplied, and 1 is left out."""
    if isinstance(left, Const) and isinstance(right, Const):
        return integer(int(left.value * right.value))
    if is_constant(left, 0) or is_constant(right, 0):
        return ZERO
    if is_constant(left, 1):
        return right
    return left if is_constant(right, 1) else Binary("*", left, right, I64)


def quotient(left: Value, right: Value) -> Value:
    """Return the truncated quotient of nonnegative integers."""
    if isinstance(left, Const) and isinstance(right, Const) and right.value:
        return integer(int(left.value) // int(right.value))
    return left if is_constant(right, 1) else Binary("/", left, right, I64)


def remainder(left: Value, right: Value) -> Value:
    """Return the remainder of a division. It is simplified for constants and for the divisor 1."""
    if isinstance(left, Const) and isinstance(right, Const) and right.value:
        return integer(int(left.value) % int(right.value))
    return ZERO if is_constant(right, 1) else Binary("%", left, right, I64)


def ceiling_quotient(left: Value, right: Value) -> Value:
    """Return the quotient, rounded up, of a nonnegative number by a positive one."""
    if is_constant(right, 1):
        return left
    return quotient(add(left, subtract(right, ONE)), right)


def minimum(left: Value, right: Value) -> Value:
    """Return the smaller value. It is simplified for constants and for equal expressions."""
    if left == right:
        return left
    if isinstance(left, Const) and isinstance(right, Const):
        return integer(int(min(left.value, right.value)))
    return Binary("min", left, right, I64)


def maximum(left: Value, right: Value) -> Value:
    """Return the larger value. It is simplified for constants and for equal expressions."""
    if left == right:
        return left
    if isinstance(left, Const) and isinstance(right, Const):
        return integer(int(max(left.value, right.value)))
    return Binary("max", left, right, I64)


def compare(op: str, left: Value, right: Value) -> Value:
    """Return the condition that a comparison such as ``<`` holds between two values."""
    return Binary(op, left, right, BOOL)


def balanced(operands: Sequence[Value], joined: Callable[[Value, Value], Value]) -> Value:
    """Join one or more operands of an associative operation, in order, to a tree of least depth.

    Passes recurse once for each operator, and C compilers once for each bracket: hundreds of operands in a row would be too deep.
    """
    if len(operands) == 1:
        return operands[0]
    middle = (len(operands) + 1) // 2
    return joined(balanced(operands[:middle], joined), balanced(operands[middle:], joined))


def every(conditions: Sequence[Value]) -> Value:
    """Return the conjunction of one or more conditions."""
    return balanced(conditions, lambda left, right: Binary("and", left, right, BOOL))


def some(conditions: Sequence[Value]) -> Value:
    """Return the disjunction of one or more conditions."""
    return balanced(conditions, lambda left, right: Binary("or", left, right, BOOL))


def load_index(array: str, index: Value, kind: Type) -> Value:
    """Return a position or coordinate read from an index array, widened to 64 bits."""
    value = Load(array, index, kind)
    return value if kind == I64 else Cast(value, I64)
