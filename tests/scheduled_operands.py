"""Operands and expressions of scheduled kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

SPMV = "y(i) = A(i,j) * x(j)"

SPMM = "Y(i,k) = A(i,j) * X(j,k)"

SPGEMM = "C(i,j) = A(i,k) * B(k,j)"

SDDMM = "S(i,j) = A(i,j) * U(i,k) * V(j,k)"

MTTKRP = "A(i,r) = B(i,j,k) * C(j,r) * D(k,r)"

TTV = "A(i,j) = B(i,j,k) * c(k)"

TTM = "A(i,j,r) = B(i,j,k) * D(k,r)"

TTMC = "A(i,r,s) = B(i,j,k) * C(j,r) * D(k,s)"


def sparse(*shape: int, seed: int = 0, density: float = 0.12) -> NDArray[np.float64]:
    """Return a dense array with few nonzeros, an empty first and last slice and a full second one."""
    rng = np.random.default_rng(seed)
    array = rng.random(shape) * (rng.random(shape) < density)
    array[0] = array[-1] = 0
    array[1] = rng.random(shape[1:])
    return array


def dense(*shape: int, seed: int = 1) -> NDArray[np.float64]:
    return np.random.default_rng(seed).standard_normal(shape)


T = sparse(20, 13, 25, seed=3)

OPERANDS: dict[str, tuple[dict[str, Any], NDArray[np.float64]]] = {}
