"""Derivatives of statements by an operand, as statements of the same kind (reverse mode; Griewank and Walther, "Evaluating Derivatives",
chapter 3).

``g(i)`` is given: the derivative of the final value by each entry of the result ``y(i)``, called *worth*. A statement adds up products.
The derivative by a factor is therefore the product with ``g(i)`` in place of the factor; the factor's indices become the left side. For a
factor inside a function, the derivative of the function is one more factor. Sums inside functions become statements of their own
(``inner_sums``), which come before.
"""

from __future__ import annotations

from collections.abc import Callable

from ..errors import ExpressionError
from .functions import COMPARISONS
from .inner_sums import Definition, resolved
from .nodes import Access, Add, Apply, Assignment, Div, Expr, Literal, Mul, Neg, Sum, accesses, index_subscript
from .printer import show, show_assignment
from .terms import terms

Partial = tuple[Access, int, tuple[Expr, ...]]
"""An access, and the derivative of a value by it: a number times some factors."""

_ONE = Literal(1)


def statements(assignment: Assignment, fresh: Callable[[str], str]) -> list[Assignment]:
    """Return statements, without sums inside functions, that together compute an assignment; the last one has its target.

    Args:
        fresh: takes a name, and returns a unique name like it.
    """
    found = resolved(assignment.value, assignment.target.indices, fresh)
    before = [Assignment(one.target, "=", one.value) for one in _in_order(found.definitions)]
    return [*before, Assignment(assignment.target, assignment.operator, found.value)]


def _in_order(definitions: tuple[Definition, ...]) -> list[Definition]:
    return [one for definition in definitions for one in (*_in_order(definition.inner), definition)]


def derivatives(assignment: Assignment, operand: str, worth: str, name: str, mask: str | None = None) -> list[Assignment]:
    """Return statements whose results add up to the derivative by an operand; empty if the result does not depend on it.

    Args:
        assignment: a statement without sums inside functions.
        worth: the name of ``g``, the derivative by each entry of the result.
        name: the name of the results.
        mask: the name of an operand by which they are multiplied; it is 1 where the derivative is wanted.

    Raises:
        ExpressionError: the operand is read at other subscripts than distinct indices.
    """
    seed = Access(worth, tuple(map(index_subscript, assignment.target.indices)))
    counts: dict[tuple[Access, tuple[Expr, ...]], int] = {}
    for access, number, factors in _partials(assignment.value, operand):
        if not access.is_plain or len(access.indices) != len(access.subscripts):
            raise ExpressionError(f"the derivative by {show(access)} is not known: write each subscript as an index of its own")
        masks = () if mask is None else (Access(mask, access.subscripts),)
        part = Access(name, access.subscripts), (*masks, seed, *factors)
        counts[part] = counts.get(part, 0) + number
    found: dict[Access, list[Expr]] = {}
    for (target, factors), number in counts.items():
        product = list(factors if number == 1 else (Literal(number), *factors))
        found.setdefault(target, []).append(Mul(tuple(product)) if len(product) > 1 else product[0])
    return [Assignment(target, "=", parts[0] if len(parts) == 1 else Add(tuple(parts))) for target, parts in found.items()]


def text_of(assignment: Assignment) -> str:
    """Return the text of a statement without sums inside functions. Sums over functions are written as ``sum``: otherwise parsing would
    put the sum over an index that only an argument has inside the function."""
    parts = [
        Sum(term.reduced, term.value) if term.reduced and _applied(term.value) else term.value
        for term in terms(assignment.value, frozenset(assignment.target.indices))
    ]
    return show_assignment(Assignment(assignment.target, assignment.operator, parts[0] if len(parts) == 1 else Add(tuple(parts))))


def function_operands(assignment: Assignment) -> set[Access]:
    """Return the accesses inside functions."""
    return {access for node in _applied(assignment.value) for access in accesses(node)}


def _applied(value: Expr) -> list[Expr]:
    return [value] if isinstance(value, Apply) else [node for child in value.children for node in _applied(child)]


def _partials(value: Expr, operand: str) -> list[Partial]:
    match value:
        case Access():
            return [(value, 1, ())] if value.tensor == operand else []
        case Neg(inner):
            return [(access, -number, factors) for access, number, factors in _partials(inner, operand)]
        case Add(parts):
            return [found for part in parts for found in _partials(part, operand)]
        case Mul(factors):
            return [
                found
                for place, factor in enumerate(factors)
                for found in _times(_partials(factor, operand), *factors[:place], *factors[place + 1 :])
            ]
        case Div(above, below):
            by_below = _times(_partials(below, operand), Div(above, Mul((below, below))))
            return _times(_partials(above, operand), Div(_ONE, below)) + [(access, -number, rest) for access, number, rest in by_below]
        case Apply(function, arguments):
            slopes = _slopes(function, arguments) if any(_partials(argument, operand) for argument in arguments) else ()
            return [
                found
                for argument, slope in zip(arguments, slopes, strict=False)
                if slope is not None
                for found in _times(_partials(argument, operand), slope)
            ]
        case _:
            return []


def _times(partials: list[Partial], *factors: Expr) -> list[Partial]:
    return [(access, number, (*factors, *others)) for access, number, others in partials]


def _slopes(function: str, arguments: tuple[Expr, ...]) -> tuple[Expr | None, ...]:
    """Return the derivative of a function by each of its arguments; None for arguments by which it is 0 wherever it exists."""
    whole, first = Apply(function, arguments), arguments[0]
    zero = Literal(0)
    match function:
        case "exp":
            return (whole,)
        case "log":
            return (Div(_ONE, first),)
        case "sqrt":
            return (Div(Literal(0.5), whole),)
        case "abs":
            return (Add((Apply(">", (first, zero)), Neg(Apply("<", (first, zero))))),)
        case "tanh":
            return (Add((_ONE, Neg(Mul((whole, whole))))),)
        case "sigmoid":
            return (Mul((whole, Add((_ONE, Neg(whole))))),)
        case "relu":
            return (Apply(">", (first, zero)),)
        case "pow":
            base, exponent = arguments
            less = Literal(exponent.value - 1) if isinstance(exponent, Literal) else Add((exponent, Literal(-1)))
            by_exponent = None if isinstance(exponent, Literal) else Mul((whole, Apply("log", (base,))))
            return (Mul((exponent, Apply("pow", (base, less)))), by_exponent)
        case "max" | "min":
            sign = ">" if function == "max" else "<"
            return (Apply(sign + "=", arguments), Apply(sign, tuple(reversed(arguments))))
        case "where":
            condition = Apply("!=", (first, zero))
            return (None, condition, Add((_ONE, Neg(condition))))
        case _ if function in COMPARISONS:
            return (None, None)
        case _:
            raise ExpressionError(f"the derivative of {function} is not known")
