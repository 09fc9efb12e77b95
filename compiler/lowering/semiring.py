"""The operators of a semiring on values: their loop-IR names, identities and fill values."""

from __future__ import annotations

import math

from ..frozen import frozen
from ..ir.nodes import BOOL, Const, Type


@frozen
class Semiring:
    """The names of addition and multiplication (+ * min max and or); entries that are not stored have the identity of addition."""

    add: str = "+"
    multiply: str = "*"

    def add_on(self, kind: Type) -> str:
        """Return the name of addition on values of a type; on truth values + is "or"."""
        return "or" if kind.name == "bool" and self.add == "+" else self.add

    def multiply_on(self, kind: Type) -> str:
        """Return the name of multiplication on values of a type; on truth values * is "and"."""
        return "and" if kind.name == "bool" and self.multiply == "*" else self.multiply

    def overflows(self, kind: Type) -> bool:
        """Whether multiplication of integers overflows on the fill value, an end of their range that represents infinity."""
        if kind.is_float or kind == BOOL or self.multiply not in ("+", "*"):
            return False
        return self.add == "min" or (self.add == "max" and kind.name.startswith("i"))

    def zero(self, kind: Type) -> Const:
        """Return the identity of addition, the value of entries that are not stored, as a constant of a type."""
        return Const(identity(self.add_on(kind), kind), kind)


def identity(operator: str, kind: Type) -> int | float | bool:
    """Return the identity of an operator on a type; for min and max of integers, an end of their range."""
    if kind.name == "bool":
        return {"or": False, "max": False, "and": True, "min": True, "+": False, "*": True}[operator]
    if operator in ("+", "or"):
        return 0.0 if kind.is_float else 0
    if operator in ("*", "and"):
        return 1.0 if kind.is_float else 1
    if kind.is_float:
        return math.inf if operator == "min" else -math.inf
    bits, signed = int(kind.name[1:]), kind.name.startswith("i")
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return high if operator == "min" else low
