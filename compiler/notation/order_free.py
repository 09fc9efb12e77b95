"""A text of expressions that does not depend on the order of addends and factors, nor on how sums and products are nested."""

from __future__ import annotations

from collections.abc import Callable

from .nodes import Add, Apply, Div, Expr, Mul, Neg
from .printer import show


def order_free_text(value: Expr, leaf: Callable[[Expr], str] = show) -> str:
    """Return a text that is equal for expressions that differ only in the order of addends and factors.

    ``leaf`` gives the text of nodes other than sums, products, quotients and negations.
    """
    match value:
        case Add(operands):
            return "(" + " + ".join(sorted(order_free_text(operand, leaf) for operand in operands)) + ")"
        case Mul(operands):
            return "(" + " * ".join(sorted(order_free_text(operand, leaf) for operand in operands)) + ")"
        case Neg(operand):
            return f"-{order_free_text(operand, leaf)}"
        case Div(numerator, denominator):
            return f"({order_free_text(numerator, leaf)} / {order_free_text(denominator, leaf)})"
        case Apply(function, arguments):
            return f"{function}({', '.join(order_free_text(argument, leaf) for argument in arguments)})"
        case _:
            return leaf(value)


def flattened(value: Expr) -> Expr:
    """Merge sums in sums and products in products, move signs out of products, and cancel double signs."""
    value = value.rebuild(tuple(flattened(child) for child in value.children)) if value.children else value
    match value:
        case Add(operands):
            return Add(tuple(part for operand in operands for part in addends(operand)))
        case Mul(operands):
            bare = [operand.operand if isinstance(operand, Neg) else operand for operand in operands]
            factors = tuple(part for operand in bare for part in (operand.operands if isinstance(operand, Mul) else (operand,)))
            odd = sum(isinstance(operand, Neg) for operand in operands) % 2
            return Neg(Mul(factors)) if odd else Mul(factors)
        case Neg(Neg(operand)):
            return operand
        case _:
            return value


def addends(value: Expr) -> tuple[Expr, ...]:
    """Return the operands of a sum; any other expression is its own only addend."""
    return value.operands if isinstance(value, Add) else (value,)
