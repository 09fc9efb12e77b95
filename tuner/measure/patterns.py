"""Where expressions have entries, by the definition: the boolean evaluation of the stored patterns of their operands (DESIGN 4.5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...compiler.notation.constants import makes_nan
from ...compiler.notation.nodes import Access, Add, Apply, Div, Expr, Literal, Mul, Neg, accesses
from ...compiler.storage.tensor import Tensor

Patterns = Mapping[str, NDArray[np.bool_]]


def stored_places(operand: Tensor) -> NDArray[np.bool_]:
    """Return an array that is true where a tensor stores something."""
    found = np.zeros(operand.shape, np.bool_)
    coordinates, _ = operand.to_coordinates()
    found[tuple(coordinates)] = True
    return found


def pattern_of(expr: Expr, read: Callable[[Access], Any]) -> Any:
    """Return where an expression has entries; ``read`` gives the pattern of an access, broadcastable to the space of the term."""

    def below(child: Expr) -> Any:
        return pattern_of(child, read)

    match expr:
        case Access():
            return read(expr)
        case Literal(value):
            return np.bool_(value != 0)
        case Neg(operand):
            return below(operand)
        case Add(operands):
            return reduce(np.logical_or, map(below, operands))
        case Mul(operands):
            return reduce(np.logical_and, [below(operand) for operand in operands if not isinstance(operand, Literal)], np.bool_(True))
        case Apply(_, arguments):
            reading = [argument for argument in arguments if accesses(argument)]
            return reduce(np.logical_or, map(below, reading)) if reading else np.bool_(True)
        case Div(numerator, denominator):
            nothing = np.bool_(makes_nan(denominator)) if not accesses(denominator) else np.logical_not(below(denominator))
            return np.logical_or(below(numerator), nothing)
        case _:
            raise TypeError(f"no pattern of {type(expr).__name__}")
