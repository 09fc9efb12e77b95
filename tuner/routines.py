"""What a product of matrices, or of a matrix and a vector, costs that BLAS does in place of loops, in operations of the static model.

BLAS copies blocks of the factors into an order of its own, and multiplies them from registers. Measured with OpenBLAS on matrices of 16
to 2,000 rows and columns, beside loops: these take a quarter longer on the whole than the model says, so the operations here are a
quarter longer too.
"""

from __future__ import annotations

from math import prod

from ..compiler.space.distances import passed_through

_CALLED = 3200.0  # operations before the first product
_PRODUCT = 0.37  # operations of a product: those of loops load and store too
_COPIED, _STORED = 2.4, 0.8  # operations for each element of the factors, and of the result, where they are in the first level of cache
_LOADED = 1.25  # operations of a product where one matrix is a vector, so that each element of the other is loaded for one product
_THREADED = 2.0**18  # products from which OpenBLAS takes several threads


def matrix_product(rows: float, columns: float, summed: float, threads: int = 1) -> float:
    """Return the operations of a product of two dense matrices.

    Args:
        rows, columns: of the result.
        summed: how many products each element of it is the sum of.
        threads: that BLAS may take.
    """
    products = prod((rows, columns, summed))
    if min(rows, columns, summed) <= 1:
        return _CALLED + _LOADED * products
    moved = ((_COPIED, rows * summed), (_COPIED, summed * columns), (_STORED, rows * columns))
    done = _PRODUCT * products + sum(each * elements * passed_through(elements) for each, elements in moved)
    return _CALLED + done / (threads if products > _THREADED else 1)
