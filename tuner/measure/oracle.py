"""The meaning of an expression on dense arrays, straight from the definition: what compiled kernels are checked against.

Every term is gathered over the full space of its indices and summed over those that are not on the left (DESIGN 4.5). Only for
small extents: time and memory are the product of the extents of a term.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...compiler.notation.nodes import Access, Add, Affine, Assignment, Div, Expr, Literal, Mul, Neg
from ...compiler.notation.terms import terms


def evaluate_dense(assignment: Assignment, operands: Mapping[str, NDArray[Any]], extents: Mapping[str, int]) -> NDArray[Any]:
    """Return the result as an ndarray with one axis for every index on the left.

    Args:
        assignment: a checked assignment; ``+=`` starts from the operand of the result's name.
        operands: dense arrays by name.
        extents: extent of every index.
    """
    left = assignment.target.indices
    shape = tuple(extents[index] for index in left)
    start = operands[assignment.target.tensor] if assignment.operator == "+=" else np.zeros(shape, np.result_type(*operands.values()))
    total = np.array(start)
    for term in terms(assignment.value, frozenset(left)):
        axes = (*left, *term.reduced)
        value = np.asarray(_value(term.value, axes, operands, extents))
        full = np.broadcast_to(value, tuple(extents[index] for index in axes))
        total = total + full.sum(axis=tuple(range(len(left), len(axes))), dtype=np.result_type(full, total))
    return total


def absolute(assignment: Assignment) -> Assignment:
    """Return the assignment whose value on absolute operands bounds what rounding can do to the given one: no differences."""
    return Assignment(assignment.target, assignment.operator, _absolute(assignment.value))


def _absolute(expr: Expr) -> Expr:
    match expr:
        case Neg(operand):
            return _absolute(operand)
        case Literal(value):
            return Literal(abs(value))
        case _:
            return expr.rebuild(tuple(_absolute(child) for child in expr.children)) if expr.children else expr


def _value(expr: Expr, axes: tuple[str, ...], operands: Mapping[str, NDArray[Any]], extents: Mapping[str, int]) -> Any:
    def below(child: Expr) -> Any:
        return _value(child, axes, operands, extents)

    match expr:
        case Literal(value):
            return value
        case Access(tensor, subscripts):
            return operands[tensor][tuple(_coordinates(subscript, axes, extents) for subscript in subscripts)]
        case Neg(operand):
            return -below(operand)
        case Add(parts):
            total = below(parts[0])
            for part in parts[1:]:
                total = total + below(part)
            return total
        case Mul(parts):
            product = below(parts[0])
            for part in parts[1:]:
                product = product * below(part)
            return product
        case Div(numerator, denominator):
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.true_divide(below(numerator), below(denominator))
        case _:
            raise TypeError(f"no meaning of {type(expr).__name__}")


def _coordinates(subscript: Affine, axes: tuple[str, ...], extents: Mapping[str, int]) -> NDArray[np.int64]:
    """Return the coordinates that a subscript takes over the space of the axes, broadcastable to it."""
    total = np.full((1,) * len(axes), subscript.constant, np.int64)
    for index, coefficient in subscript.terms:
        place = axes.index(index)
        total = total + coefficient * np.arange(extents[index]).reshape((-1,) + (1,) * (len(axes) - 1 - place))
    return total


