"""The meaning of an expression on dense arrays, straight from the definition: what compiled kernels are checked against.

Every term is gathered over the full space of its indices and summed over those that are not on the left (DESIGN 4.5). Only for
small extents: time and memory are the product of the extents of a term.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...compiler.notation.functions import FUNCTIONS
from ...compiler.notation.inner_sums import Definition, resolved
from ...compiler.notation.nodes import Access, Add, Affine, Apply, Assignment, Div, Expr, Literal, Mul, Neg
from ...compiler.notation.terms import terms
from .patterns import Patterns, pattern_of


def evaluate_dense(
    assignment: Assignment, operands: Mapping[str, NDArray[Any]], extents: Mapping[str, int], stored: Patterns | None = None
) -> NDArray[Any]:
    """Return the result as an ndarray with one axis for every index on the left.

    Args:
        assignment: a checked assignment; ``+=`` starts from the operand of the result's name.
        operands: dense arrays by name.
        extents: extent of every index.
        stored: where each operand stores something, for a sparse result, in which functions act on stored entries alone; None: on all.
    """
    left, names = assignment.target.indices, count()
    value = resolved(assignment.value, left, lambda wish: f"{wish} {next(names)}")  # a name that no tensor has
    space = _Space(extents, operands, stored).with_temporaries(value.definitions)
    assignment = Assignment(assignment.target, assignment.operator, value.value)
    return _summed(assignment, space)


def _summed(assignment: Assignment, space: _Space) -> NDArray[Any]:
    left, operands, extents = assignment.target.indices, space.operands, space.extents
    shape = tuple(extents[index] for index in left)
    kind = np.result_type(*operands.values()) if operands else np.dtype(np.float64)
    start = operands[assignment.target.tensor] if assignment.operator == "+=" else np.zeros(shape, kind)
    total = np.array(start)
    for term in terms(assignment.value, frozenset(left)):
        axes = (*left, *term.reduced)
        value = np.asarray(_value(term.value, axes, space))
        full = np.broadcast_to(value, tuple(extents[index] for index in axes))
        total = total + full.sum(axis=tuple(range(len(left), len(axes))), dtype=np.result_type(full, total))
    return total


@dataclass(frozen=True)
class _Space:
    """What expressions are evaluated on: extents, arrays, and the stored pattern of each array where patterns matter."""

    extents: Mapping[str, int]
    operands: Mapping[str, NDArray[Any]]
    stored: Patterns | None

    def with_temporaries(self, definitions: tuple[Definition, ...]) -> _Space:
        """Return the space with the sums inside functions, each an array over the indices that it keeps."""
        operands, stored = dict(self.operands), None if self.stored is None else dict(self.stored)
        for each in definitions:
            inner = self.with_temporaries(each.inner)
            operands[each.target.tensor] = _summed(Assignment(each.target, "=", each.value), inner)
            if stored is not None:
                stored[each.target.tensor] = inner.pattern(each)
        return _Space(self.extents, operands, stored)

    def pattern(self, definition: Definition) -> NDArray[np.bool_]:
        """Return where a temporary gets an entry."""
        left = definition.target.indices
        found = np.zeros(tuple(self.extents[index] for index in left), np.bool_)
        for term in terms(definition.value, frozenset(left)):
            axes = (*left, *term.reduced)
            full = np.broadcast_to(pattern_of(term.value, self.reader(axes)), tuple(self.extents[index] for index in axes))
            found |= full.any(axis=tuple(range(len(left), len(axes))))
        return found

    def reader(self, axes: tuple[str, ...]) -> Callable[[Access], Any]:
        """Return a function that gives the pattern of an access over the space of some axes."""
        stored = self.stored
        assert stored is not None
        return lambda access: stored[access.tensor][tuple(coordinates(subscript, axes, self.extents) for subscript in access.subscripts)]


def absolute(assignment: Assignment) -> Assignment:
    """Return the assignment whose value on absolute operands bounds what rounding can do to the given one: no differences."""
    return Assignment(assignment.target, assignment.operator, _absolute(assignment.value))


def _absolute(expr: Expr) -> Expr:
    match expr:
        case Neg(operand):
            return _absolute(operand)
        case Literal(value):
            return Literal(abs(value))
        case _:
            return expr.rebuild(tuple(_absolute(child) for child in expr.children)) if expr.children else expr


def _value(expr: Expr, axes: tuple[str, ...], space: _Space) -> Any:
    def below(child: Expr) -> Any:
        return _value(child, axes, space)

    match expr:
        case Literal(value):
            return value
        case Access(tensor, subscripts):
            return space.operands[tensor][tuple(coordinates(subscript, axes, space.extents) for subscript in subscripts)]
        case Neg(operand):
            return -below(operand)
        case Add(parts):
            total = below(parts[0])
            for part in parts[1:]:
                total = total + below(part)
            return total
        case Mul(parts):
            product = below(parts[0])
            for part in parts[1:]:
                product = product * below(part)
            return product
        case Apply(function, arguments):
            with np.errstate(all="ignore"):
                found = FUNCTIONS[function].meaning(*map(below, arguments))
            return found if space.stored is None else np.where(pattern_of(expr, space.reader(axes)), found, 0)
        case Div(numerator, denominator):
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.true_divide(below(numerator), below(denominator))
        case _:
            raise TypeError(f"no meaning of {type(expr).__name__}")


def coordinates(subscript: Affine, axes: tuple[str, ...], extents: Mapping[str, int]) -> NDArray[np.int64]:
    """Return the coordinates that a subscript takes over the space of the axes, broadcastable to it."""
    total = np.full((1,) * len(axes), subscript.constant, np.int64)
    for index, coefficient in subscript.terms:
        place = axes.index(index)
        total = total + coefficient * np.arange(extents[index]).reshape((-1,) + (1,) * (len(axes) - 1 - place))
    return total


