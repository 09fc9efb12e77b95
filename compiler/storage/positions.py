"""Extents of the levels of a stored tensor, and how many positions they have. Anything with the parts of a tensor will do."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .tensor import Tensor


def level_extent(tensor: Tensor, level: int) -> int:
    """Return the extent of the mode that a level stores."""
    return tensor.shape[tensor.format.order[level]]


def stored_prefixes(operand: Tensor) -> tuple[float, ...]:
    """Return how many positions each level of an operand has, outermost first."""
    counts, parents = [], 1
    for kind, level, mode in zip(operand.format.levels, operand.levels, operand.format.order, strict=True):
        parents = kind.positions(level.parts, parents, operand.shape[mode])
        counts.append(float(parents))
    return tuple(counts)
