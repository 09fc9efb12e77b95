"""Functions and comparisons of values as loop-IR values: as operators and choices if possible, else as calls of ``ir.intrinsics``."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.nodes import BOOL, Binary, Call, Const, Select, Type, Unary, Value
from ..notation.functions import COMPARISONS, whole_exponent
from ..notation.nodes import Apply


def applied(value: Apply, arguments: Sequence[Value], kind: Type) -> Value:
    """Return a function of values of the kernel's type; max, min and relu of NaN are NaN."""
    function = value.function
    first, zero, one = arguments[0], _constant(0, kind), _constant(1, kind)
    if function in COMPARISONS:
        return Select(Binary(function, first, arguments[1], BOOL), one, zero, kind)
    match function:
        case "max" | "min":
            return Binary(function, first, arguments[1], kind)
        case "relu":
            return Binary("max", first, zero, kind)
        case "where":
            return Select(Binary("!=", first, zero, BOOL), arguments[1], arguments[2], kind)
        case "abs" if kind == BOOL or kind.name.startswith("u"):
            return first
        case "abs" if not kind.is_float:
            return Select(Binary("<", first, zero, BOOL), Unary("-", first, kind), first, kind)
        case "sigmoid":
            return Binary("/", one, Binary("+", one, Call("exp", (Unary("-", first, kind),), kind), kind), kind)
        case "pow" if (exponent := whole_exponent(value.arguments[1])) is not None:
            return _power(first, exponent, kind)
        case _:
            return Call(function, tuple(arguments), kind)


def _constant(number: int, kind: Type) -> Const:
    return Const(bool(number) if kind == BOOL else float(number) if kind.is_float else number, kind)


def _power(base: Value, exponent: int, kind: Type) -> Value:
    if exponent == 0:
        return _constant(1, kind)
    if exponent == 1:
        return base
    half = _power(base, exponent // 2, kind)
    square = Binary("*", half, half, kind)
    return Binary("*", square, base, kind) if exponent % 2 else square
