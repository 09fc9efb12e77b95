"""Conjugate gradients for the heat on a plate: a five-point stencil as a sparse matrix.

    python examples/conjugate_gradients.py [SIDE]

The plate has SIDE x SIDE points and a source in its middle.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import scipy.sparse as sp
import sparsetune as st
from beside import beside
from numpy.typing import NDArray

STEPS = 60


def plate(side: int) -> tuple[sp.csr_array, NDArray[Any]]:
    """Return the matrix of the stencil (symmetric, positive definite) and the right side."""
    line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(side, side))
    matrix = sp.csr_array(sp.kron(line, sp.eye_array(side)) + sp.kron(sp.eye_array(side), line))
    source = np.zeros(side * side)
    source[side * (side // 2) + side // 2] = 1
    return matrix, source


def with_sparsetune(matrix: sp.csr_array, source: NDArray[Any]) -> NDArray[Any]:
    """Solve with kernels that are bound once, so that their operands are checked only here.

    Inner products are kernels too: those of NumPy use a BLAS whose threads spin after each product, on the cores that the next
    product with the matrix needs.
    """
    x, r, p = np.zeros_like(source), source.copy(), source.copy()
    product = st.compile("q(i) = A(i,j) * p(j)", {"A": "csr"}, schedule="auto").bind(A=matrix, p=p)
    q = product()
    bend = st.compile("s = p(i) * q(i)", schedule="auto").bind(p=p, q=q)
    length = st.compile("s = r(i) * r(i)", schedule="auto").bind(r=r)
    rest = length()
    for _ in range(STEPS):
        product()
        alpha = rest / bend()
        x += alpha * p
        r -= alpha * q
        rest, before = length(), rest
        p *= rest / before
        p += r
    return x


def with_scipy(matrix: sp.csr_array, source: NDArray[Any]) -> NDArray[Any]:
    """Solve with SciPy's product."""
    x, r, p = np.zeros_like(source), source.copy(), source.copy()
    rest = r @ r
    for _ in range(STEPS):
        q = matrix @ p
        alpha = rest / (p @ q)
        x += alpha * p
        r -= alpha * q
        rest, before = r @ r, rest
        p *= rest / before
        p += r
    return x


def main(side: str = "500") -> None:
    beside({"sparsetune": with_sparsetune, "SciPy": with_scipy}, *plate(int(side)))


if __name__ == "__main__":
    main(*sys.argv[1:])
