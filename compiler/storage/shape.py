"""Shapes as callers give them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ShapeError


def checked_shape(shape: Any) -> tuple[int, ...]:
    """Return a shape as a tuple of ints.

    Raises:
        ShapeError: it is not made of non-negative integers.
    """
    if type(shape) is tuple and all(type(extent) is int and 0 <= extent < 2**62 for extent in shape):
        return shape
    try:
        extents = tuple(int(extent) for extent in (shape if np.iterable(shape) else (shape,)))
        whole = all(extent == given for extent, given in zip(extents, shape if np.iterable(shape) else (shape,), strict=True))
    except (TypeError, ValueError, OverflowError):
        raise ShapeError(f"a shape is a tuple of integers, not {shape!r}") from None
    if not whole or any(extent < 0 for extent in extents):
        raise ShapeError(f"extents of a shape are whole numbers from 0 on, not {shape!r}")
    if any(extent >= 2**62 for extent in extents):
        raise ShapeError(f"extents of a shape are below 2**62, not {shape!r}")
    return extents
