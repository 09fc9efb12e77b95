"""What ``bound`` says holds of the operands, or the kernel refuses them: code that relies on it would read what is not there."""

from __future__ import annotations

import numpy as np
import pytest
from sparsetune.compiler.errors import ShapeError
from sparsetune.compiler.pipeline import compile_kernel

pytestmark = pytest.mark.cc


@pytest.mark.parametrize(
    ("schedule", "rows", "reason"),
    [
        ("bound(i, ib, 4, divisible); split(ib, a, b, 4)", 8, "divisible 4 does not hold of i, which runs from 0 to 8"),
        ("bound(i, ib, 8, max_constraint)", 8, "max_constraint 8 does not hold of i, which runs from 0 to 8"),
        ("bound(i, ib, 0, min_exact); bound(ib, ic, 8, max_exact)", 8, "max_exact 8 does not hold of ib, which runs from 0 to 8"),
        ("split(i, a, b, 4); bound(a, c, 2, max_exact)", 8, "max_exact 2 does not hold of a, which runs from 0 to 2"),
        ("split_up(i, a, b, 4); bound(b, c, 2, divisible)", 8, "divisible 2 does not hold of b, which runs from 0 to 2"),
    ],
)
def test_bounds_are_checked_when_operands_are_bound(schedule: str, rows: int, reason: str) -> None:
    kernel = compile_kernel("y(i) = A(i,j) * x(j)", {"A": "csr"}, schedule=schedule)
    matrix, vector = np.eye(rows, 5), np.arange(5.0)
    np.testing.assert_array_equal(kernel(A=matrix, x=vector), matrix @ vector)
    with pytest.raises(ShapeError, match=reason):
        kernel(A=np.eye(rows + 1, 5), x=vector)
