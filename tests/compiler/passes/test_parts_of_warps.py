"""Iterations of warps side by side in one warp, where the threads of each have fewer iterations than there are lanes."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
import sparsetune as st
from differential import gpu

TTM, FORMATS = "T(i,j,l) = B(i,j,k) * C(k,l)", {"B": "csf", "T": "compressed, compressed, dense"}
FIBRES = "collapse(i, j, f); pos(f, p, B(i,j,k));"
WARPS = f"{FIBRES} reorder(p, l, k); parallelize(p, gpu_warp, no_races); parallelize(l, gpu_thread, no_races)"
IN_BLOCKS = (
    f"{FIBRES} split(p, b, w, 4); reorder(b, w, l, k); parallelize(b, gpu_block, no_races); parallelize(w, gpu_warp, no_races);"
    " parallelize(l, gpu_thread, no_races)"
)
SHARED = f"{FIBRES} parallelize(p, gpu_warp, no_races); parallelize(l, gpu_thread, no_races)"


def source(schedule: str, columns: int) -> str:
    return st.compile(TTM, FORMATS, extents={"l": columns}, schedule=schedule, target="cuda", arch="sm_90").source


def test_pairs_of_a_fibre_and_a_column_go_to_threads() -> None:
    text = source(WARPS, 6)
    assert "int64_t p_l = st_thread_of_grid(), p_l_end = B2_length * 6; p_l < p_l_end; p_l += st_threads_of_grid()" in text
    assert "int64_t p = p_l / 6;" in text
    assert "int64_t l = p_l % 6;" in text
    inside = source(IN_BLOCKS, 16)
    assert "int64_t w_l = st_thread_of_block(), w_l_end = (p_high - p_low) * 16;" in inside
    assert "int64_t w = p_low + w_l / 16;" in inside


def test_warps_that_are_full_or_do_something_together_stay_whole() -> None:
    assert "st_warp_of_grid()" in source(WARPS, 32)
    assert "st_warp_of_grid()" in source(WARPS, 40)
    assert "st_warp_of_grid()" in source(SHARED, 16)  # all lanes go through a fibre together, and wait for one another


def test_bounds_of_all_positions_are_known_to_host_code() -> None:
    """Nothing is read back from the device before the kernel starts."""
    text = source(WARPS, 16)
    assert "st_device.take(" not in text
    assert "B1_pos" not in text[: text.index("ST_EXPORT")]


@pytest.mark.cc
@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
@pytest.mark.parametrize("columns", [1, 6, 16, 33])
@pytest.mark.parametrize("schedule", [WARPS, IN_BLOCKS, SHARED])
def test_results_are_right(schedule: str, columns: int) -> None:
    rng = np.random.default_rng(columns)
    tensor = rng.integers(1, 5, (7, 5, 9)) * (rng.random((7, 5, 9)) < 0.3).astype(float)
    dense = rng.integers(1, 5, (9, columns)).astype(float)
    kernel = st.compile(TTM, FORMATS, extents={"l": columns}, schedule=schedule, target=gpu.TARGET)
    np.testing.assert_array_equal(kernel(B=tensor, C=dense).to_numpy(), np.einsum("ijk,kl->ijl", tensor, dense))
