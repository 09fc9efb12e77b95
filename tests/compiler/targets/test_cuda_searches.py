"""Searches of blocks and warps of a GPU: all lanes look at once for what all of them need."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
import scipy.sparse
import sparsetune as st
from differential import gpu

pytestmark = pytest.mark.cc
SPMM = "Y(i,k) = A(i,j) * X(j,k)"
SHARES = (
    "collapse(i, j, f); pos(f, p, A); split(p, b, q, 32); split(q, w, n, 8); reorder(b, w, k, n); parallelize(b, gpu_block, no_races);"
    " parallelize(w, gpu_warp, no_races); parallelize(k, gpu_thread, atomics)"
)
WARPS = (
    "collapse(i, j, f); pos(f, p, A); split(p, w, n, 8); reorder(w, k, n); parallelize(w, gpu_warp, no_races);"
    " parallelize(k, gpu_thread, atomics)"
)


def test_lanes_look_together_for_what_is_the_block_s_and_alone_for_what_is_their_own() -> None:
    text = st.compile(SPMM, {"A": "csr"}, schedule=SHARES, target="cuda", arch="sm_90").source
    assert text.count("= st_upper_bound_of_warp_i32(") == 2  # the block's row, and in what the block has that of the warp
    assert "= st_upper_bound_i32(" not in text
    threads = "collapse(i, j, f); pos(f, p, A); split(p, b, q, 64); split(q, t, n, 2); parallelize(b, gpu_block, no_races);"
    text = st.compile("y(i) = A(i,j) * x(j)", {"A": "csr"}, schedule=f"{threads} parallelize(t, gpu_thread, atomics)", target="cuda",
                      arch="sm_90").source  # fmt: skip
    together, alone = text.index("= st_upper_bound_of_warp_i32("), text.index("= st_upper_bound_i32(")
    assert together < text.index("st_thread_of_block()") < alone


@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
@pytest.mark.parametrize("schedule", [SHARES, WARPS, WARPS.replace("gpu_warp, no_races", "gpu_warp, no_races, lanes, 4")])
@pytest.mark.parametrize(
    ("density", "shape"),
    [(0.02, (1500, 11)), (0.9, (3, 70)), (0.3, (33, 9)), (0.0, (5, 5)), (1.0, (1, 40)), (0.002, (2100, 9)), (0.5, (64, 4))],
)
def test_first_rows_are_found_in_many_and_in_few(schedule: str, density: float, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    kernel = st.compile(SPMM, {"A": "csr"}, schedule=schedule, target=gpu.TARGET)
    matrix = scipy.sparse.csr_array(rng.integers(1, 5, shape) * (rng.random(shape) < density).astype(float))
    x = rng.integers(1, 5, (shape[1], 5)).astype(float)
    np.testing.assert_array_equal(kernel(A=matrix, X=x), matrix @ x)
