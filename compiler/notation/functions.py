"""The functions in expressions (DESIGN 4.5): how many arguments each takes, and its meaning as a NumPy function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..frozen import frozen
from ..numpy_later import np
from .nodes import Apply, Expr, Literal, Sum, walk_expression

COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
SUM = "sum"
MOST_EXPONENT = 64
"""The largest integer exponent for which a power is computed as a product."""


@frozen
class Function:
    """One function.

    Attributes:
        arguments: how many arguments it takes.
        meaning: computes it for arrays or numbers.
        of_floats: whether integers are converted to float64, as NumPy does.
    """

    arguments: int
    meaning: Callable[..., Any]
    of_floats: bool = False


def _sigmoid(value: Any) -> Any:
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-value))


def _numpy(name: str) -> Callable[..., Any]:
    """Return NumPy's function of a name, looked up when it is called: expressions are read without NumPy."""
    return lambda *arguments: getattr(np, name)(*arguments)


def _compared(name: str) -> Function:
    return Function(2, lambda left, right: np.asarray(getattr(np, name)(left, right), np.result_type(left, right)))


FUNCTIONS: dict[str, Function] = {
    "exp": Function(1, _numpy("exp"), True),
    "sqrt": Function(1, _numpy("sqrt"), True),
    "abs": Function(1, _numpy("abs")),
    "log": Function(1, _numpy("log"), True),
    "tanh": Function(1, _numpy("tanh"), True),
    "sigmoid": Function(1, _sigmoid, True),
    "relu": Function(1, lambda value: np.maximum(value, 0)),
    "pow": Function(2, _numpy("power")),
    "max": Function(2, _numpy("maximum")),
    "min": Function(2, _numpy("minimum")),
    "where": Function(3, lambda condition, then, otherwise: np.where(np.not_equal(condition, 0), then, otherwise)),
    "<": _compared("less"),
    "<=": _compared("less_equal"),
    ">": _compared("greater"),
    ">=": _compared("greater_equal"),
    "==": _compared("equal"),
    "!=": _compared("not_equal"),
}


def has_functions(value: Expr) -> bool:
    """Whether an expression has functions, comparisons or explicit sums."""
    return any(isinstance(node, Apply | Sum) for node in walk_expression(value))


def whole_exponent(exponent: Expr) -> int | None:
    """Return an exponent that is a small constant integer, so that the power is a product; None for others."""
    if not isinstance(exponent, Literal) or not 0 <= exponent.value <= MOST_EXPONENT or exponent.value != int(exponent.value):
        return None
    return int(exponent.value)


def number_of(function: str, *arguments: float) -> float:
    """Return the value of a function of numbers, by IEEE rules."""
    with np.errstate(all="ignore"):
        return float(FUNCTIONS[function].meaning(*(np.float64(argument) for argument in arguments)))
