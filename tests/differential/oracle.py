"""What a case must give, from the definition (DESIGN 4.5), on dense arrays.

Products are distributed over sums; each term is a product of factors over quotients' denominators, evaluated over its whole
index space and reduced over the indices that are not on the left. Beside every value stands whether anything is stored
there: a sum is stored where one part is, a product where all are, a quotient where its numerator is. What is not stored takes
no part in the arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .cases import Case, fill_of
from .expressions import Constant, Leaf, Minus, Product, Quotient, Sum, Tree, leaves

Array = NDArray[Any]
UFUNCS = {"+": np.add, "*": np.multiply, "min": np.minimum, "max": np.maximum, "or": np.logical_or, "and": np.logical_and}


@dataclass(frozen=True)
class Term:
    """A signed product of accesses and constants, divided by whole expressions."""

    negative: bool = False
    factors: tuple[Leaf | Constant, ...] = ()
    below: tuple[Tree, ...] = ()

    @property
    def indices(self) -> tuple[str, ...]:
        parts = (*self.factors, *self.below)
        return tuple(dict.fromkeys(index for part in parts for leaf in leaves(part) for index in leaf.indices))


def distribute(tree: Tree) -> list[Term]:
    """Return the terms whose sum an expression is."""
    match tree:
        case Leaf() | Constant():
            return [Term(factors=(tree,))]
        case Minus(operand):
            return [Term(not term.negative, term.factors, term.below) for term in distribute(operand)]
        case Sum(left, right, negative):
            return distribute(left) + distribute(Minus(right) if negative else right)
        case Product(left, right):
            return [
                Term(first.negative != second.negative, first.factors + second.factors, first.below + second.below)
                for first, second in product(distribute(left), distribute(right))
            ]
        case Quotient(left, right):
            return [Term(term.negative, term.factors, (*term.below, right)) for term in distribute(left)]


@dataclass(frozen=True)
class Expected:
    """The result, densely.

    Attributes:
        values: what every component must hold.
        error: how far a component may be off.
        most, least: where something must be stored at most and at least; they differ where a conversion may leave out what only
            padding stored.
    """

    values: Array
    error: Array
    most: NDArray[np.bool_]
    least: NDArray[np.bool_]


@dataclass
class Evaluation:
    """Evaluates the terms of one case.

    Attributes:
        case: the case.
        converted: operands whose padding may be lost.
        padding: whether that padding counts as stored.
    """

    case: Case
    converted: frozenset[str] = frozenset()
    padding: bool = True
    terms: list[Term] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.terms = distribute(self.case.tree)
        if self.case.accumulates:
            self.terms.insert(0, Term(factors=(self.case.target,)))
        self.add, self.multiply = (UFUNCS[name] for name in self.operators)

    @property
    def operators(self) -> tuple[str, str]:
        add, multiply = self.case.semiring
        if self.case.dtype.kind == "b":
            return {"+": "or"}.get(add, add), {"*": "and"}.get(multiply, multiply)
        return add, multiply

    def whole(self) -> tuple[Array, NDArray[np.bool_]]:
        """Return values and where they are stored."""
        shape = self.case.shape
        values = np.full(shape, fill_of(self.case.semiring, self.case.dtype), self.case.dtype)
        present = np.zeros(shape, bool)
        for term in self.terms:
            more, there = self._reduced(term)
            values = np.where(present & there, self.add(values, more), np.where(there, more, values))
            present = present | there
        return values.astype(self.case.dtype), present

    def magnitude(self) -> tuple[Array, int]:
        """Return the sum of all absolute products that enter each component, and how many operations one takes at most."""
        total, length = np.zeros(self.case.shape), 1
        for term in self.terms:
            space = self._space(term)
            value, there = self._product(term, space, absolute=True)
            axes = tuple(range(len(self.case.target.indices), len(space)))
            extents = self._shape(space)
            total = total + np.where(there, np.abs(value), 0).sum(axis=axes)
            length += int(np.prod(extents[len(self.case.target.indices) :], dtype=np.int64)) + len(term.factors) + 2 * len(term.below)
        return total, length

    def _space(self, term: Term) -> tuple[str, ...]:
        """Return the indices of the result, then those over which the term is summed."""
        free = self.case.target.indices
        return (*free, *(index for index in term.indices if index not in free))

    def _shape(self, space: tuple[str, ...]) -> tuple[int, ...]:
        return tuple(self.case.extents[index] for index in space)

    def _reduced(self, term: Term) -> tuple[Array, NDArray[np.bool_]]:
        space = self._space(term)
        value, there = self._product(term, space)
        axes = tuple(range(len(self.case.target.indices), len(space)))
        if not axes:
            return value, there
        zero = fill_of(self.case.semiring, self.case.dtype)
        filled = np.where(there, value, zero).astype(self.case.dtype)
        return self.add.reduce(filled, axis=axes, dtype=self.case.dtype, initial=zero), there.any(axis=axes)

    def _product(self, term: Term, space: tuple[str, ...], absolute: bool = False) -> tuple[Array, NDArray[np.bool_]]:
        value, there = self._tree(term.factors[0], space, absolute)
        for factor in term.factors[1:]:
            more, also = self._tree(factor, space, absolute)
            value, there = self.multiply(value, more), there & also
        for below in term.below:
            value = np.divide(value, self._tree(below, space, absolute)[0])
        value = np.negative(value) if term.negative and not absolute else value
        shape = self._shape(space)
        return np.broadcast_to(value, shape), np.broadcast_to(there, shape)

    def _tree(self, tree: Tree, space: tuple[str, ...], absolute: bool) -> tuple[Array, NDArray[np.bool_]]:
        """Return an expression over an index space, without any summation."""
        match tree:
            case Constant(value):
                return np.asarray(value, self.case.dtype), np.asarray(True)
            case Leaf():
                return self._leaf(tree, space, absolute)
            case Minus(operand):
                value, there = self._tree(operand, space, absolute)
                return -value, there
            case Sum(left, right, negative):
                value, there = self._tree(left, space, absolute)
                more, also = self._tree(right, space, absolute)
                more = -more if negative else more
                return np.where(there & also, self.add(value, more), np.where(there, value, more)), there | also
            case Product(left, right):
                value, there = self._tree(left, space, absolute)
                more, also = self._tree(right, space, absolute)
                return self.multiply(value, more), there & also
            case Quotient(left, right):
                value, there = self._tree(left, space, absolute)
                return np.divide(value, self._tree(right, space, absolute)[0]), there

    def _leaf(self, leaf: Leaf, space: tuple[str, ...], absolute: bool) -> tuple[Array, NDArray[np.bool_]]:
        operand = self.case.operands[leaf.tensor]
        values = operand.dense.astype(self.case.dtype)
        values = np.abs(values.astype(float)) if absolute else values
        padding = self.padding or leaf.tensor not in self.converted
        return _aligned(values, leaf.indices, space), _aligned(operand.present(padding=padding), leaf.indices, space)


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


def expected(case: Case, converted: frozenset[str]) -> Expected:
    """Return what a case must give.

    Args:
        case: the case.
        converted: tensors that are converted on the way, and so may lose padding.
    """
    with np.errstate(all="ignore"):
        values, most = Evaluation(case).whole()
        least = Evaluation(case, converted, padding=False).whole()[1] if converted else most
        error = np.zeros(case.shape)
        if case.dtype.kind == "f":
            total, length = Evaluation(case).magnitude()
            error = 4 * np.finfo(case.dtype).eps * length * np.where(np.isfinite(total), total, 0)
    return Expected(values, error, most, least)
