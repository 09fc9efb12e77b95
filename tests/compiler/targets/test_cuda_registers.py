"""How many registers threads of a GPU have at most: what a schedule says, what the compiler is told, and what it may not say."""

from __future__ import annotations

import re
import shutil

import numpy as np
import pytest
import sparsetune as st
from differential import gpu
from sparsetune.compiler.concrete.check import formats_of
from sparsetune.compiler.ir.parser import parse_function
from sparsetune.compiler.ir.printer import show_function
from sparsetune.compiler.notation.parser import parse
from sparsetune.compiler.space.candidates import candidates

SPMV = "y(i) = A(i,j) * x(j)"
ROWS = "parallelize(i, gpu_thread, no_races, registers, {})"
WARPS = "parallelize(i, gpu_warp, no_races); parallelize(j, gpu_thread, parallel_reduction{}); unroll(j, {})"


def _bounds(schedule: str | None, expression: str = SPMV, formats: dict[str, str] | None = None) -> str:
    source = st.compile(expression, formats or {"A": "csr"}, schedule=schedule, target="cuda", arch="sm_90").source
    return re.findall(r"ST_KERNEL(\w*\(.*?\))", source)[-1]


@pytest.mark.parametrize(
    ("schedule", "bounds"),
    [
        (ROWS.format(16), "_WITH(256, 16)"),
        (ROWS.format(48), "_WITH(256, 48)"),
        (ROWS.format(255), "_WITH(256, 255)"),
        ("parallelize(i, gpu_thread, no_races)", "(256)"),
        (WARPS.format(", registers, 40", 4), "_WITH(256, 40)"),
        (WARPS.format("", 4), "_WITH(256, 255)"),
        ("parallelize(i, gpu_block, no_races); parallelize(j, gpu_thread, parallel_reduction, registers, 64)", "_WITH(256, 64)"),
    ],
)
def test_kernels_say_how_many_registers_threads_have(schedule: str, bounds: str) -> None:
    """Loops that load ahead get as many as they want where nothing is said."""
    assert _bounds(schedule) == bounds


def test_rows_of_dense_results_have_registers_by_default() -> None:
    assert _bounds(None) == "_WITH(256, 48)"
    assert _bounds(None, "Z(i,j) = A(i,j) * B(i,j)", {"A": "csr", "B": "csr", "Z": "csr"}) == "(256)"


@pytest.mark.parametrize(
    ("schedule", "why"),
    [
        (ROWS.format(15), "a gpu_thread has 16 to 255 registers; say how many behind it"),
        (ROWS.format(256), "a gpu_thread has 16 to 255 registers; say how many behind it"),
        ("parallelize(i, gpu_thread, no_races, registers)", "a gpu_thread has 16 to 255 registers; say how many behind it"),
        ("parallelize(i, gpu_warp, no_races, registers, 32)", "registers are those of a gpu_thread; gpu_warp has none"),
        ("parallelize(i, cpu_thread, no_races, registers, 32)", "registers are those of a gpu_thread; cpu_thread has none"),
    ],
)
def test_what_has_no_such_registers_is_refused(schedule: str, why: str) -> None:
    with pytest.raises(st.ScheduleError, match=why):
        st.compile(SPMV, {"A": "csr"}, schedule=schedule, target="cuda", arch="sm_90")


def test_the_text_of_kernels_says_registers_and_is_read_back() -> None:
    made = st.compile(SPMV, {"A": "csr"}, schedule=ROWS.format(40), target="cuda", arch="sm_90")
    lowered, kernels = made.stages["lowering"], made.stages["kernels"]
    assert "dealt(thread of grid, 40 registers) for" in lowered
    assert "blocks of 256 with 40 registers:" in kernels
    for text in (lowered, kernels):
        assert show_function(parse_function(text)) == text


def test_templates_leave_registers_open() -> None:
    assignment = parse(SPMV)
    found = candidates(assignment, formats_of(assignment, {"A": "csr"}), target="cuda")
    holes = [hole for candidate in found for hole in candidate.template.holes if hole.name == "registers"]
    assert len(holes) >= 4
    assert all(hole.labels == ("", *(f"registers, {count}" for count in (48, 40, 32, 64, 128))) for hole in holes)


@pytest.mark.cc
@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
@pytest.mark.parametrize("registers", [16, 255])
def test_results_are_the_same(registers: int) -> None:
    rng = np.random.default_rng(0)
    matrix, x = rng.integers(1, 9, (45, 31)) * (rng.random((45, 31)) < 0.3) * 1.0, rng.integers(1, 9, 31) * 1.0
    made = st.compile(SPMV, {"A": "csr"}, schedule=ROWS.format(registers), target=gpu.TARGET)
    assert np.array_equal(made(A=st.tensor(matrix, "csr"), x=x), matrix @ x)
