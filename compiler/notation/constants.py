"""The values of expressions that read no tensor."""

from __future__ import annotations

import math

from .functions import number_of
from .nodes import Access, Add, Apply, Div, Expr, Literal, Mul, Neg, transform_expression


def constant_value(expr: Expr) -> float | None:
    """Return the value of an expression of constants, with IEEE division; None if it reads a tensor."""
    if isinstance(expr, Literal):
        return float(expr.value)
    parts = [constant_value(child) for child in expr.children]
    values = [part for part in parts if part is not None]
    if not values or len(values) < len(parts):
        return None
    match expr:
        case Neg():
            return -values[0]
        case Add():
            return sum(values)
        case Mul():
            return math.prod(values)
        case Div():
            return _divided(*values)
        case Apply(function):
            return number_of(function, *values)
        case _:
            return None


def _divided(numerator: float, denominator: float) -> float:
    if denominator != 0:
        return numerator / denominator
    return math.nan if numerator == 0 or math.isnan(numerator) else math.copysign(math.inf, numerator) * math.copysign(1, denominator)


def is_constant(expr: Expr) -> bool:
    """Return whether an expression reads no tensor."""
    return isinstance(expr, Literal) or (bool(expr.children) and not expr.accesses)


def value_of_nothing(expr: Expr) -> float:
    """Return the value of an expression if all tensors that it reads are 0."""
    nothing = transform_expression(expr, lambda node: Literal(0.0) if isinstance(node, Access) else None)
    constant = constant_value(nothing)
    return math.nan if constant is None else constant


def makes_nan(denominator: Expr) -> bool:
    """Return whether a denominator is the constant 0 or NaN, so that 0 divided by it is NaN."""
    constant = constant_value(denominator)
    return constant is not None and (constant == 0 or math.isnan(constant))
