"""The meaning of an expression in a semiring on dense arrays, from the definition (DESIGN 4.5): entries that are not stored are skipped.

Each value comes with a flag, whether anything is stored there: a sum is stored where one part is, a product where all are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...compiler.ir.nodes import Type
from ...compiler.lowering.semiring import Semiring, identity
from ...compiler.notation.nodes import Access, Add, Assignment, Expr, Literal, Mul, Neg
from ...compiler.notation.terms import terms
from .oracle import coordinates
from .patterns import Patterns

Masked: TypeAlias = tuple[NDArray[Any], NDArray[np.bool_]]
"""Values, and where they are stored."""

_OPERATORS = {"+": np.add, "*": np.multiply, "min": np.minimum, "max": np.maximum, "or": np.logical_or, "and": np.logical_and}


def evaluate_semiring(
    assignment: Assignment,
    operands: Mapping[str, NDArray[Any]],
    extents: Mapping[str, int],
    stored: Patterns,
    semiring: tuple[str, str],
) -> NDArray[Any]:
    """Return the result as an ndarray with one axis for every index on the left, the identity of the sum where nothing is stored.

    Args:
        assignment: a checked assignment without quotients; ``+=`` starts from the operand of the result's name.
        operands: dense arrays by name.
        extents: extent of every index.
        stored: where each operand stores something.
        semiring: (add, multiply).
    """
    left = assignment.target.indices
    kind = np.result_type(*operands.values())
    over = _Over(operands, extents, stored, Semiring(*semiring), kind)
    parts = [over.term(one.value, left, one.reduced) for one in terms(assignment.value, frozenset(left))]
    if assignment.operator == "+=":
        name = assignment.target.tensor
        parts.insert(0, (operands[name].astype(kind), stored[name]))
    values, there = reduce(over.sum, parts)
    return np.where(there, values, over.zero).astype(kind)


@dataclass(frozen=True)
class _Over:
    """What expressions are evaluated on: extents, arrays, their stored patterns, and the semiring."""

    operands: Mapping[str, NDArray[Any]]
    extents: Mapping[str, int]
    stored: Patterns
    semiring: Semiring
    kind: np.dtype[Any]

    @property
    def type(self) -> Type:
        if self.kind == np.bool_:
            return Type("bool")
        return Type(f"{self.kind.kind}{8 * self.kind.itemsize}")

    @property
    def zero(self) -> Any:
        return self.kind.type(identity(self.semiring.add_on(self.type), self.type))

    def term(self, value: Expr, left: tuple[str, ...], reduced: tuple[str, ...]) -> Masked:
        """Return a term summed over its reduced indices."""
        axes, count = (*left, *reduced), len(left)
        shape = tuple(self.extents[index] for index in axes)
        found, there = (np.broadcast_to(array, shape) for array in self.value(value, axes))
        if not reduced:
            return found, there
        summed, inner = np.where(there, found, self.zero).astype(self.kind), tuple(range(count, len(axes)))
        add = _OPERATORS[self.semiring.add_on(self.type)]
        return add.reduce(summed, axis=inner, initial=self.zero).astype(self.kind), np.asarray(there.any(axis=inner))

    def value(self, expr: Expr, axes: tuple[str, ...]) -> Masked:
        match expr:
            case Literal(value):
                return np.asarray(value, self.kind), np.asarray(True)
            case Access(tensor, subscripts):
                places = tuple(coordinates(subscript, axes, self.extents) for subscript in subscripts)
                return self.operands[tensor][places].astype(self.kind), self.stored[tensor][places]
            case Neg(operand):
                value, there = self.value(operand, axes)
                return np.negative(value), there
            case Add(parts):
                return reduce(self.sum, [self.value(part, axes) for part in parts])
            case Mul(parts):
                return reduce(self.product, [self.value(part, axes) for part in parts])
        raise TypeError(f"no meaning of {type(expr).__name__} in a semiring")

    def sum(self, left: Masked, right: Masked) -> Masked:
        (one, there), (other, also) = left, right
        both = _OPERATORS[self.semiring.add_on(self.type)](one, other).astype(self.kind)
        return np.where(there & also, both, np.where(there, one, other)), there | also

    def product(self, left: Masked, right: Masked) -> Masked:
        """Multiply; the fill value of integers stands for infinity, which stays so."""
        (one, there), (other, also) = left, right
        with np.errstate(invalid="ignore", over="ignore"):
            whole = _OPERATORS[self.semiring.multiply_on(self.type)](one, other).astype(self.kind)
        if self.semiring.overflows(self.type):
            whole = np.where((one == self.zero) | (other == self.zero), self.zero, whole)
        return whole, np.asarray(there & also)
