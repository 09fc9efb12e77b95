"""The operations of ``concrete.arithmetic`` as expressions of the loop IR."""

from __future__ import annotations

from ..frozen import frozen
from ..ir.arithmetic import add, ceiling_quotient, compare, integer, maximum, minimum, multiply, quotient, remainder, subtract
from ..ir.nodes import I64, Select, Value


@frozen
class LoopOperations:
    """``concrete.arithmetic.Operations`` that build expressions."""

    constant = staticmethod(integer)
    add = staticmethod(add)
    sub = staticmethod(subtract)
    mul = staticmethod(multiply)
    floordiv = staticmethod(quotient)
    ceildiv = staticmethod(ceiling_quotient)
    mod = staticmethod(remainder)
    minimum = staticmethod(minimum)
    maximum = staticmethod(maximum)

    def select_le(self, left: Value, right: Value, then: Value, otherwise: Value, /) -> Value:
        """Return a value that is ``then`` where ``left <= right``, else ``otherwise``."""
        return Select(compare("<=", left, right), then, otherwise, I64)
