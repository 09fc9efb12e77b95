"""Tensor completion over MPI: factors whose product is near the known entries, by alternating least squares, row by row.

    mpiexec -n 4 python examples/distributed/completion.py [TENSOR] [--rank 4] [--iterations 10] [-o FACTORS.npz]

Each row of a factor solves its own system, made of the known entries in its slice (Karlsson, Kressner, Uschmajew, "Parallel
algorithms for tensor completion in the CP format", section 2). The model at the known entries is a TTTP (Kanakagiri, Solomonik,
equation 3): a sparse result, which stays where the tensor is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import sparsetune as st
from iterations import Log, arguments, random_factors, write
from numpy.typing import NDArray

NAMES, PENALTY = "ijklmnop", 1e-3


def factors_of(order: int, mode: int | None, columns: str) -> str:
    """Return the factors of all modes but one, once for each column index: `` * F1(j,r) * F2(k,r)``."""
    return "".join(f" * F{other}({NAMES[other]},{column})" for column in columns for other in range(order) if other != mode)


def complete(tensor: Any, rank: int, iterations: int) -> list[NDArray[Any]]:
    """Return one factor a mode."""
    order, factors = len(tensor.shape), random_factors(tensor.shape, rank)
    indices = ",".join(NAMES[:order])
    known = tensor.with_values(np.ones(len(tensor.local.values)))
    norm2 = st.distributed.evaluate(f"a = T({indices}) * T({indices})", {"T": tensor})
    log = Log()
    for iteration in range(1, iterations + 1):
        for mode in range(order):
            others = {f"F{other}": factor for other, factor in enumerate(factors) if other != mode}
            left = f"H({NAMES[mode]},r,s) = K({indices})" + factors_of(order, mode, "rs")
            right = f"A({NAMES[mode]},r) = T({indices})" + factors_of(order, mode, "r")
            systems = st.distributed.evaluate(left, {"K": known, **others}) + PENALTY * np.eye(rank)
            sums = st.distributed.evaluate(right, {"T": tensor, **others})
            factors[mode] = np.linalg.solve(systems, sums[..., None])[..., 0]
        log(iteration, "error", np.sqrt(max(0.0, squared_error(tensor, known, factors, norm2)) / norm2))
    return factors


def squared_error(tensor: Any, known: Any, factors: list[NDArray[Any]], norm2: float) -> float:
    """Return the sum of squared errors of the model at the known entries: |T|^2 - 2 <T, M> + <M, M>, M the model there."""
    order = len(factors)
    indices, given = ",".join(NAMES[:order]), {f"F{mode}": factor for mode, factor in enumerate(factors)}
    product = factors_of(order, None, "r")
    model = st.distributed.evaluate(f"M({indices}) = K({indices}){product}", {"K": known, **given}, gather=False, output_format="csf")
    inner = st.distributed.evaluate(f"a = T({indices}){product}", {"T": tensor, **given})
    return norm2 - 2 * inner + st.distributed.evaluate(f"a = M({indices}) * M({indices})", {"M": model})


def main() -> None:
    given = arguments("Tensor completion by alternating least squares", "random:uniform:60x50x40:nnz=2e4")
    write(given.output, complete(st.distributed.tensor(given.tensor, "csf"), given.rank, given.iterations))


if __name__ == "__main__":
    main()
