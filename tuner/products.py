"""How many operations the products of an assignment take: how often their factors are multiplied with one another."""

from __future__ import annotations

from collections.abc import Sequence

from ..compiler.concrete.nodes import Assign
from ..compiler.notation.nodes import Access, Expr, Mul, accesses, operation_count
from ..compiler.schedule.addresses import Address
from .loads import Loads


class Products(Loads):
    """The products of one program; see ``Iterations`` for its arguments."""

    def multiplied(self, leaf: Assign, address: Address, loops: Sequence[str], innermost: set[str], contiguous: bool) -> float:
        """Return the operations on values in an iteration of the innermost loop.

        Factors that it does not change are multiplied before, and with the whole of a sum in vectors (``passes.factors``). Rows that stay
        in registers are multiplied with one another as often as the last of them is loaded (``passes.held``): those that change seldom come
        first (``passes.still_first``).
        """
        if not isinstance(leaf.value, Mul):
            return max(1.0, float(operation_count(leaf.value)))
        moving = [factor for factor in leaf.value.operands if self.varies(factor, innermost)]
        is_summed = contiguous and not self.varies(leaf.target, innermost)
        still = [] if is_summed and len(moving) > 1 else [one for one in leaf.value.operands if one not in moving][:1]
        factors = [one for one in leaf.value.operands if one in moving or one in still]
        shares = sorted(
            self._loaded(one, leaf, address, loops) if contiguous and one in moving and isinstance(one, Access) else 1.0 for one in factors
        )
        return max(1.0, sum(shares[1:]))

    def begun(self, value: Expr, innermost: set[str], around: set[str], summed: bool) -> float:
        """Return the operations around each run of the innermost loop: the loop around it loads the dense factors that the innermost one
        does not change, and multiplies them with one another and with the product of the factors that neither loop changes. A sum is
        multiplied with that when it is done, and with stored values too; in other loops these belong to the iterations."""
        if not isinstance(value, Mul):
            return 0.0
        still = [factor for factor in value.operands if not self.varies(factor, innermost)]
        moving = [factor for factor in still if self.varies(factor, around)]
        read = (access for factor in moving for access in accesses(factor) if self.varies(access, around))
        loads = sum(summed or not self._is_stored(access) for access in read)
        return max(0.0, len(moving) - 1.0 + (len(moving) < len(still)) + (summed and bool(still))) + loads

    def varies(self, factor: Expr, innermost: set[str]) -> bool:
        """Whether an expression reads other values in another iteration of the innermost loop."""
        return any(innermost.intersection(self._graph.originals(index)) for access in accesses(factor) for index in access.indices)
