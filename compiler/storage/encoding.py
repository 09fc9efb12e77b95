"""Converts all levels of a tensor between plain kinds and their other encodings, such as those with fewer bytes."""

from __future__ import annotations

from ..format import Format
from .positions import level_extent
from .symmetry import halved, whole
from .tensor import Tensor


def decoded(tensor: Tensor) -> Tensor:
    """Return the tensor with plain levels in place of encoded ones; the tensor itself if none is encoded."""
    if tensor.format.plain is tensor.format:
        return tensor
    if tensor.format.mirrors:
        tensor = whole(tensor)
    kinds = enumerate(tensor.format.levels)
    levels = tuple(kind.decoded(tensor.levels[level], level_extent(tensor, level)) for level, kind in kinds)
    return Tensor.made(tensor.shape, tensor.format.plain, levels, tensor.values, tensor.fill_value)


def encoded(tensor: Tensor, format: Format) -> Tensor:
    """Convert a tensor from ``format.plain`` to the format itself.

    Raises:
        FormatError: an encoding cannot hold its levels.
    """
    refusal = f"format '{format}' cannot hold these entries: level"
    if format.mirrors:
        tensor = halved(tensor, f"{refusal} 2")
    levels = tuple(
        kind.encoded(tensor.levels[level], level_extent(tensor, level), f"{refusal} {level + 1}")
        for level, kind in enumerate(format.levels)
    )
    return Tensor.made(tensor.shape, format, levels, tensor.values, tensor.fill_value)
