"""The format of a result that the user does not give: sparse where the sparse operands bound what it stores."""

from __future__ import annotations

from collections.abc import Mapping

from ..format import Format, csf_format, parse_format
from ..notation.nodes import Access, Add, Apply, Assignment, Div, Expr, Literal, Mul, Neg, accesses, walk_expression

AUTO = "auto"
"""Asks for the format that ``auto_format`` chooses."""


def auto_format(assignment: Assignment, formats: Mapping[str, Format]) -> Format | None:
    """Return what ``output_format="auto"`` means; None for a dense result.

    One product, or an elementwise expression (every tensor at all indices of the result, in any order, and none summed), all of
    whose operands are sparse, is compressed (vectors), csr (matrices) or csf (beyond). Operands of order 0 scale, and fill nothing
    as factors; as terms, like constants, they fill the result.

    Args:
        assignment: the expression.
        formats: of every operand.
    """
    target, value = assignment.target, assignment.value
    read = [*accesses(value), *([target] if assignment.operator == "+=" else [])]
    stored = [access for access in read if access.subscripts]
    if not target.subscripts or not stored or any(formats[access.tensor].is_dense for access in stored):
        return None
    elementwise = all(set(access.indices) == set(target.indices) for access in stored) and not _filling_term(value)
    if not elementwise and (assignment.operator == "+=" or not _is_product(value)):
        return None
    return parse_format("csr", 2) if len(target.subscripts) == 2 else csf_format(len(target.subscripts))


def _is_product(value: Expr) -> bool:
    """Whether a value is one product of accesses and constants, signs aside, at most divided by constants."""
    return all(
        isinstance(node, (Access, Literal, Neg, Mul)) or (isinstance(node, Div) and isinstance(node.denominator, Literal))
        for node in walk_expression(value)
    )


def _filling_term(value: Expr) -> bool:
    """Whether a term of a value, or a numerator, stores nothing, so that it stands at every coordinate."""
    match value:
        case Add(operands):
            return any(map(_filling_term, operands))
        case Mul(operands):
            return all(map(_filling_term, operands))
        case Div(numerator, _):
            return _filling_term(numerator)
        case Neg(operand):
            return _filling_term(operand)
        case Apply(_, arguments):
            return all(map(_filling_term, arguments))
        case Access(subscripts=subscripts):
            return not subscripts
        case _:
            return True
