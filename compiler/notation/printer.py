"""Index notation as text that parses back to an equal expression."""

from __future__ import annotations

from .functions import COMPARISONS
from .nodes import Access, Add, Apply, Assignment, Div, Expr, Literal, Mul, Neg, Sum

_COMPARISON, _SUM, _PRODUCT, _ATOM = 0, 1, 2, 3


def show(expr: Expr, level: int = _COMPARISON) -> str:
    """Return the text of ``expr``, in parentheses where its precedence is below ``level``."""
    text, own = _show(expr)
    return f"({text})" if own < level else text


def _show(expr: Expr) -> tuple[str, int]:
    match expr:
        case Literal(value):
            return (repr(value), _ATOM) if value >= 0 else (f"({value!r})", _ATOM)
        case Access(tensor, subscripts, _):
            return (f"{tensor}({','.join(map(str, subscripts))})" if subscripts else tensor), _ATOM
        case Neg(operand):
            return f"-{show(operand, _ATOM)}", _PRODUCT
        case Add(operands):
            text = show(operands[0], _PRODUCT)
            for operand in operands[1:]:
                negative = isinstance(operand, Neg)
                text += f" - {show(operand.operand, _PRODUCT)}" if negative else f" + {show(operand, _PRODUCT)}"
            return text, _SUM
        case Mul(operands):
            return " * ".join([show(operands[0], _PRODUCT if not isinstance(operands[0], Mul) else _ATOM)]
                              + [show(operand, _ATOM) for operand in operands[1:]]), _PRODUCT
        case Div(numerator, denominator):
            return f"{show(numerator, _PRODUCT)} / {show(denominator, _ATOM)}", _PRODUCT
        case Apply(function, (left, right)) if function in COMPARISONS:
            return f"{show(left, _SUM)} {function} {show(right, _SUM)}", _COMPARISON
        case Apply(function, arguments):
            return f"{function}({_arguments(arguments)})", _ATOM
        case Sum(over, operand):
            return f"sum({','.join(over)}, {show(operand)})", _ATOM
        case _:
            raise TypeError(f"no printer for {type(expr).__name__}")


def _arguments(arguments: tuple[Expr, ...]) -> str:
    """Return the text of arguments such that they cannot be taken for subscripts, which are indices and integers."""
    shown = [f"{each.tensor}()" if isinstance(each, Access) and not each.subscripts else show(each) for each in arguments]
    if all(isinstance(each, Literal) for each in arguments):
        shown[0] = f"({shown[0]})"
    return ", ".join(shown)


def show_assignment(assignment: Assignment) -> str:
    """Return ``A(i,j) = B(i,k) * C(k,j)``."""
    return f"{show(assignment.target)} {assignment.operator} {show(assignment.value)}"
