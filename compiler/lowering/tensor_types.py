"""How a tensor of the statement is stored: its format, the type of its values, the widths of its index arrays."""

from __future__ import annotations

from ..format import Format
from ..frozen import frozen
from ..ir.nodes import Type
from ..notation.value_types import TYPES


@frozen
class TensorType:
    """How a tensor of the statement is stored: format, numpy dtype name, bits of the index arrays of each level."""

    format: Format
    dtype: str
    widths: tuple[int, ...]


def loop_type(dtype: str) -> Type:
    """Return the loop-IR type of a numpy dtype name."""
    return Type(TYPES[dtype])
