"""What a case must give, from the definition (DESIGN 4.5), on dense arrays.

Products are distributed over sums; each term is evaluated over its whole index space and reduced over the indices that are
not on the left. Beside every value stands whether anything is stored there: a sum is stored where one part is, a product
where all are; what is not stored takes no part in the arithmetic. A quotient divides as IEEE says, what is not stored being
zero; it is stored where its numerator is, and where its denominator is not (0 / 0). Dense results of terms without a
reduction are looked at over the full index space, so that 0 / 0 shows where a stored denominator is 0 too; a constant one is
not 0, and its quotient has the pattern of the numerator.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .cases import Case, fill_of
from .expressions import Constant, Leaf, Minus, Product, Quotient, Sum, Tree, leaves

Array = NDArray[Any]
UFUNCS = {"+": np.add, "*": np.multiply, "min": np.minimum, "max": np.maximum, "or": np.logical_or, "and": np.logical_and}


def distribute(tree: Tree) -> list[Tree]:
    """Return the terms whose sum an expression is; denominators stay whole."""
    match tree:
        case Leaf() | Constant():
            return [tree]
        case Minus(operand):
            return [Minus(term) for term in distribute(operand)]
        case Sum(left, right, negative):
            return distribute(left) + distribute(Minus(right) if negative else right)
        case Product(left, right):
            return [Product(first, second) for first, second in product(distribute(left), distribute(right))]
        case Quotient(left, right):
            return [Quotient(term, right) for term in distribute(left)]


def indices(tree: Tree) -> tuple[str, ...]:
    return tuple(dict.fromkeys(index for leaf in leaves(tree) for index in leaf.indices))


@dataclass(frozen=True)
class Expected:
    """The result, densely.

    Attributes:
        values: what every component must hold.
        error: how far a component may be off.
        present: where something must be stored.
    """

    values: Array
    error: Array
    present: NDArray[np.bool_]


Masked: TypeAlias = tuple[Array, Array]
"""Values, and where they are stored."""


@dataclass(frozen=True)
class Evaluation:
    """Evaluates the terms of one case.

    Attributes:
        case: the case.
        absolute: take absolute values throughout, to see how large rounding errors can be.
    """

    case: Case
    absolute: bool = False

    @cached_property
    def terms(self) -> list[Tree]:
        own = distribute(self.case.tree)
        return [self.case.target, *own] if self.case.accumulates else own

    @cached_property
    def operators(self) -> tuple[np.ufunc, np.ufunc]:
        add, multiply = self.case.semiring
        if self.case.dtype.kind == "b":
            add, multiply = {"+": "or"}.get(add, add), {"*": "and"}.get(multiply, multiply)
        return UFUNCS[add], UFUNCS[multiply]

    @cached_property
    def zero(self) -> Any:
        return fill_of(self.case.semiring, self.case.dtype)

    def whole(self) -> Masked:
        """Return the result and where it is stored."""
        values, present = np.full(self.case.shape, self.zero, self.case.dtype), np.zeros(self.case.shape, bool)
        for term in self.terms:
            more, there = self._reduced(term)
            values = np.where(present & there, self.operators[0](values, more), np.where(there, more, values))
            present = present | there
        return values.astype(self.case.dtype), present

    def length(self) -> int:
        """Return how many operations a component takes at most."""
        free = len(self.case.target.indices)
        return 1 + sum(
            math.prod(self._shape(self._space(term))[free:]) + 2 * len(list(leaves(term))) + 2 for term in self.terms
        )  # fmt: skip

    def _space(self, term: Tree) -> tuple[str, ...]:
        """Return the indices of the result, then those over which a term is summed."""
        free = self.case.target.indices
        return (*free, *(index for index in indices(term) if index not in free))

    def _shape(self, space: tuple[str, ...]) -> tuple[int, ...]:
        return tuple(self.case.extents[index] for index in space)

    def _reduced(self, term: Tree) -> Masked:
        space = self._space(term)
        axes = tuple(range(len(self.case.target.indices), len(space)))
        value, there = self._tree(term, space, complete=self.case.result_format.is_dense and not axes)
        value, there = np.broadcast_to(value, self._shape(space)), np.broadcast_to(there, self._shape(space))
        if not axes:
            return value, there
        filled = np.where(there, value, self.zero).astype(self.case.dtype)
        return self.operators[0].reduce(filled, axis=axes, dtype=self.case.dtype, initial=self.zero), np.asarray(there.any(axis=axes))

    def _tree(self, tree: Tree, space: tuple[str, ...], complete: bool) -> Masked:
        """Return an expression over an index space, without any summation."""
        match tree:
            case Constant(value):
                return np.asarray(value, self.case.dtype), np.asarray(True)
            case Leaf():
                return self._leaf(tree, space)
            case Minus(operand):
                value, there = self._tree(operand, space, complete)
                return (value if self.absolute else np.negative(value)), there
            case Sum(left, right, negative):
                value, there = self._tree(left, space, complete)
                more, also = self._tree(right, space, complete)
                more = np.negative(more) if negative and not self.absolute else more
                return np.where(there & also, self.operators[0](value, more), np.where(there, value, more)), there | also
            case Product(left, right):
                value, there = self._tree(left, space, complete)
                more, also = self._tree(right, space, complete)
                return self._product(value, more), there & also
            case Quotient(left, right):
                value, there = self._tree(left, space, complete)
                below, also = self._tree(right, space, complete)
                whole = np.divide(np.where(there, value, 0), np.where(also, below, 0))
                everywhere = complete and any(leaves(right))  # constants are not 0: where the numerator is, the quotient is
                return whole, np.asarray(np.broadcast_to(everywhere, whole.shape) | there | ~also)

    def _product(self, left: Array, right: Array) -> Array:
        """Multiply; the fill value of integers stands for infinity, which annihilates."""
        whole = self.operators[1](left, right)
        add, multiply = self.case.semiring
        kind = self.case.dtype.kind
        if multiply not in "+*" or not ((add == "min" and kind in "iu") or (add == "max" and kind == "i")):
            return whole
        return np.where((left == self.zero) | (right == self.zero), self.zero, whole)

    def _leaf(self, leaf: Leaf, space: tuple[str, ...]) -> Masked:
        operand = self.case.operands[leaf.tensor]
        values = operand.dense.astype(self.case.dtype)
        values = np.abs(values) if self.absolute else values
        return _aligned(values, leaf.indices, space), _aligned(operand.present, leaf.indices, space)


def _aligned(array: Array, indices: tuple[str, ...], space: tuple[str, ...]) -> Array:
    """Return diagonals taken and axes in the order of a space, with extents of 1 for the indices that the array does not have."""
    own = tuple(dict.fromkeys(indices))
    for index in own:
        while indices.count(index) > 1:
            first, last = indices.index(index), len(indices) - 1 - indices[::-1].index(index)
            array = np.diagonal(array, axis1=first, axis2=last)
            indices = (*(name for place, name in enumerate(indices) if place not in (first, last)), index)
    ordered = [index for index in space if index in own]
    moved = array.transpose([indices.index(index) for index in ordered])
    sizes = iter(moved.shape)
    return moved.reshape([next(sizes) if index in own else 1 for index in space])


def expected(case: Case) -> Expected:
    """Return what a case must give."""
    with np.errstate(all="ignore"):
        values, present = Evaluation(case).whole()
        error = np.zeros(case.shape)
        if case.dtype.kind == "f":
            bound = Evaluation(case, absolute=True)
            total = bound.whole()[0]
            error = 4 * np.finfo(case.dtype).eps * bound.length() * np.where(np.isfinite(total), total, 0)
    return Expected(values, error, present)
