"""Ranges of coordinates between positions, in statements that do not read the operand whose positions these are."""

import numpy as np
import pytest
import sparsetune as st
from differential.interpreted import interpreted

WHOLE = "precompute(B(i,j) * x(j), [i, j], [i, j], w)"


@pytest.mark.parametrize("rows", [1, 3, 7, 12])
@pytest.mark.parametrize("format", ["csr", "dcsr"])
@pytest.mark.parametrize("more", ["", "split_up(v2, a, b, 3); "])
def test_a_workspace_is_read_over_all_columns(rows: int, format: str, more: str) -> None:
    rng = np.random.default_rng(rows)
    stored, x = np.where(rng.random((rows, 8)) < 0.5, rng.random((rows, 8)), 0), rng.random(8)
    schedule = f"pos(j, v1, B); coord(v1, v2); {more}{WHOLE}"
    found = st.evaluate("y(i) = B(i,j) * x(j)", {"B": st.tensor(stored, format), "x": x}, schedule=schedule)
    np.testing.assert_allclose(found, stored @ x)


@pytest.mark.parametrize("format", ["csf", "dss"])
def test_levels_above_follow_from_known_coordinates(format: str) -> None:
    rng = np.random.default_rng(3)
    stored, c = np.where(rng.random((2, 3, 9)) < 0.3, rng.random((2, 3, 9)), 0), rng.random(9)
    schedule = "pos(k, v1, B); coord(v1, v2); precompute(B(i,j,k) * c(k), [i, j, k], [i, j, k], w)"
    found = st.evaluate("y(i,j) = B(i,j,k) * c(k)", {"B": st.tensor(stored, format), "c": c}, schedule=schedule)
    np.testing.assert_allclose(found, stored @ c)


@pytest.mark.parametrize("format", ["compressed, compressed, bitmap", "compressed, compressed, dense", "compressed, dense, compressed"])
@pytest.mark.parametrize("rows", [[], [1, 2]], ids=["nothing stored", "two rows"])
def test_no_positions_are_read_where_the_operand_is_absent(format: str, rows: list[int]) -> None:
    """The range goes through all columns there, since the other operand of the sum may be stored."""
    stored, given = np.zeros((6, 4, 6)), np.array([1.0, 0, 0, 0, 2, 0])
    for row in rows:
        stored[row, row:, row] = row + 1
    schedule = "pos(j, p, B(i,j,i)); split_up(i, i0, i1, 5); reorder(i1, i0); coord(p, c); split_up(c, c0, c1, 3)"
    kernel = st.compile("A(i) += B(i,j,i)", formats={"B": format, "A": "compressed"}, schedule=schedule)
    operands = {"B": st.tensor(stored, format), "A": st.tensor(given, "compressed")}
    found, _ = interpreted(kernel.bind(**operands))  # which checks every access
    np.testing.assert_allclose(found.to_numpy(), given + np.einsum("iji->i", stored))
