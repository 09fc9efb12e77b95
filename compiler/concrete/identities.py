"""Expressions without what changes nothing: ``1 * e``, ``e + 0`` and ``-(-e)`` mean the loops of ``e``, under the same directives.

The constants are those of the semiring: the identity of its add, and 1 where its multiply is that of numbers.
Denominators stay as they are, since adding 0 there turns -0 into 0.
"""

from __future__ import annotations

import math

from ..notation.constants import constant_value, is_constant
from ..notation.nodes import Add, Expr, Literal, Mul, Neg

_IDENTITIES = {"+": 0, "or": 0, "min": math.inf, "max": -math.inf}


def is_nothing(value: Expr, add: str) -> bool:
    """Return whether an expression adds nothing: the identity of add itself, negated, or a sum of such constants.

    Constants that only come to it, such as ``2 - 2`` and ``0 * 2``, are values like others: operands that are not stored can leave them of
    ``2 + a(i) - 2``, and where that has a value must not depend on what a schedule leaves of it first.
    """
    match value:
        case Literal(number):
            return number == _IDENTITIES.get(add)
        case Neg(operand):
            return add in ("+", "or") and is_nothing(operand, add)
        case Add(operands):
            return all(is_nothing(operand, add) for operand in operands)
        case _:
            return False


def is_unit(value: Expr, multiply: str) -> bool:
    """Return whether an expression is a constant that a product can do without."""
    return multiply == "*" and is_constant(value) and constant_value(value) == 1


def without_identities(value: Expr, add: str = "+", multiply: str = "*") -> Expr:
    """Return an expression without addends, factors and signs that change nothing; a constant alone stays."""

    def inner(part: Expr) -> Expr:
        return without_identities(part, add, multiply)

    match value:
        case Neg(operand):
            below = inner(operand)
            return below.operand if isinstance(below, Neg) else Neg(below, span=value.span)
        case Add(operands):
            kept = tuple(inner(part) for part in operands if not is_nothing(part, add))
        case Mul(operands):
            kept = tuple(inner(part) for part in operands if not is_unit(part, multiply))
        case _:
            return value
    if not kept:
        return operands[0]
    return kept[0] if len(kept) == 1 else value.rebuild(kept)
