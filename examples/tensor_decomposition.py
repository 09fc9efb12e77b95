"""CP decomposition by alternating least squares, of tensors of order 3 and 4: a sum of products of vectors that is near a sparse tensor.

    python examples/tensor_decomposition.py [TENSOR]

TENSOR is a file or a name of ``tune-kernel data list``.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import sparsetune as st
from beside import beside
from numpy.typing import NDArray
from sparsetune.datasets import load

RANK, SWEEPS = 8, 3
MODES = "ijkl"


def start(tensor: st.Tensor) -> list[NDArray[Any]]:
    """Return random factors, the same in every run."""
    random = np.random.default_rng(0)
    return [random.random((extent, RANK)) for extent in tensor.shape]


def solved(factors: list[NDArray[Any]], mode: int, product: NDArray[Any]) -> NDArray[Any]:
    """Return the factor of one mode that fits best while the others are fixed."""
    gram = np.ones((RANK, RANK))
    for other, factor in enumerate(factors):
        gram = gram * (factor.T @ factor) if other != mode else gram
    return np.linalg.solve(gram, product.T).T


def with_sparsetune(tensor: st.Tensor) -> NDArray[Any]:
    """Contract with a kernel for each mode, bound once: it sees the factors as they change."""
    factors, order = start(tensor), tensor.order
    access = "T(" + ",".join(MODES[:order]) + ")"
    steps = []
    for mode in range(order):
        names = {f"F{other}": factors[other] for other in range(order) if other != mode}
        product = " * ".join([access, *(f"F{other}({MODES[other]},r)" for other in range(order) if other != mode)])
        kernel = st.compile(f"P({MODES[mode]},r) = {product}", {"T": tensor.format}, schedule="auto")
        steps.append(kernel.bind(T=tensor, **names))
    for _ in range(SWEEPS):
        for mode, step in enumerate(steps):
            factors[mode][:] = solved(factors, mode, step())
    return np.concatenate(factors)


def with_numpy(tensor: st.Tensor) -> NDArray[Any]:
    """Multiply rows of factors for every entry, and add them to the rows of the result."""
    factors = start(tensor)
    coordinates, values = tensor.to_coordinates()
    for _ in range(SWEEPS):
        for mode in range(tensor.order):
            rows = np.repeat(values[:, None], RANK, axis=1)
            for other, factor in enumerate(factors):
                rows = rows * factor[coordinates[other]] if other != mode else rows
            product = np.zeros_like(factors[mode])
            np.add.at(product, coordinates[mode], rows)
            factors[mode] = solved(factors, mode, product)
    return np.concatenate(factors)


def main(name: str = "random:uniform:300x250x200:nnz=2e5") -> None:
    beside({"sparsetune": with_sparsetune, "NumPy": with_numpy}, load(name))


if __name__ == "__main__":
    main(*sys.argv[1:])
