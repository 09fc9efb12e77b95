"""Loop-IR expressions built with the obvious folded away, so that generated code shows no ``0 + i * 1``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .nodes import BOOL, I64, Binary, Cast, Const, Load, Type, Value


def integer(value: int) -> Const:
    """Return a constant of 64 bits."""
    return Const(value, I64)


ZERO, ONE = integer(0), integer(1)
FALSE, TRUE = Const(False, BOOL), Const(True, BOOL)


def is_constant(expr: Value, value: int) -> bool:
    """Return whether an expression is the constant of some value."""
    return isinstance(expr, Const) and expr.value == value


def add(left: Value, right: Value) -> Value:
    """Return a sum; constants are added here, and 0 is left out."""
    if isinstance(left, Const) and isinstance(right, Const):
        return integer(int(left.value + right.value))
    if is_constant(left, 0):
        return right
    return left if is_constant(right, 0) else Binary("+", left, right, I64)


def subtract(left: Value, right: Value) -> Value:
    """Return a difference; that of constants, and of equal expressions, is found here."""
    if left == right:
        return ZERO
    if isinstance(left, Const) and isinstance(right, Const):
        return integer(int(left.value - right.value))
    return left if is_constant(right, 0) else Binary("-", left, right, I64)


def multiply(left: Value, right: Value) -> Value:
    """Return a product; constants are multiplied here, and 1 is left out."""
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
    """Return what is left of a division; that of constants, and by 1, is found here."""
    if isinstance(left, Const) and isinstance(right, Const) and right.value:
        return integer(int(left.value) % int(right.value))
    return ZERO if is_constant(right, 1) else Binary("%", left, right, I64)


def ceiling_quotient(left: Value, right: Value) -> Value:
    """Return a quotient rounded up, of a number that is not negative."""
    if is_constant(right, 1):
        return left
    return quotient(add(left, subtract(right, ONE)), right)


def minimum(left: Value, right: Value) -> Value:
    """Return the smaller value; that of constants, and of equal expressions, is found here."""
    if left == right:
        return left
    if isinstance(left, Const) and isinstance(right, Const):
        return integer(int(min(left.value, right.value)))
    return Binary("min", left, right, I64)


def maximum(left: Value, right: Value) -> Value:
    """Return the larger value; that of constants, and of equal expressions, is found here."""
    if left == right:
        return left
    if isinstance(left, Const) and isinstance(right, Const):
        return integer(int(max(left.value, right.value)))
    return Binary("max", left, right, I64)


def compare(op: str, left: Value, right: Value) -> Value:
    """Return whether an operator such as ``<`` holds between two values."""
    return Binary(op, left, right, BOOL)


def balanced(operands: Sequence[Value], joined: Callable[[Value, Value], Value]) -> Value:
    """Return one or more operands of an associative operation joined in order, as a tree that is as flat as can be.

    Passes go down one level for each operator, compilers for each bracket: hundreds of operands in a row would be too deep.
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
