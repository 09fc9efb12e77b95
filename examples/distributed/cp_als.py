"""CP decomposition by alternating least squares over MPI (Kolda and Bader, "Tensor Decompositions and Applications", section 3.4).

    mpiexec -n 4 python examples/distributed/cp_als.py [TENSOR] [--rank 8] [--iterations 10] [-o FACTORS.npz]

The tensor is distributed once. Every rank keeps the factors whole: they are small, and each MTTKRP gives the new one to all.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import sparsetune as st
from iterations import Log, arguments, random_factors, write
from numpy.typing import NDArray

NAMES = "ijklmnopq"


def mttkrp(order: int, mode: int) -> str:
    """Return the expression of an MTTKRP, such as ``A(i,r) = T(i,j,k) * B(j,r) * C(k,r)``; factor m is called Fm."""
    indices = NAMES[:order]
    factors = "".join(f" * F{other}({indices[other]},r)" for other in range(order) if other != mode)
    return f"A({indices[mode]},r) = T({','.join(indices)}){factors}"


def cp_als(tensor: Any, rank: int, iterations: int) -> tuple[list[NDArray[Any]], NDArray[Any]]:
    """Return factors with columns of length 1, and the weights of the components."""
    order, factors, weights = len(tensor.shape), random_factors(tensor.shape, rank), np.ones(rank)
    indices = ",".join(NAMES[:order])
    norm2 = st.distributed.evaluate(f"a = T({indices}) * T({indices})", {"T": tensor})
    log = Log()
    for iteration in range(1, iterations + 1):
        for mode in range(order):
            others = {f"F{other}": factor for other, factor in enumerate(factors) if other != mode}
            product = st.distributed.evaluate(mttkrp(order, mode), {"T": tensor, **others})
            gram = prod(factor.T @ factor for factor in others.values())
            solved = product @ np.linalg.pinv(gram)
            weights = np.linalg.norm(solved, axis=0)
            factors[mode] = solved / np.where(weights > 0, weights, 1)
        inner = float(((product * factors[-1]).sum(axis=0) * weights).sum())
        model2 = float(weights @ prod(factor.T @ factor for factor in factors) @ weights)
        log(iteration, "fit", 1 - np.sqrt(max(0.0, norm2 - 2 * inner + model2) / norm2))
    return factors, weights


def main() -> None:
    given = arguments("CP decomposition by alternating least squares", "random:uniform:300x200x100:nnz=2e4")
    factors, weights = cp_als(st.distributed.tensor(given.tensor), given.rank, given.iterations)
    write(given.output, factors, weights=weights)


if __name__ == "__main__":
    main()
