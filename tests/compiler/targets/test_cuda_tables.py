"""Hashed workspaces on a GPU: tables with room for what an iteration comes to, that the threads of a block or warp fill together."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import sparsetune as st
from differential import gpu
from sparsetune.compiler.errors import ScheduleError

pytestmark = pytest.mark.cc
needs_cxx = pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")

SPGEMM, CSR = "C(i,j) = A(i,k) * B(k,j)", {"A": "csr", "B": "csr", "C": "csr"}
ROWS = "assemble(C, insert); parallelize(i, gpu_{}, no_races)"
SCHEDULES = {
    "row to a thread": ROWS.format("thread"),
    "row to a warp, every entry to all its threads": ROWS.format("warp"),
    "row to a block, every entry to all its threads": ROWS.format("block"),
    "row to a warp": f"{ROWS.format('warp')}; parallelize([0], j, gpu_thread, no_races)",
    "row to a block": f"{ROWS.format('block')}; parallelize([0], j, gpu_thread, no_races)",
    "row to a block, its entries to warps": f"{ROWS.format('block')}; parallelize([0], k, gpu_warp, atomics);"
    " parallelize([0], j, gpu_thread, no_races)",
    "row to a warp of a block": "assemble(C, insert); parallelize(i, gpu_warp, no_races); parallelize([0], k, gpu_thread, atomics)",
}


def matrix(rows: int, columns: int, density: float, seed: int, *, dtype: str = "float64") -> scipy.sparse.csr_array:
    """Return a matrix of whole numbers, one row of which is full, and every third empty."""
    rng = np.random.default_rng(seed)
    kept = rng.random((rows, columns)) < density
    kept[::3] = False
    kept[rows // 2] = True
    return scipy.sparse.csr_array((rng.integers(1, 5, (rows, columns)) * kept).astype(dtype))


def product(first: Any, second: Any) -> Any:
    found = (first @ second).tocsr()
    found.sort_indices()
    return found


@needs_cxx
def test_products_are_right_with_tables_near_and_far(tmp_path: Path) -> None:
    made = {name: st.compile(SPGEMM, CSR, schedule=schedule, target=gpu.TARGET) for name, schedule in SCHEDULES.items()}
    gpu.build([kernel.default_kernel for kernel in made.values()], tmp_path, "products")
    operands = [
        (matrix(9, 20, 0.2, 0), matrix(20, 30, 0.2, 1)),
        (matrix(5, 40, 0.1, 2), matrix(40, 2100, 0.3, 3)),  # the full row comes to more keys than shared memory has slots
        (matrix(4, 7, 0.0, 4), matrix(7, 2600, 0.9, 5)),
        (scipy.sparse.csr_array((6, 8)), matrix(8, 5, 0.5, 6)),
    ]
    for name, kernel in made.items():
        for first, second in operands:
            found, wanted = kernel(A=first, B=second).to_scipy(), product(first, second)
            assert np.array_equal(found.indptr, wanted.indptr), name
            assert np.array_equal(found.indices, wanted.indices), name
            assert np.array_equal(found.data, wanted.data), name


@needs_cxx
def test_sums_of_a_row_have_the_same_bits_in_every_run() -> None:
    """No two threads add to one key at once where a loop along the row of the second matrix goes to them, in the order of the first."""
    rng = np.random.default_rng(0)
    first, second = (scipy.sparse.csr_array(rng.random((12, 12)) * (rng.random((12, 12)) < 0.6)) for _ in range(2))
    kernel = st.compile(SPGEMM, CSR, schedule=SCHEDULES["row to a warp"], target=gpu.TARGET)
    assert "st_atomic_add" not in kernel.source
    found = kernel(A=first, B=second).to_scipy().data
    for _ in range(3):
        np.testing.assert_array_equal(kernel(A=first, B=second).to_scipy().data, found)
    in_order = st.compile(SPGEMM, CSR)(A=first, B=second).to_scipy().data
    rounding = 1e-14 if gpu.TARGET == "cuda" else 0  # a GPU multiplies and adds in one instruction
    np.testing.assert_allclose(found, in_order, rtol=rounding)


@needs_cxx
@pytest.mark.parametrize(("expression", "formats", "schedule"), [
    ("C(i,j) = A(i,k) * B(k,j)", {"A": "csr", "B": "csr"}, "precompute(A(i,k) * B(k,j), j, j, w); workspace(w, hashed);"
     " parallelize(i, gpu_warp, no_races); parallelize([0], j, gpu_thread, no_races)"),
    ("C(i,j) = A(i,k) * B(k,j) * D(i,j)", {**CSR, "D": "csr"}, "assemble(C, insert); parallelize(i, gpu_thread, no_races)"),
    ("C(i,j,l) = A(i,k) * B(k,j,l)", {"A": "csr", "B": "csf", "C": "csf"}, "assemble(C, insert); parallelize(i, gpu_warp, no_races);"
     " parallelize([0], l, gpu_thread, no_races)"),
    ("C(i,j) = A(i,k) * B(k,j)", {"A": "dcsr", "B": "csr", "C": "dcsr"}, "assemble(C, insert); parallelize(i, gpu_warp, no_races);"
     " parallelize([0], j, gpu_thread, no_races)"),
    ("C(i,j) = A(i,l) * B(l,k) * D(k,j)", {**CSR, "D": "csr"}, "assemble(C, insert); parallelize(i, gpu_thread, no_races)"),
])  # fmt: skip
def test_tables_of_other_results(expression: str, formats: dict[str, str], schedule: str) -> None:
    rng, extents = np.random.default_rng(1), {"i": 7, "j": 6, "k": 9, "l": 5}
    kernel = st.compile(expression, formats, schedule=schedule, target=gpu.TARGET)
    left, right = expression.replace(" ", "").split("=")
    arrays, terms = {}, []
    for factor in right.split("*"):
        name, indices = factor[0], factor[2:-1].replace(",", "")
        shape = tuple(extents[index] for index in indices)
        arrays[name] = rng.integers(1, 4, shape) * (rng.random(shape) < 0.4).astype(float)
        terms.append(indices)
    wanted = np.einsum(f"{','.join(terms)}->{left[2:-1].replace(',', '')}", *arrays.values())
    found = kernel(**arrays)
    np.testing.assert_array_equal(found.to_numpy() if isinstance(found, st.Tensor) else found, wanted)


def test_room_is_counted_beforehand_and_is_that_of_what_is_at_work() -> None:
    text = st.compile(SPGEMM, CSR, schedule=SCHEDULES["row to a warp"], target="cuda", arch="sm_90").source
    host = text[text.index("ST_EXPORT") :]
    assert "need_own += st_max_i64((int64_t)B2_pos[k + 1] - (int64_t)B2_pos[k], 0);" in text  # of the first matrix alone
    assert "st_device.allocate<int32_t>(most" not in host
    assert "= st_table_size(st_min_i64(most_keys, j_size));" in host
    assert "if (most_keys > 768) {" in host  # which no heap is made for else
    assert "ST_SHARED_OF_WARP(int32_t, w_table_near, 1024, 8, 32);" in text  # where it counts it has neither values nor lists
    assert "ST_SHARED_OF_WARP(double, w_vals_2_near, 256, 8, 32);" in text
    assert "j_size / 64" not in text  # no bits over the whole range


def test_rows_with_few_keys_go_to_warps_and_those_with_more_to_blocks() -> None:
    text = st.compile(SPGEMM, CSR, schedule=SCHEDULES["row to a block, its entries to warps"], target="cuda", arch="sm_90").source
    assert "ST_SHARED_OF_WARP(double, w_vals_2_near, 256, 8, 32);" in text
    assert "ST_SHARED(double, w_vals_2_near_2, 2048);" in text
    assert text.count("need_own +=") == 1  # products are counted once
    assert "= st_max_i64(w_count, need_5 / 16);" in text
    assert text.count("st_table_count_of_") == 4  # warps, blocks, blocks with much memory, the heap
    assert text.count("st_table_keys_of_") == 4


def test_all_threads_of_a_warp_list_sort_and_append() -> None:
    text = st.compile(SPGEMM, CSR, schedule=SCHEDULES["row to a warp"], target="cuda", arch="sm_90").source
    assert "w_count_2 = st_table_keys_of_warp(w_keys_2_near, w_table_2_near, w_size_2);" in text
    assert text.count("st_sort_of_warp(") == 2  # where it fills, near and far; nothing is sorted where it counts
    append = text[text.index("st_sort_of_warp(") :]
    assert "C_vals[C2_count_3 + p_w1_3] = w_vals_2_near[st_hash_find_i32(" in append
    assert "p_w1_3 += st_threads_of_warp()) {  // j in w(j)" in append


def test_threads_of_a_warp_that_all_fill_a_bitmap_are_refused() -> None:
    schedule = f"workspace(w, bitmap); {ROWS.format('warp')}"
    with pytest.raises(ScheduleError, match="is filled by one thread, and here a warp fills it; deal the loop around it out to gpu_thread"):
        _ = st.compile(SPGEMM, CSR, schedule=schedule, target="cuda", arch="sm_90").source


def test_what_tables_find_out_themselves_has_room_for_the_whole_range() -> None:
    """How often a loop over the entries of another table runs is not known before that is filled."""
    schedule = "precompute(A(i,l) * B(l,k), k, k, v); workspace(v, hashed); assemble(C, insert); parallelize(i, gpu_thread, no_races)"
    kernel = st.compile("C(i,j) = A(i,l) * B(l,k) * D(k,j)", {**CSR, "D": "csr"}, schedule=schedule, target="cuda", arch="sm_90")
    assert "const int64_t st_each = st_table_size(" in kernel.source
    assert "most_keys" not in kernel.source
