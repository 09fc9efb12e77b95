"""Checks shapes that callers give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import ShapeError
from ..numpy_later import np
from ..shown import shown


def checked_shape(shape: Any) -> tuple[int, ...]:
    """Return a shape as a tuple of ints.

    Raises:
        ShapeError: it is not made of non-negative integers.
    """
    if type(shape) is tuple and all(type(extent) is int and 0 <= extent < 2**62 for extent in shape):
        return shape
    try:
        given: tuple[Any, ...] = tuple(shape) if isinstance(shape, (Sequence, np.ndarray)) and np.ndim(shape) else (shape,)
        extents = tuple(int(extent) for extent in given)
        whole = all(extent == wish for extent, wish in zip(extents, given, strict=True))
    except Exception:  # whatever a foreign object does
        raise ShapeError(f"a shape is a tuple of integers, not {shown(shape)}") from None
    if not whole or any(extent < 0 for extent in extents):
        raise ShapeError(f"extents of a shape are whole numbers from 0 on, not {shown(shape)}")
    if any(extent >= 2**62 for extent in extents):
        raise ShapeError(f"extents of a shape are below 2**62, not {shown(shape)}")
    return extents
