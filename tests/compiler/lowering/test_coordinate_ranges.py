"""Ranges of coordinates between positions, in statements that do not read the operand whose positions these are."""

import numpy as np
import pytest
import sparsetune as st

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
