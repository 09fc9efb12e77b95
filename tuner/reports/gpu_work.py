"""How much work an input is for a kernel, and how much of it is in one row or column."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...compiler.storage.tensor import Tensor


def products(data: Tensor) -> NDArray[np.int64]:
    """Return, for each row of the square of a matrix, how many products it adds up."""
    stored: Any = data.to_scipy()
    counts = np.diff(stored.indptr).astype(np.int64)[stored.indices]
    return np.diff(np.concatenate(([0], np.cumsum(counts)))[stored.indptr])


def lengths(data: Tensor, by_columns: bool) -> NDArray[np.int64]:
    """Return how many entries each row of a matrix has, or each column."""
    stored: Any = data.to_scipy()
    return np.bincount(stored.indices) if by_columns else np.diff(stored.indptr)
