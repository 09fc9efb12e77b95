"""The distribution of an expression: its one sparse operand, and the grid dimensions that distribute all other tensors."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from ...compiler.concrete.check import check_assignment, tensor_names
from ...compiler.concrete.given import checked_operands
from ...compiler.errors import DataError, ExpressionError
from ...compiler.frozen import frozen
from ...compiler.notation.nodes import Access, Add, Assignment, Div, Expr, Literal, Mul, Neg, accesses
from ...compiler.notation.parser import parse
from ...compiler.notation.terms import distributed
from ...compiler.storage.construct import borrowed
from ...compiler.storage.tensor import Tensor
from .grid import grid_shapes
from .layout import Layout


@frozen
class Contraction:
    """An expression that is linear in one sparse operand.

    Attributes:
        assignment: the parsed expression.
        sparse: the access of its sparse operand.
    """

    assignment: Assignment
    sparse: Access

    @cached_property
    def dim_of(self) -> dict[str, int]:
        """By index, the dimension of the grid that distributes it: the first mode of the sparse operand that has it."""
        found: dict[str, int] = {}
        for mode, subscript in enumerate(self.sparse.subscripts):
            found.setdefault(subscript.index, mode)
        return found

    @property
    def repeated(self) -> tuple[int, ...]:
        """Modes of the sparse operand whose index an earlier mode has: the grid does not distribute them a second time."""
        return tuple(mode for mode, subscript in enumerate(self.sparse.subscripts) if self.dim_of[subscript.index] != mode)

    @property
    def order(self) -> int:
        """How many modes the sparse operand has, which is also how many dimensions grids have."""
        return len(self.sparse.subscripts)

    @property
    def dense(self) -> tuple[Access, ...]:
        """One access of every other operand, in written order, what ``+=`` starts from left out."""
        found = {access.tensor: access for access in accesses(self.assignment.value) if access.tensor != self.sparse.tensor}
        return tuple(found.values())

    def dims(self, access: Access) -> tuple[int | None, ...]:
        """Return, mode by mode of an access, the dimension of the grid that distributes it; each dimension once."""
        taken: set[int] = set()
        found: list[int | None] = []
        for subscript in access.subscripts:
            dim = self.dim_of.get(subscript.index)
            found.append(None if dim in taken else dim)
            taken |= set() if dim is None else {dim}
        return tuple(found)

    def layout(self, access: Access, shape: tuple[int, ...], grid: tuple[int, ...]) -> Layout:
        """Return how a dense tensor is distributed where it is accessed so."""
        return Layout(shape, grid, self.dims(access))

    def grids(self, ranks: int) -> list[tuple[int, ...]]:
        """Return the grids that the expression can be computed on."""
        return [grid for grid in grid_shapes(ranks, self.order) if all(grid[mode] == 1 for mode in self.repeated)]

    def stays_in_place(self, grid: tuple[int, ...]) -> bool:
        """Whether entries of a sparse result are made by one rank alone: every index that the grid distributes is on the left."""
        left = set(self.assignment.target.indices)
        return all(grid[dim] == 1 or index in left for index, dim in self.dim_of.items())

    @property
    def keeps_modes(self) -> bool:
        """Whether a sparse result has the modes of the sparse operand in their order, so that it is distributed as that is."""
        dims = [self.dim_of[index] for index in self.assignment.target.indices if index in self.dim_of]
        return dims == list(range(self.order))


def contraction_of(expression: str, operands: Mapping[str, Any]) -> Contraction:
    """Return the contraction of an expression on some operands.

    Args:
        expression: index notation.
        operands: by name; those with ``is_sparse`` True, and arrays of other libraries that store coordinates, are the sparse ones.

    Raises:
        ExpressionError: it has none or several sparse operands, or is not linear in the one that it has.
    """
    assignment = parse(expression)
    check_assignment(assignment)
    names = tensor_names(assignment)
    checked_operands(assignment.text, names, operands)
    sparse = [name for name in names if is_sparse(name, operands[name])]
    if len(sparse) > 1:
        raise ExpressionError(f"'{assignment.text}' has {len(sparse)} sparse operands, {', '.join(sparse)}: over ranks it may have one")
    reads = list(dict.fromkeys(access for access in accesses(assignment.value) if access.tensor in sparse))
    if not reads:
        raise ExpressionError(f"'{assignment.text}' has no sparse operand to distribute: one operand has to be sparse")
    if len(reads) > 1:
        raise ExpressionError(f"{sparse[0]} is read with several subscripts in '{assignment.text}': over ranks it is read with one")
    for addend in distributed(assignment.value):
        _check_linear(addend, sparse[0], assignment)
    return Contraction(assignment, reads[0])


def is_sparse(name: str, data: Any) -> bool:
    """Whether an operand stores coordinates. Raises ``DataError`` for what is no operand."""
    found = getattr(data, "is_sparse", None)
    if isinstance(found, bool):
        return found
    if isinstance(data, (np.ndarray, int, float, np.generic)):
        return False
    return not as_tensor(name, data).format.is_dense


def as_tensor(name: str, data: Any) -> Tensor:
    """Return an operand as a tensor. Raises ``DataError`` if it is none."""
    try:
        return data if isinstance(data, Tensor) else borrowed(data)
    except DataError as error:
        raise DataError(f"operand '{name}': {error}") from None


def _check_linear(addend: Expr, sparse: str, assignment: Assignment) -> None:
    """Refuse an expression that is not linear in the sparse operand: its value must be the sum of its values on parts of the operand."""
    if not _has(addend, sparse):
        raise ExpressionError(f"an addend of '{assignment.text}' lacks the sparse operand {sparse}: add it to the result, or use +=")
    if not _multiplied(addend, sparse):
        raise ExpressionError(f"'{assignment.text}' is no product with {sparse}: over ranks the sparse operand stands in products alone")


def _has(value: Expr, sparse: str) -> bool:
    return any(access.tensor == sparse for access in accesses(value))


def _multiplied(value: Expr, sparse: str) -> bool:
    """Whether a value is zero wherever the sparse operand is: it is a factor."""
    match value:
        case Access(tensor):
            return tensor == sparse
        case Mul(operands):
            return any(_multiplied(operand, sparse) for operand in operands) and all(map(_plain, operands))
        case Add(operands):
            return all(_multiplied(operand, sparse) for operand in operands)
        case Neg(operand):
            return _multiplied(operand, sparse)
        case Div(numerator, denominator):
            return _multiplied(numerator, sparse) and not _has(denominator, sparse) and _plain(denominator)
        case _:
            return False


def _plain(value: Expr) -> bool:
    """Whether a value is made of products, sums and quotients alone."""
    return isinstance(value, (Literal, Access)) or (isinstance(value, (Add, Mul, Neg, Div)) and all(map(_plain, value.children)))
