"""Recognising the correlation of a tensor with a filter, which image libraries compute."""

from __future__ import annotations

from dataclasses import dataclass

from ...compiler.notation.nodes import Access, Mul
from ...compiler.storage.tensor import Tensor
from ..problem import Problem


@dataclass(frozen=True)
class Correlation:
    """``y(i,j) = data(i+p,j+q) * weights(p,q)`` where all reads stay inside of the data, in any number of modes."""

    data: Tensor
    weights: Tensor


def correlation(problem: Problem) -> Correlation | None:
    """Return the problem as a correlation of a tensor with a filter of equally many modes; None if it is something else."""
    value, target = problem.written.value, problem.written.target
    if not isinstance(value, Mul) or len(value.operands) != 2 or not target.is_plain or problem.semiring != ("+", "*"):
        return None
    for data, weights in (value.operands, value.operands[::-1]):
        if not isinstance(data, Access) or not isinstance(weights, Access) or not weights.is_plain or data.is_plain:
            continue
        pairs = list(zip(target.indices, weights.indices, strict=False))
        parts = zip(data.subscripts, pairs, strict=False)
        moved = [part.constant == 0 and dict(part.terms) == dict.fromkeys(pair, 1) for part, pair in parts]
        stored, small = problem.operands[data.tensor], problem.operands[weights.tensor]
        inside = [stored.shape[mode] - small.shape[mode] + 1 for mode in range(len(pairs))] if len(moved) == stored.order else []
        whole = len(pairs) == stored.order == small.order == len(target.indices) and all(moved)
        if whole and problem.assignment.operator == "=" and [problem.extents[index] for index in target.indices] == inside:
            return Correlation(stored, small)
    return None
