"""SciPy's sparse products, and its correlations of dense arrays; they use one core whatever is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..problem import Problem
from .correlations import Correlation, correlation
from .products import matrix_product


class ScipyPeer:
    """``scipy.sparse``; for correlations, which it has none of, ``scipy.ndimage``, and ``scipy.signal`` where there is one mode."""

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
            found = correlation(problem)
            return None if found is None else _correlated(found)
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


def _correlated(found: Correlation) -> Callable[[], Any]:
    from scipy import ndimage, signal

    data, weights = found.data.to_numpy(), found.weights.to_numpy()
    if data.ndim == 1:
        return lambda: signal.correlate(data, weights, "valid", method="direct")
    inside = tuple(slice(extent // 2, extent // 2 + whole - extent + 1) for whole, extent in zip(data.shape, weights.shape, strict=True))
    return lambda: ndimage.correlate(data, weights, mode="constant")[inside]
