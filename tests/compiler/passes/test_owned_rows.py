"""Rows of which a thread of a GPU has all stored entries are stored; others are added atomically."""

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
TILES = SHARES.replace("reorder(b, w, k, n)", "split(k, t, k1, 4); reorder(b, w, t, n, k1)").replace("parallelize(k,", "parallelize(t,")
REDUCED = "Y(i,k) = A(i,j) * X(j,k,l)"
WHOLE = "if (p_low_2 <= (int64_t)A2_pos[at_A1] && (int64_t)A2_pos[at_A1 + 1] <= p_high_2) {"


def text(schedule: str, expression: str = SPMM, extents: dict[str, int] | None = None) -> str:
    return st.compile(expression, {"A": "csr"}, extents or {"k": 32}, schedule, target="cuda", arch="sm_90").source


def after(source: str) -> str:
    return source[source.index(WHOLE) :].split("\n")[1].strip()


def test_whole_rows_of_a_new_result_are_stored_without_reading_it() -> None:
    assert after(text(SHARES)) == "Y_vals[at_A1 * 32 + k] = Y_vals_sum;"
    assert "st_store_wide(Y_vals, at_A1 * 32 + k_low, Y_vals_row, 4);" in text(TILES)


@pytest.mark.parametrize(
    ("expression", "schedule", "extents"),
    [
        (SPMM, SHARES, {"j": 9}),  # a row of unknown length: the next one may be as near as its elements
        (REDUCED, SHARES.replace("reorder(b, w, k, n)", "reorder(b, w, l, k, n)").replace("parallelize(k,", "parallelize(l,"), {"k": 32}),
    ],
)
def test_where_others_may_have_the_same_elements_all_is_added_atomically(expression: str, schedule: str, extents: dict[str, int]) -> None:
    source = text(schedule, expression, extents)
    assert WHOLE not in source
    assert "st_atomic_add" in source


@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
@pytest.mark.parametrize("schedule", [SHARES, TILES])
def test_rows_of_one_share_and_of_many_are_right(schedule: str) -> None:
    rng = np.random.default_rng(0)
    kernel = st.compile(SPMM, {"A": "csr"}, {"k": 32}, schedule, target=gpu.TARGET)
    for density, shape in ((0.05, (50, 20)), (0.9, (3, 70)), (0.3, (20, 9)), (0.0, (5, 5))):
        matrix = scipy.sparse.csr_array(rng.integers(1, 5, shape) * (rng.random(shape) < density).astype(float))
        x = rng.integers(1, 5, (shape[1], 32)).astype(float)
        np.testing.assert_array_equal(kernel(A=matrix, X=x), matrix @ x)
