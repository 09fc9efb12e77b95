"""PyData ``sparse``: any product, through its einsum."""

from __future__ import annotations

import math
import string
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from ...compiler.notation.nodes import Access, Mul
from ..extents import all_indices, reads
from ..problem import Problem

MOST_POINTS = 5e7
"""Most points of a kernel: its einsum broadcasts the sparse operand over all dense indices before it sums, which takes about 1.5
microseconds a point."""


class PydataPeer:
    """``sparse.einsum``, for kernels of at most ``MOST_POINTS`` points (``_points``); with more it takes too long to be timed."""

    name = "sparse"

    def __init__(self, most_points: float = MOST_POINTS) -> None:
        self._most_points = most_points

    def version(self) -> str | None:
        if find_spec("sparse") is None:
            return None
        return str(import_module("sparse").__version__)

    def prepare(self, problem: Problem) -> Callable[[], Any] | None:
        value, target = problem.assignment.value, problem.assignment.target
        factors = value.operands if isinstance(value, Mul) else (value,)
        is_product = problem.assignment.operator == "=" and all(isinstance(factor, Access) for factor in factors)
        if problem.is_compound or not is_product or _points(problem) > self._most_points:
            return None
        sparse = import_module("sparse")
        letters = dict(zip(all_indices(problem.assignment), string.ascii_lowercase, strict=False))
        accesses = [factor for factor in factors if isinstance(factor, Access)]
        subscripts = ",".join("".join(letters[index] for index in access.indices) for access in accesses)
        subscripts += "->" + "".join(letters[index] for index in target.indices)
        operands = []
        for access in accesses:
            operand = problem.operands[access.tensor]
            if operand.format.is_dense:
                operands.append(operand.to_numpy())
            else:
                coordinates, values = operand.to_coordinates()
                operands.append(sparse.COO(coordinates, values, shape=operand.shape, sorted=True, has_duplicates=False))
        return lambda: sparse.einsum(subscripts, *operands)


def _points(problem: Problem) -> float:
    """Return how many values the largest sparse operand would have, broadcast over the indices that it lacks."""
    sizes = [math.inf]
    for access in reads(problem.assignment):
        operand = problem.operands[access.tensor]
        if not operand.format.is_dense:
            lacked = (extent for index, extent in problem.extents.items() if index not in access.indices)
            sizes.append(len(operand.values) * math.prod(lacked))
    return min(sizes)
