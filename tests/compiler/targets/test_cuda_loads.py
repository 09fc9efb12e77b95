"""What threads of a GPU load before they use it: several iterations of an unrolled loop at a time, whatever its length is."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
import sparsetune as st
from differential import gpu
from sparsetune.compiler.concrete.check import formats_of
from sparsetune.compiler.errors import BuildError
from sparsetune.compiler.native.devices import find_nvcc
from sparsetune.compiler.native.library import CSRC
from sparsetune.compiler.notation.parser import parse
from sparsetune.compiler.space.candidates import candidates
from sparsetune.tuner.reports.gpu_cases import KERNELS

pytestmark = pytest.mark.cc
SPMM = "Y(i,k) = A(i,j) * X(j,k)"
SDDMM = "Z(i,j) = B(i,j) * C(i,k) * D(j,k)"
ROWS = "reorder(i, k, j); unroll(j, 4); parallelize(i, gpu_warp, no_races); parallelize(k, gpu_thread, no_races)"
TILES = (
    "split(k, t, k1, 4); reorder(i, t, j, k1); precompute(A(i,j) * X(j,k), k1, k1, w); unroll([0], j, 3);"
    " parallelize(i, gpu_warp, no_races); parallelize(t, gpu_thread, no_races)"
)
SHARES = (
    "collapse(i, j, f); pos(f, p, A); split(p, b, q, 32); split(q, w, n, 8); split(k, t, k1, 4); reorder(b, w, t, n, k1); unroll(n, 4);"
    " parallelize(b, gpu_block, no_races); parallelize(w, gpu_warp, no_races); parallelize(t, gpu_thread, atomics)"
)
ADDED = "unroll(j, 3); parallelize(i, gpu_warp, no_races); parallelize(k, gpu_thread, no_races)"
WARPS = "parallelize(i, gpu_warp, no_races)"
SCHEDULES = {"rows": ROWS, "tiles of rows": TILES, "shares": SHARES, "rows added in memory": ADDED, "all lanes alike": WARPS}


def on_device(schedule: str) -> str:
    return st.compile(SPMM, {"A": "csr"}, {"k": 32}, schedule, target="cuda", arch="sm_90").source


def test_rows_are_loaded_before_the_first_is_added() -> None:
    text = on_device(ROWS)
    loop = text[text.index("ST_UNROLL(1)") : text.index("p_A2_whole < p_A2_end")]
    assert [loop.count(part) for part in ("= A2_crd[", "= st_load_from(X_vals, k, ", "tY +=")] == [4, 4, 4]
    assert loop.rindex("A2_crd[") < loop.index("(X_vals,")
    assert loop.rindex("(X_vals,") < loop.index("tY +=")


LANES = (
    "collapse(i, j, f); pos(f, p, B); split(p, w, n, 8); split(k, t, k1, 4); unroll(n, 3); parallelize(w, gpu_warp, no_races, lanes, 8);"
    " parallelize(t, gpu_thread, parallel_reduction)"
)
WHOLE_WARPS = LANES.replace("split(k, t, k1, 4); ", "").replace(", lanes, 8", "").replace("parallelize(t,", "parallelize(k,")


def test_lanes_sum_for_several_iterations_at_once_and_load_once_what_is_the_same_for_all() -> None:
    text = st.compile(SDDMM, {"B": "csr", "Z": "csr"}, {"k": 32}, LANES, target="cuda", arch="sm_90").source
    loop = text[text.index("ST_UNROLL(1)") : text.index("p_B2_whole < p_B2_end")]
    assert [loop.count(part) for part in ("for (int64_t t =", "C_vals,", "D_vals,", "st_add_of_threads_of_warp<8>(")] == [1, 1, 3, 3]
    assert loop.rindex("D_vals,") < loop.index("_own +=")


@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
@pytest.mark.parametrize("schedule", [LANES, WHOLE_WARPS])
def test_sums_of_lanes_are_right_for_rows_of_every_length(schedule: str) -> None:
    rng = np.random.default_rng(0)
    kernel = st.compile(SDDMM, {"B": "csr", "Z": "csr"}, {"k": 32}, schedule, target=gpu.TARGET)
    for density, shape in ((0.05, (50, 20)), (0.9, (3, 70)), (0.3, (20, 9)), (0.0, (5, 5))):
        matrix = scipy.sparse.csr_array(rng.integers(1, 5, shape) * (rng.random(shape) < density).astype(float))
        c, d = (rng.integers(1, 5, (extent, 32)).astype(float) for extent in shape)
        np.testing.assert_array_equal(kernel(B=matrix, C=c, D=d).to_scipy().toarray(), matrix.toarray() * (c @ d.T))


def test_a_row_that_all_iterations_read_has_one_name_in_the_groups_and_another_in_the_remainder() -> None:
    schedule = (
        "loopfuse(2, true, []); collapse(j, k, v1); pos(i, v2, B(i,j)); factors(B(i,j), C(i,k)); coord(v2, v3); unroll(v1, 2);"
        " parallelize(v3, gpu_block, temporary); unroll(v3, 3); parallelize(v1, gpu_thread, atomics)"
    )
    text = st.compile(SDDMM, {"B": "csr"}, {"k": 8}, schedule, target="cuda", arch="sm_90").source
    rows = re.findall(r"double (C_vals_row\w*)\[8\];", text)
    assert len(rows) == len(set(rows)) == 2


def test_a_loop_that_nobody_asked_to_unroll_stays_as_it_is() -> None:
    text = on_device(ROWS.replace("unroll(j, 4);", ""))
    assert "for (int64_t p_A2 = A2_pos[i], p_A2_end = A2_pos[i + 1]; p_A2 < p_A2_end; p_A2++)" in text
    assert "ST_KERNEL(256) " in text


def test_shares_whose_rows_end_anywhere_have_no_second_copy_for_full_ones() -> None:
    text = on_device(SHARES)
    assert text.count("upper_bound") == on_device(SHARES.replace("unroll(n, 4);", "")).count("upper_bound")


def test_what_a_tile_of_a_row_adds_is_gathered_before_it_is_added_atomically() -> None:
    text = on_device(SHARES)
    assert len(re.findall(r"st_atomic_add", text)) == 1
    gathered = re.search(r"Y_vals_sums\[k_\w+\] \+= ", text)
    assert gathered is not None
    assert gathered.start() < text.index("st_atomic_add")


@pytest.mark.parametrize(
    ("expression", "formats", "lanes", "race"),
    [(SPMM, {"A": "csr"}, "", "atomics"), (SDDMM, {"B": "csr", "Z": "csr"}, ", lanes, 8", "parallel_reduction")],
)
def test_the_tuner_lists_shares_of_warps_that_load_ahead(
    expression: str, formats: dict[str, str], lanes: str, race: str
) -> None:
    assignment = parse(expression)
    values = {"block_entries": 512, "share_entries": 32, "loads_ahead": 2, "lanes": 8}
    listed = candidates(assignment, formats_of(assignment, formats), target="cuda")
    texts = [str(candidate.template.fill(values)) for candidate in listed if "loads_ahead" in candidate.template.usual]
    reorder = "reorder(b, w, k, n); " if race == "atomics" else ""
    assert any(
        f"split(p, b, q, 512); split(q, w, n, 32); {reorder}parallelize(b, gpu_block, no_races); parallelize(w, gpu_warp, no_races{lanes});"
        f" parallelize(k, gpu_thread, {race}); unroll(n, 2)" in text
        for text in texts
    )


@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)
def test_rows_of_every_length_are_right(schedule: str) -> None:
    rng = np.random.default_rng(0)
    kernel = st.compile(SPMM, {"A": "csr"}, {"k": 32}, schedule, target=gpu.TARGET)
    for density, shape in ((0.05, (50, 20)), (0.9, (3, 70)), (0.3, (20, 9)), (0.0, (5, 5))):
        matrix = scipy.sparse.csr_array(rng.integers(1, 5, shape) * (rng.random(shape) < density).astype(float))
        x = rng.integers(1, 5, (shape[1], 32)).astype(float)
        np.testing.assert_array_equal(kernel(A=matrix, X=x), matrix @ x)


APART = (
    "split(k, u, t, 64); split(t, l, v, 2); reorder(i, l, j, u, v); precompute(A(i,j) * X(j,k), [u, v], [u, v], w);"
    " parallelize(i, gpu_warp, no_races); parallelize(l, gpu_thread, no_races)"
)


def test_pairs_of_columns_lie_side_by_side_across_lanes() -> None:
    """A tile of a tile whose length it divides is whole: nothing asks where it ends, and neighbouring lanes load neighbouring pairs."""
    text = st.compile(SPMM, {"A": "csr"}, {"k": 128}, APART, target="cuda", arch="sm_90").source
    assert "st_min_i64" not in text
    assert re.search(r"st_load_wide_from\(X_vals_row, X_vals, t_low, j \* 128 \+ k_low, 2\);", text)
    assert "t_low = l * 2;" in text
    odd = st.compile(SPMM, {"A": "csr"}, {"k": 100}, APART, target="cuda", arch="sm_90").source
    assert "st_min_i64" in odd  # 100 columns end inside of a tile


@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
@pytest.mark.parametrize("columns", [128, 100, 63])
def test_pairs_of_columns_are_right(columns: int) -> None:
    rng = np.random.default_rng(0)
    matrix = scipy.sparse.csr_array(rng.integers(1, 5, (20, 9)) * (rng.random((20, 9)) < 0.3).astype(float))
    x = rng.integers(1, 5, (9, columns)).astype(float)
    found = st.compile(SPMM, {"A": "csr"}, {"k": columns}, APART, target=gpu.TARGET)(A=matrix, X=x)
    np.testing.assert_array_equal(found, matrix @ x)


def test_machine_code_loads_eight_rows_before_it_waits_for_one(tmp_path: Path) -> None:
    """Kernels that load ahead get the registers for it, and none of what they hold lies in memory."""
    try:
        nvcc = find_nvcc()
    except BuildError as error:
        pytest.skip(str(error))
    (kernel,) = (kernel for kernel in KERNELS if kernel.name == "SpMM 32")
    schedules = dict(kernel.mappings)
    registers = {}
    for name in ("row to a warp, sums in registers", "row to a warp, sums in registers, 8 at a time"):
        (tmp_path / "kernel.cu").write_text(on_device(schedules[name]))
        command = [nvcc, "-std=c++17", "-arch=sm_90", "-cubin", "-Xptxas", "-v", "-I", str(CSRC), "-o", "kernel.cubin", "kernel.cu"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[:2000]
        assert set(re.findall(r"(\d+) bytes spill stores", done.stderr)) == {"0"}
        registers[name] = max(map(int, re.findall(r"Used (\d+) registers", done.stderr)))
    few, many = registers.values()
    assert many >= few + 2 * 8  # of eight rows, a number of 8 bytes each
