"""How a tensor of the statement is stored: its format, the type of its values, the widths of its index arrays."""

from __future__ import annotations

from ..format import Format
from ..frozen import frozen
from ..ir.nodes import Type
from ..notation.value_types import TYPES


@frozen
class TensorType:
    """How a tensor of the statement is stored.

    Attributes:
        format: the format.
        dtype: numpy dtype name of the values.
        widths: bits of the index arrays of each level.
        apart: whether the last level is dense, and its rows lie a number of items apart that is known when the kernel runs.
    """

    format: Format
    dtype: str
    widths: tuple[int, ...]
    apart: bool = False


def loop_type(dtype: str) -> Type:
    """Return the loop-IR type of a numpy dtype name."""
    return Type(TYPES[dtype])
