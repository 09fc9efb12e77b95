"""Expressions of the loop IR."""

from __future__ import annotations

from ...frozen import frozen
from ...kept import Kept
from .node import Leaf, Value
from .types import Type


@frozen
class Var(Leaf):
    """A scalar variable, or a vector of scalars in registers."""

    name: str
    type: Type

    @Kept
    def variables(self) -> frozenset[str]:  # type: ignore[override]  # other leaves have none
        """The name of the variable."""
        return frozenset((self.name,))


@frozen
class Const(Leaf):
    """A constant of the node's type; floats may be inf, -inf or nan."""

    value: int | float | bool
    type: Type


@frozen
class Binary(Value):
    """``left op right``: + - * / % min max and or == != < <= > >=; integer / truncates; comparisons are bool."""

    op: str
    left: Value
    right: Value
    type: Type


@frozen
class Unary(Value):
    """``-operand`` or ``not operand``."""

    op: str
    operand: Value
    type: Type


@frozen
class Load(Value):
    """``array[index]``. With a vector as index, elements are gathered from the places in its lanes.

    ``first`` says how many lanes of a vector are read. The other lanes are 0, and memory behind the last element read is not accessed.
    """

    array: str
    index: Value
    type: Type
    first: Value | None = None


@frozen
class Select(Value):
    """``then`` if the condition holds, else ``otherwise``."""

    condition: Value
    then: Value
    otherwise: Value
    type: Type


@frozen
class Cast(Value):
    """The operand converted to the node's type, as in C."""

    operand: Value
    type: Type


@frozen
class ArrayRef(Leaf):
    """A whole array (or map, or parts) as an argument of an intrinsic."""

    array: str
    type: Type


@frozen
class Call(Value):
    """The value of an intrinsic, which may also update its first argument: a search, a map look-up, the number of a share."""

    function: str
    arguments: tuple[Value, ...]
    type: Type
