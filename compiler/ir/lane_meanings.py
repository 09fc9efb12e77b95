"""The functions over lanes of vectors (``intrinsics.OF_LANES``) on NumPy arrays, and how many operations each does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_COMBINES = {"sum": np.add, "product": np.multiply, "min": np.minimum, "max": np.maximum}


def of_lanes(function: str, given: Sequence[Any]) -> tuple[Any, int]:
    """Return the value of a function, and how many floating-point operations it takes."""
    if function == "keep_lanes":
        return _kept(given[0], given[1]), 0
    if function == "sums_of_lanes":
        return _sums(np.stack(given)), len(given) * (len(given[0]) - 1)
    name, _, what = function.partition("_")
    lanes, half = given[0], len(given[0]) // 2
    if what == "halves":
        return _COMBINES[name](lanes[:half], lanes[half:]), half
    total = _COMBINES[name].reduce(lanes)
    return total if total.dtype == np.float32 else total.item(), len(lanes) - 1


def _kept(lanes: NDArray[Any], kept: Any) -> NDArray[Any]:
    """Return a vector with 0 in all lanes except the first ones, or except those where another vector is positive."""
    present = np.arange(len(lanes)) < kept if np.ndim(kept) == 0 else kept > 0
    return np.where(present, lanes, lanes.dtype.type(0))


def _sums(rows: NDArray[Any]) -> NDArray[Any]:
    """Return the sum of each row: halves are added, then neighbours, as in generated code."""
    count = len(rows)
    while rows.shape[1] > count:
        half = rows.shape[1] // 2
        rows = rows[:, :half] + rows[:, half:]
    while rows.shape[1] > 1:
        rows = rows[:, ::2] + rows[:, 1::2]
    return rows[:, 0]
