"""How many positions the levels of a stored tensor have."""

from __future__ import annotations

from .tensor import Tensor


def stored_prefixes(operand: Tensor) -> tuple[float, ...]:
    """Return how many positions each level of an operand has, outermost first."""
    counts, parents = [], 1
    for kind, level, mode in zip(operand.format.levels, operand.levels, operand.format.order, strict=True):
        parents = kind.positions(level.parts, parents, operand.shape[mode])
        counts.append(float(parents))
    return tuple(counts)
