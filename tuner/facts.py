"""What the static model asks of an operand, of what does not need the values: each a step of recordings (``recording``)."""

from __future__ import annotations

from typing import Any

from ..compiler.storage.positions import stored_prefixes
from .steps import Asked, asks


@asks
def extent(operand: Any, mode: int) -> int:
    """Return the extent of a mode."""
    return operand.shape[mode]


@asks
def size(operand: Any) -> int:
    """Return the bytes of all arrays of an operand."""
    return operand.nbytes


@asks
def entries(operand: Any) -> int:
    """Return how many values an operand stores."""
    return len(operand.values)


@asks
def segments(operand: Any, level: int) -> int:
    """Return how many segments a level has that stores where they begin, or 0."""
    pos = operand.levels[level].pos
    return 0 if pos is None else len(pos) - 1


@asks
def position_count(operand: Any, level: int) -> float:
    """Return how many positions a level has."""
    return stored_prefixes(operand)[level]


def shape(operand: Any) -> tuple[int, ...]:
    """Return the extents of an operand."""
    return tuple(extent(operand, mode) for mode in range(operand.order))


def positions(operand: Any) -> tuple[float, ...]:
    """Return how many positions each level of an operand has, outermost first."""
    if isinstance(operand, Asked):
        return tuple(position_count(operand, level) for level in range(len(operand.format.levels)))
    return stored_prefixes(operand)
