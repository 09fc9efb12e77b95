"""Numbers as the types of the loop IR hold them, and their operations as C defines them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .memory import InterpreterError, numpy_type
from .nodes import F32, I64, Type


def scalar(value: Any, kind: Type) -> Any:
    """Return a value as a variable of a type holds it: a Python number, or a NumPy number for 32-bit floats."""
    if kind.lanes > 1:
        return np.full(kind.lanes, value, numpy_type(kind)) if np.ndim(value) == 0 else np.asarray(value, numpy_type(kind))
    if kind == F32:
        with np.errstate(over="ignore"):
            return np.float32(value)
    if kind.is_float:
        return float(value)
    return bool(value) if kind.name == "bool" else in_range(int(value), kind)


def caster(given: Type, wanted: Type) -> Callable[[Any], Any]:
    """Return a function that converts values between two types as C does."""
    if given.lanes > 1:
        kind = numpy_type(wanted)
        return lambda value: value.astype(kind)
    return lambda value: scalar(value, wanted)


def in_range(value: int, kind: Type) -> int:
    """Return an integer as its type holds it. Values wrap around, as in compiled kernels.

    Raises:
        InterpreterError: a 64-bit integer overflows. Positions, coordinates and counts have that type.
    """
    bits = int(kind.element.name[1:])
    low, high = (0, 2**bits) if kind.name.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1))
    if low <= value < high:
        return value
    if kind == I64:
        raise InterpreterError(f"{value} overflows {kind.name}")
    return (value - low) % 2**bits + low


def float_operation(op: str, kind: Type) -> Callable[[Any, Any], Any]:
    """Return a function that computes with two values of a type of floats, and rounds as that type does."""
    if kind.lanes > 1 or kind == F32:
        functions = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "min": np.minimum, "max": np.maximum}
        compute, result = functions[op], numpy_type(kind)

        def rounded(a: Any, b: Any) -> Any:
            with np.errstate(all="ignore"):
                return compute(a, b).astype(result)

        return rounded
    return _DOUBLE[op]


def _divide(a: float, b: float) -> float:
    if b != 0:
        return a / b
    with np.errstate(all="ignore"):
        return float(np.float64(a) / np.float64(b))


def _quotient(a: int, b: int) -> int:
    if b == 0:
        raise InterpreterError(f"{a} is divided by zero")
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _minimum(a: Any, b: Any) -> Any:
    return a if a < b or a != a else b


def _maximum(a: Any, b: Any) -> Any:
    return a if a > b or a != a else b


_DOUBLE: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": _divide, "min": _minimum, "max": _maximum,
}  # fmt: skip
INTEGER: dict[str, Callable[[Any, Any], Any]] = {
    **_DOUBLE, "/": _quotient, "%": lambda a, b: a - b * _quotient(a, b), "min": _minimum, "max": _maximum,
}  # fmt: skip
"""The operations of integers, before they are cut to the range of their type."""
