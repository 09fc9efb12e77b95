"""The operators of a semiring on values: their loop-IR names, identities and fill values."""

from __future__ import annotations

import math

from ..frozen import frozen
from ..ir.nodes import BOOL, Const, Type


@frozen
class Semiring:
    """Add and multiply by name (+ * min max and or); entries that are not stored hold the identity of add."""

    add: str = "+"
    multiply: str = "*"

    def add_on(self, kind: Type) -> str:
        return "or" if kind.name == "bool" and self.add == "+" else self.add

    def multiply_on(self, kind: Type) -> str:
        return "and" if kind.name == "bool" and self.multiply == "*" else self.multiply

    def overflows(self, kind: Type) -> bool:
        """Whether the multiply of integers wraps around on the fill value, an end of their range that stands for infinity."""
        if kind.is_float or kind == BOOL or self.multiply not in ("+", "*"):
            return False
        return self.add == "min" or (self.add == "max" and kind.name.startswith("i"))

    def zero(self, kind: Type) -> Const:
        """Return the identity of add as a constant of a type: what entries that are not stored hold."""
        return Const(identity(self.add_on(kind), kind), kind)


def identity(operator: str, kind: Type) -> int | float | bool:
    """Return the identity of an operator on a type; for integers, min and max have the ends of the range."""
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
