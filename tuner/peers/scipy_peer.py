"""SciPy's sparse products, and its correlations of dense arrays; they always use one core."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...compiler.storage.tensor import Tensor
from ..problem import Problem
from .correlations import Correlation, correlation
from .products import matrix_product, matrix_sum


class ScipyPeer:
    """``scipy.sparse``; for correlations ``scipy.ndimage``, or ``scipy.signal`` where there is one mode."""

    name = "scipy"

    def version(self) -> str | None:
        try:
            import scipy
        except ImportError:
            return None
        return scipy.__version__

    def prepare(self, problem: Problem) -> Callable[[], Any] | None:
        product, addends = matrix_product(problem), matrix_sum(problem)
        if addends is not None:
            first, second = (_in_rows(one) for one in addends)
            return lambda: first + second
        if product is None:
            found = correlation(problem)
            return None if found is None else _correlated(found)
        matrix: Any = product.matrix.to_scipy()
        if matrix.format not in ("csr", "csc"):
            matrix = matrix.tocsr()
        matrix = matrix.T.tocsr() if product.transposed else matrix
        other = _in_rows(product.other, product.other_transposed) if product.other_is_sparse else product.other.to_numpy()
        return lambda: matrix @ other


def _in_rows(given: Tensor, transposed: bool = False) -> Any:
    matrix: Any = given.to_scipy()
    return (matrix.T if transposed else matrix).tocsr()


def _correlated(found: Correlation) -> Callable[[], Any]:
    from scipy import ndimage, signal

    data, weights = found.data.to_numpy(), found.weights.to_numpy()
    if data.ndim == 1:
        return lambda: signal.correlate(data, weights, "valid", method="direct")
    inside = tuple(slice(extent // 2, extent // 2 + whole - extent + 1) for whole, extent in zip(data.shape, weights.shape, strict=True))
    return lambda: ndimage.correlate(data, weights, mode="constant")[inside]
