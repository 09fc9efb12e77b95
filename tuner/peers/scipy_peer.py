"""SciPy's sparse products; they use one core whatever is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..problem import Problem
from .products import matrix_product


class ScipyPeer:
    """``scipy.sparse``."""

    name = "scipy"

    def version(self) -> str | None:
        try:
            import scipy
        except ImportError:
            return None
        return scipy.__version__

    def prepare(self, problem: Problem) -> Callable[[], Any] | None:
        product = matrix_product(problem)
        if product is None:
            return None
        matrix: Any = product.matrix.to_scipy()
        if matrix.format not in ("csr", "csc"):
            matrix = matrix.tocsr()
        matrix = matrix.T.tocsr() if product.transposed else matrix
        if product.other_is_sparse:
            sparse_other: Any = product.other.to_scipy()
            other = sparse_other.tocsr()
        else:
            other = product.other.to_numpy()
        return lambda: matrix @ other
