"""Sums that threads of a GPU carry on in order: the slots of all tiles are counted in front of the kernel, the same every time."""

from __future__ import annotations

import numpy as np
import pytest
import sparsetune as st
from differential import gpu

POSITIONS = "collapse(i, j, f); pos(f, p, A); split(p, b, t, 8);"
TILES = {
    "an entry a thread": f"{POSITIONS} parallelize(b, gpu_block, temporary); parallelize(t, gpu_thread, temporary)",
    "an entry a lane": f"{POSITIONS} parallelize(b, gpu_warp, temporary); parallelize(t, gpu_thread, temporary)",
    "several a thread": (
        f"{POSITIONS} split(t, u, n, 2); parallelize(b, gpu_block, temporary); parallelize(u, gpu_thread, temporary)"
    ),
    "an entry a lane of a warp of a block": (
        f"{POSITIONS} split(t, w, l, 4); parallelize(b, gpu_block, temporary); parallelize(w, gpu_warp, temporary);"
        " parallelize(l, gpu_thread, temporary)"
    ),
}  # fmt: skip


@pytest.mark.cc
@pytest.mark.parametrize("tiles", TILES)
@pytest.mark.parametrize("expression", ["y(i) = A(i,j) * x(j)", "y = A(i,j) * x(j)", "Y(i,k) = A(i,j) * X(j,k)"])
def test_sums_of_entries_dealt_out_one_by_one_are_carried(expression: str, tiles: str) -> None:
    kernel = st.compile(expression, {"A": "csr"}, schedule=TILES[tiles], target=gpu.TARGET)
    rng = np.random.default_rng(0)
    matrix = rng.integers(1, 5, (40, 23)) * (rng.random((40, 23)) < 0.3) * (rng.random((40, 1)) < 0.6) * 1.0
    vectors = rng.integers(1, 5, (23, 3)) * 1.0
    operand = vectors if "X" in expression else vectors[:, 0]
    expected = matrix @ operand
    found = kernel(A=matrix, **{"X" if "X" in expression else "x": operand})
    np.testing.assert_array_equal(found, expected.sum() if expression.startswith("y =") else expected)
