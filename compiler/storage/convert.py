"""Conversion between any two formats: unpack, sort what is not in order, pack."""

from __future__ import annotations

from ..errors import FormatError
from ..format import Format
from .pack import pack
from .tensor import Tensor
from .unpack import unpack


def convert(tensor: Tensor, format: Format) -> Tensor:
    """Return the tensor in another format; itself where it is in that format already.

    Raises:
        FormatError: the format has another order, or cannot hold these entries.
    """
    if len(format) != tensor.order:
        raise FormatError(f"format '{format}' has {len(format)} levels, but the tensor has {tensor.order} modes")
    if format == tensor.format:
        return tensor
    return pack(unpack(tensor, drop_padding=True), format, tensor.fill_value)
