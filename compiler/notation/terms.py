"""Einstein's summation, term by term: which parts of an expression are summed, and over which indices.

An index that is not on the left is summed in every term that has it, and in no other (DESIGN 4.5). Products are
distributed over sums only if the terms of a sum are summed over different indices.
"""

from __future__ import annotations

import math
from itertools import product

from ..errors import ExpressionError
from ..frozen import frozen
from .nodes import Access, Add, Apply, Div, Expr, Literal, Mul, Neg, Sum, unbound

MOST_TERMS = 64
"""The most terms to which a product of sums may be distributed. They double with every factor, and each has loops of its own."""


@frozen
class Term:
    """A part of the right-hand side that is summed as a whole over the indices ``reduced``, which are in order of first appearance."""

    reduced: tuple[str, ...]
    value: Expr


def terms(value: Expr, free: frozenset[str]) -> tuple[Term, ...]:
    """Split an expression into terms with different reductions; terms with equal reductions stay one expression.

    Args:
        value: the right-hand side.
        free: the indices on the left.

    Raises:
        ExpressionError: products of sums mean more than ``MOST_TERMS`` different sums.
    """
    grouped: dict[frozenset[str], list[Expr]] = {}
    for part in _uniform_parts(value, free):
        grouped.setdefault(frozenset(unbound(part)) - free, []).append(part)
    result = []
    for parts in grouped.values():
        whole = parts[0] if len(parts) == 1 else Add(tuple(parts))
        result.append(Term(tuple(name for name in unbound(whole) if name not in free), whole))
    return tuple(result)


def _uniform_parts(value: Expr, free: frozenset[str]) -> list[Expr]:
    if len(_reductions(value, free)) == 1:
        return [value]
    match value:
        case Add(operands):
            return [part for operand in operands for part in _uniform_parts(operand, free)]
        case Neg(operand):
            return [Neg(part) for part in _uniform_parts(operand, free)]
        case Div(numerator, denominator):
            return [Div(part, denominator) for part in _uniform_parts(numerator, free)]
        case Mul(operands):
            choices = [_uniform_parts(operand, free) for operand in operands]
            _check_count(math.prod(map(len, choices)))
            return [Mul(combination) for combination in product(*choices)]
        case _:
            raise TypeError(f"{type(value).__name__} has one reduction only")


def _reductions(value: Expr, free: frozenset[str]) -> frozenset[frozenset[str]]:
    """Return the set of summed indices of every term that full distribution would give."""
    match value:
        case Literal():
            return frozenset({frozenset()})
        case Access():
            return frozenset({frozenset(value.indices) - free})
        case Apply() | Sum():
            return frozenset({frozenset(unbound(value)) - free})
        case Neg(operand):
            return _reductions(operand, free)
        case Add(operands):
            return frozenset().union(*(_reductions(operand, free) for operand in operands))
        case Mul(operands):
            found = frozenset({frozenset[str]()})
            for operand in operands:
                found = frozenset(left | right for left, right in product(found, _reductions(operand, free)))
                _check_count(len(found))
            return found
        case Div(numerator, denominator):
            below = frozenset(unbound(denominator)) - free
            return frozenset(above | below for above in _reductions(numerator, free))
        case _:
            raise TypeError(f"no reductions of {type(value).__name__}")


def _check_count(count: int) -> None:
    if count > MOST_TERMS:
        raise ExpressionError(
            f"the products of sums in the expression mean at least {count} different sums, more than {MOST_TERMS}; compute it in parts"
        )


def addend_count(value: Expr) -> int:
    """Return how many addends ``distributed`` gives."""
    match value:
        case Add(operands):
            return sum(map(addend_count, operands))
        case Mul(operands):
            return math.prod(map(addend_count, operands))
        case Neg(operand) | Div(operand, _):
            return addend_count(operand)
        case _:
            return 1


def distributed(value: Expr) -> list[Expr]:
    """Return addends whose sum is the expression, with products distributed over sums."""
    match value:
        case Add(operands):
            return [piece for operand in operands for piece in distributed(operand)]
        case Neg(operand):
            return [Neg(piece) for piece in distributed(operand)]
        case Div(numerator, denominator):
            return [Div(piece, denominator) for piece in distributed(numerator)]
        case Mul(operands):
            return [Mul(factors) for factors in product(*(distributed(operand) for operand in operands))]
        case _:
            return [value]
