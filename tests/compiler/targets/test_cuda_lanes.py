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


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("lanes", [2, 4, 8, 16])
def test_every_number_of_lanes_is_right(name: str, lanes: int) -> None:
    expression, formats, schedule = CASES[name]
    extents = {"k": 11} if "k" in expression else None
    kernel = st.compile(expression, formats, extents, schedule=schedule.format(lanes), target=gpu.TARGET)
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
