"""Merge paths: entries and ends of rows in equal shares, whatever the rows are like, as C, in the interpreter and on a GPU."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
import scipy.sparse
import sparsetune as st
from differential import gpu
from differential.interpreted import interpreted
from differential.merge_paths import random_path, run_paths
from differential.runner import run_isolated
from sparsetune.compiler.ir.intrinsics import INTRINSICS

pytestmark = pytest.mark.cc
needs_cxx = pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")

SPMV = "y(i) = A(i,j) * x(j)"
PATH = "collapse(i, j, f); pos(f, p, A); merge_path(p, m); "
SCHEDULES = {
    "whole": (PATH, "cpu"),
    "tiles": (PATH + "split(m, b, n, 7); parallelize(b, cpu_thread, atomics)", "cpu"),
    "equal shares": (PATH + "split_up(m, b, n, 5); parallelize(b, cpu_thread, atomics, static)", "cpu"),
    "tiles of tiles": (PATH + "split(m, b, q, 40); split(q, t, n, 6); parallelize(b, cpu_thread, temporary)", "cpu"),
    "across tiles": (PATH + "split(m, b, n, 7); reorder(n, b)", "cpu"),
    "threads of blocks": (
        PATH + "split(m, b, q, 64); split(q, t, n, 4); parallelize(b, gpu_block, no_races); parallelize(t, gpu_thread, atomics)",
        gpu.TARGET,
    ),
    "threads of blocks, carried": (
        PATH + "split(m, b, q, 64); split(q, t, n, 4); parallelize(b, gpu_block, temporary); parallelize(t, gpu_thread, temporary)",
        gpu.TARGET,
    ),
    "warps, carried": (
        PATH + "split(m, b, q, 64); split(q, w, n, 16); parallelize(b, gpu_block, temporary); parallelize(w, gpu_warp, temporary)",
        gpu.TARGET,
    ),
}  # fmt: skip


def matrices(width: int, empty: int) -> dict[str, scipy.sparse.csr_array]:
    rng = np.random.default_rng(0)
    one = scipy.sparse.csr_array((rng.integers(1, 9, width), (np.full(width, 3), np.arange(width))), shape=(9, width), dtype=float)
    few = scipy.sparse.csr_array(([2.0, 3.0, 4.0], ([5, empty // 2, empty // 2], [0, 1, 2])), shape=(empty, 3))
    plain = scipy.sparse.random_array((61, 40), density=0.1, format="csr", rng=rng)
    plain.data = np.round(plain.data * 9)
    nothing = scipy.sparse.csr_array((50, 7))
    return {"one row has all": one, "empty rows": few, "plain": plain, "no entries": nothing, "no rows": scipy.sparse.csr_array((0, 4))}


@needs_cxx
@pytest.mark.parametrize("name", SCHEDULES)
def test_rows_of_any_length(name: str) -> None:
    schedule, target = SCHEDULES[name]
    kernel = st.compile(SPMV, {"A": "csr"}, schedule=schedule, target=target)
    empty = 10_000 if target == gpu.TARGET else 3000
    for pattern, matrix in matrices(3000, empty).items():
        x = np.arange(1.0, matrix.shape[1] + 1)
        np.testing.assert_array_equal(kernel(A=matrix, x=x), matrix @ x, err_msg=pattern)
        if target == "cpu":
            np.testing.assert_array_equal(interpreted(kernel.bind(A=matrix, x=x, threads=2))[0], matrix @ x, err_msg=pattern)


@pytest.mark.parametrize("seed", range(20))
def test_an_item_is_found_among_the_ends_of_fibres(seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 4, 12) * (rng.random(12) < 0.6)
    pos = np.concatenate(([0], np.cumsum(counts)))
    path = [(fibre, entry) for fibre, count in enumerate(counts) for entry in (*range(count), "end")]
    for item in range(len(path) + 1):
        ended = sum(entry == "end" for _, entry in path[:item])
        assert INTRINSICS["path_fibre"].meaning(pos, 0, 12, item) == ended
        assert INTRINSICS["path_fibre"].meaning(pos, max(ended - 2, 0), min(ended + 2, 12), item) == ended


def test_a_tile_is_searched_for_once_and_among_the_fibres_of_the_one_around() -> None:
    schedule, _ = SCHEDULES["threads of blocks, carried"]
    text = st.compile(SPMV, {"A": "csr"}, schedule=schedule, target="cuda", arch="sm_90").source
    assert text.count("= st_path_fibre_of_warp_i32(") == text.count("= st_path_fibre_i32(") == 2  # the lanes' for the block, their own
    assert "int64_t m_first_2 = st_path_fibre_i32(A2_pos, m_first, m_last, m_low_2);" in text
    assert "_bound_i32(" not in text
    assert "st_atomic" not in text


@pytest.mark.slow
def test_random_paths_are_right() -> None:
    found = run_isolated(range(24), chunk=24, work=run_paths, describe=random_path)
    assert not found, "\n".join(map(str, found))


@pytest.mark.nightly
def test_a_campaign_of_random_paths() -> None:
    found = run_isolated(range(1000, 2000), chunk=50, work=run_paths, describe=random_path)
    assert not found, "\n".join(map(str, found))
