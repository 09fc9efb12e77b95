"""Shares of stored positions on a GPU: threads go through what has entries in their share, whatever stands between."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
import scipy.sparse
import sparsetune as st
from differential import gpu

pytestmark = [pytest.mark.cc, pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")]

SPMV = "y(i) = A(i,j) * x(j)"
MTTKRP = "A(i,r) = B(i,j,k) * C(j,r) * D(k,r)"
SHARES = "collapse(i, j, f); pos(f, p, A); split(p, b, q, 64); split(q, t, n, 8);"
FIBRES = "collapse(j, k, f); collapse(i, f, g); pos(g, p, B); split(p, b, n, 16); reorder(b, r, n);"
RACES = {
    "atomics": "parallelize(b, gpu_block, no_races); parallelize(t, gpu_thread, atomics)",
    "carried": "parallelize(b, gpu_block, temporary); parallelize(t, gpu_thread, temporary)",
}  # fmt: skip


@pytest.mark.parametrize("races", RACES)
def test_rows_without_entries_are_leapt_over(races: str) -> None:
    kernel = st.compile(SPMV, {"A": "csr"}, schedule=f"{SHARES} {RACES[races]}", target=gpu.TARGET)
    assert "for (int64_t i = " not in kernel.source
    assert "at_A1 = st_gallop_i32(A2_pos, at_A1 + 2, i_size + 1, at_A2 + 1, 1) - 1;" in kernel.source
    rng = np.random.default_rng(0)
    rows = np.sort(rng.integers(0, 40_000, 300))
    rows[100:140] = rows[100]  # one that spans shares
    matrix = scipy.sparse.csr_array((rng.integers(1, 9, 300).astype(float), (rows, np.arange(300) % 17)), shape=(50_000, 17))
    x = np.arange(1.0, 18.0)
    np.testing.assert_array_equal(kernel(A=matrix, x=x), matrix @ x)


@pytest.mark.parametrize("form", ["csf", "dense, dense, compressed", "dense, compressed, compressed"])
def test_every_level_above_has_a_cursor(form: str) -> None:
    schedule = f"{FIBRES} parallelize(b, gpu_block, no_races); parallelize(r, gpu_thread, atomics)"
    kernel = st.compile(MTTKRP, {"B": form}, schedule=schedule, target=gpu.TARGET)
    rng = np.random.default_rng(0)
    stored = rng.integers(1, 5, (30, 9, 8)) * (rng.random((30, 9, 8)) < 0.2) * (rng.random((30, 1, 1)) < 0.3) * 1.0
    by_j, by_k = rng.integers(1, 5, (9, 5)) * 1.0, rng.integers(1, 5, (8, 5)) * 1.0
    np.testing.assert_array_equal(kernel(B=stored, C=by_j, D=by_k), np.einsum("ijk,jr,kr->ir", stored, by_j, by_k))


def test_sums_stay_in_registers_over_the_fibres_of_a_slice() -> None:
    schedule = f"{FIBRES} parallelize(b, gpu_block, no_races); parallelize(r, gpu_thread, atomics)"
    text = st.compile(MTTKRP, {"B": "csf"}, schedule=schedule, target="cuda", arch="sm_90").source
    fibres = text[text.index("while (at_B3 < p_high && at_B2 <") : text.index("st_atomic_add(")]
    assert "A_vals_sum += " in fibres
    assert fibres.count("while (") == 1  # over the fibres of one slice
