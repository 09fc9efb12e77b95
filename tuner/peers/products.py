"""Recognising the products and sums of two tensors that matrix libraries compute."""

from __future__ import annotations

from ...compiler.frozen import frozen
from ...compiler.notation.nodes import Access, Add, Mul
from ...compiler.storage.tensor import Tensor
from ..problem import Problem


@frozen
class MatrixProduct:
    """``matrix @ other``, or ``matrix.T @ other``; ``other`` is a dense vector or matrix, or a sparse matrix, which may be transposed."""

    matrix: Tensor
    other: Tensor
    transposed: bool
    other_transposed: bool = False

    @property
    def other_is_sparse(self) -> bool:
        """Whether the second matrix is sparse too."""
        return not self.other.format.is_dense


def matrix_product(problem: Problem) -> MatrixProduct | None:
    """Return the problem as a product with a sparse matrix on the left; None if it is something else."""
    value, target = problem.assignment.value, problem.assignment.target
    if problem.is_compound or problem.assignment.operator != "=" or not isinstance(value, Mul) or len(value.operands) != 2:
        return None
    first, second = value.operands
    if not isinstance(first, Access) or not isinstance(second, Access):
        return None
    for left, right in ((first, second), (second, first)):
        matrix, other = problem.operands[left.tensor], problem.operands[right.tensor]
        if matrix.order != 2 or matrix.format.is_dense or len(left.indices) != 2 or len(right.indices) != other.order:
            continue
        rows, columns = left.indices
        for transposed, (free, summed) in ((False, (rows, columns)), (True, (columns, rows))):
            rest = right.indices[1:]
            if right.indices[:1] == (summed,) and len(rest) <= 1 and target.indices == (free, *rest):
                return MatrixProduct(matrix, other, transposed)
            if right.indices[1:] == (summed,) and not other.format.is_dense and target.indices == (free, right.indices[0]):
                return MatrixProduct(matrix, other, transposed, other_transposed=True)
    return None


def matrix_sum(problem: Problem) -> tuple[Tensor, Tensor] | None:
    """Return the two sparse matrices whose sum a problem is; None if it is something else."""
    value, target = problem.assignment.value, problem.assignment.target
    if problem.is_compound or problem.assignment.operator != "=" or not isinstance(value, Add) or len(value.operands) != 2:
        return None
    accesses = [part for part in value.operands if isinstance(part, Access) and part.indices == target.indices]
    sparse = [operand for part in accesses if not (operand := problem.operands[part.tensor]).format.is_dense and operand.order == 2]
    return (sparse[0], sparse[1]) if len(sparse) == 2 else None
