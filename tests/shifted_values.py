"""Operands of compound subscripts, and what they compute."""

from __future__ import annotations

from typing import Any

import numpy as np
import sparsetune as st
from numpy.typing import NDArray

KINDS = ("d", "s", "n", "h", "b", "p")

B = np.array([0.0, 3, 0, 0, 5, 1, 0, 2])


def value(expression: str, output_format: Any = None, shape: Any = None, boundary: Any = None, **operands: Any) -> Any:
    found = st.evaluate(expression, operands, output_format, "default", shape, boundary=boundary)
    return found.to_numpy() if isinstance(found, st.Tensor) else found


def shifted(array: NDArray[Any], by: int) -> NDArray[Any]:
    """Return array[i + by], 0 outside."""
    places = np.arange(len(array)) + by
    return np.where((places >= 0) & (places < len(array)), array[np.clip(places, 0, len(array) - 1)], 0)


MATRIX = np.random.default_rng(7).integers(1, 5, (7, 8)) * (np.random.default_rng(8).random((7, 8)) < 0.4)

IMAGE = "Y(i,j) = A(i+p,j+q) * F(p,q)"
