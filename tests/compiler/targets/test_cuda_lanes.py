"""Warps of fewer lanes than a processor's warp has: several rows side by side in it."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest
import sparsetune as st
from differential import gpu
from numpy.typing import NDArray

pytestmark = [pytest.mark.cc, pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")]

SPMV = "y(i) = A(i,j) * x(j)"
CASES = {
    "rows": (SPMV, {"A": "csr"}, "parallelize(i, gpu_warp, no_races, lanes, {}); parallelize(j, gpu_thread, parallel_reduction)"),
    "rows of blocks": (
        SPMV, {"A": "csr"}, "split(i, b, w, 24); parallelize(b, gpu_block, no_races); parallelize(w, gpu_warp, no_races, lanes, {});"
        " parallelize(j, gpu_thread, parallel_reduction)",
    ),
    "sums of warps": (
        SPMV, {"A": "csr"}, "split(j, j0, j1, 8); parallelize(i, gpu_block, no_races);"
        " parallelize(j0, gpu_warp, parallel_reduction, lanes, {}); parallelize(j1, gpu_thread, parallel_reduction)",
    ),
    "sampled": (
        "Z(i,j) = B(i,j) * C(i,k) * D(j,k)", {"B": "csr", "Z": "csr"},
        "collapse(i, j, f); pos(f, p, B); split(p, b, w, 8); parallelize(b, gpu_block, no_races);"
        " parallelize(w, gpu_warp, no_races, lanes, {}); parallelize(k, gpu_thread, parallel_reduction)",
    ),
    "shares of a warp": (
        SPMV, {"A": "csr"}, "collapse(i, j, f); pos(f, p, A); split(p, w, q, 48); split(q, t, n, 6);"
        " parallelize(w, gpu_warp, atomics, lanes, {});"
        " parallelize(t, gpu_thread, atomics)",
    ),
    "a workspace of a warp": (
        "Y(i,k) = A(i,j) * X(j,k)", {"A": "csr"}, "precompute(A(i,j) * X(j,k), k, k, w); parallelize(i, gpu_warp, no_races, lanes, {});"
        " parallelize([0], k, gpu_thread, no_races); parallelize([1], k, gpu_thread, no_races)",
    ),
}  # fmt: skip


def _operands(expression: str, formats: dict[str, str]) -> dict[str, NDArray[Any]]:
    rng, shapes = np.random.default_rng(0), {"A": (45, 31), "B": (45, 31), "C": (45, 11), "D": (31, 11), "X": (31, 11), "x": (31,)}
    found = {}
    for name, shape in shapes.items():
        if f"{name}(" in expression.partition("=")[2]:
            found[name] = rng.integers(1, 9, shape) * (rng.random(shape) < (0.3 if name in formats else 1.0)) * 1.0
    return found


AHEAD = {
    "rows": "unroll(j, 4)",
    "rows of blocks": "unroll(j, 3)",
    "sums of warps": "unroll(j1, 2)",
    "sampled": "unroll(k, 2)",
    "a workspace of a warp": "unroll([1], k, 4)",
}  # fmt: skip


@pytest.mark.parametrize("lanes", [4, 32])
@pytest.mark.parametrize("name", AHEAD)
def test_several_iterations_at_once_are_right(name: str, lanes: int) -> None:
    _check(name, f"{CASES[name][2].format(lanes)}; {AHEAD[name]}")


def test_rows_of_a_block_are_loaded_several_entries_at_once() -> None:
    blocks = "parallelize(i, gpu_block, no_races); parallelize(j, gpu_thread, parallel_reduction); unroll(j, 4)"
    _check("rows", blocks)
    assert "p_A2 += 1024) {" in st.compile(SPMV, {"A": "csr"}, schedule=blocks, target="cuda", arch="sm_90").source


def test_what_a_lane_needs_is_on_its_way_before_it_adds() -> None:
    expression, formats, schedule = CASES["rows"]
    text = st.compile(expression, formats, schedule=f"{schedule.format(8)}; unroll(j, 4)", target="cuda", arch="sm_90").source
    loop = text[text.index("p_A2 += 32) {") :].split("if (p_A2_left < ")[0]
    assert loop.count("= A2_crd[") == loop.count("= A_vals[") == loop.count("= x_vals[") == 4
    assert loop.rindex("= x_vals[j_3]") < loop.index("ty_own +=")


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("lanes", [2, 4, 8, 16])
def test_every_number_of_lanes_is_right(name: str, lanes: int) -> None:
    _check(name, CASES[name][2].format(lanes))


def _check(name: str, schedule: str) -> None:
    expression, formats, _ = CASES[name]
    extents = {"k": 11} if "k" in expression else None
    kernel = st.compile(expression, formats, extents, schedule=schedule, target=gpu.TARGET)
    operands = _operands(expression, formats)
    target, _, terms = expression.replace(" ", "").partition("=")
    read = terms.split("*")
    subscripts = ",".join(term[2:-1].replace(",", "") for term in read)
    wanted = np.einsum(f"{subscripts}->{target[2:-1].replace(',', '')}", *(operands[term[0]] for term in read))
    found = kernel(**operands)
    np.testing.assert_array_equal(found if isinstance(found, np.ndarray) else found.to_scipy().toarray(), wanted)


def test_a_kernel_has_as_many_warps_as_its_lanes_give() -> None:
    expression, formats, schedule = CASES["rows"]
    text = st.compile(expression, formats, schedule=schedule.format(4), target="cuda", arch="sm_90").source
    assert "st_device.launch((i_size + 63) / 64, 256," in text
    assert "ty += st_add_of_threads_of_warp<4>(ty_own);" in text


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        ("parallelize(i, gpu_warp, no_races, lanes, 3)", "2, 4, 8, 16, 32 lanes"),
        ("parallelize(i, gpu_thread, no_races, lanes, 4)", "gpu_thread has none"),
        ("parallelize(i, gpu_warp, no_races, lanes)", "lanes"),
        ("parallelize(i, cpu_thread, no_races, lanes, 4)", "cpu_thread has none"),
    ],
)
def test_other_numbers_are_refused(schedule: str, message: str) -> None:
    with pytest.raises(st.ScheduleError, match=message):
        st.compile(SPMV, {"A": "csr"}, schedule=schedule, **({"target": "cuda", "arch": "sm_90"} if "gpu" in schedule else {}))


def test_tables_are_of_whole_warps() -> None:
    schedule = "assemble(C, insert); parallelize(i, gpu_warp, no_races, lanes, 8); parallelize([0], j, gpu_thread, no_races)"
    kernel = st.compile("C(i,j) = A(i,k) * B(k,j)", dict.fromkeys("ABC", "csr"), schedule=schedule, target="cuda", arch="sm_90")
    with pytest.raises(st.ScheduleError, match="warps of 32 lanes, not of 8"):
        print(kernel.source)
