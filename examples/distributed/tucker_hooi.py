"""Tucker decomposition by higher-order orthogonal iteration over MPI (Kolda and Bader, section 4.2); the kernel is TTMc.

    mpiexec -n 4 python examples/distributed/tucker_hooi.py [TENSOR] [--rank 4] [--iterations 10] [-o FACTORS.npz]
"""

from __future__ import annotations

from typing import Any

import numpy as np
import sparsetune as st
from iterations import Log, arguments, random_factors, write
from numpy.typing import NDArray

NAMES, RANKS = "ijklm", "rstuv"


def ttmc(order: int, mode: int) -> str:
    """Return the expression that multiplies by all factors but one, such as ``Y(i,s,t) = T(i,j,k) * F1(j,s) * F2(k,t)``."""
    others = [other for other in range(order) if other != mode]
    factors = "".join(f" * F{other}({NAMES[other]},{RANKS[other]})" for other in others)
    return f"Y({','.join([NAMES[mode], *(RANKS[other] for other in others)])}) = T({','.join(NAMES[:order])}){factors}"


def leading_vectors(matrix: NDArray[Any], count: int) -> NDArray[Any]:
    """Return the left singular vectors of the largest singular values, each with its largest entry positive."""
    vectors = np.linalg.svd(matrix, full_matrices=False)[0][:, :count]
    largest = vectors[np.argmax(np.abs(vectors), axis=0), np.arange(vectors.shape[1])]
    return vectors * np.where(largest < 0, -1.0, 1.0)


def tucker_hooi(tensor: Any, rank: int, iterations: int) -> tuple[list[NDArray[Any]], NDArray[Any]]:
    """Return orthonormal factors and the core."""
    order = len(tensor.shape)
    factors = [np.linalg.qr(factor)[0] for factor in random_factors(tensor.shape, rank)]
    indices, core = ",".join(NAMES[:order]), np.zeros((rank,) * order)
    norm2 = st.distributed.evaluate(f"a = T({indices}) * T({indices})", {"T": tensor})
    log = Log()
    for iteration in range(1, iterations + 1):
        for mode in range(order):
            others = {f"F{other}": factor for other, factor in enumerate(factors) if other != mode}
            product = st.distributed.evaluate(ttmc(order, mode), {"T": tensor, **others})
            factors[mode] = leading_vectors(product.reshape(len(product), -1), rank)
            core = np.moveaxis(np.tensordot(factors[mode].T, product, 1), 0, mode)
        log(iteration, "fit", 1 - np.sqrt(max(0.0, norm2 - float((core**2).sum())) / norm2))
    return factors, core


def main() -> None:
    given = arguments("Tucker decomposition by higher-order orthogonal iteration", "random:uniform:120x90x60:nnz=1e4")
    factors, core = tucker_hooi(st.distributed.tensor(given.tensor), given.rank, given.iterations)
    write(given.output, factors, core=core)


if __name__ == "__main__":
    main()
