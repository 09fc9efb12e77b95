"""What threads of a GPU hold in registers: short arrays used at constant places, and the sums that they carry."""

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
from sparsetune.compiler.errors import BuildError
from sparsetune.compiler.native.devices import find_nvcc
from sparsetune.compiler.native.library import CSRC
from sparsetune.compiler.space.library import LIBRARY

pytestmark = pytest.mark.cc
SPMV = "y(i) = A(i,j) * x(j)"
UNROLLED, PATH = (
    next(named.text for named in LIBRARY if (named.name, named.target) == (name, "cuda"))
    for name in ("position split, unrolled loads", "merge path")
)
SHORT = UNROLLED.replace("8192", "64").replace("512", "32").replace("nz, 16)", "nz, 4)").replace("nz_pre, 16)", "nz_pre, 4)")


def on_device(schedule: str) -> str:
    return st.compile(SPMV, {"A": "csr"}, schedule=schedule, target="cuda", arch="sm_90").source


def test_temporaries_and_carried_sums_take_no_memory_of_the_thread(tmp_path: Path) -> None:
    """Neither a stack nor loads and stores of it stand in what the compiler makes."""
    try:
        nvcc = find_nvcc()
    except BuildError as error:
        pytest.skip(str(error))
    texts = [on_device(schedule).replace('#include "st_cuda.h"\n', "").replace(" st_kernel(", f" st_kernel_{number}(")
             for number, schedule in enumerate((UNROLLED, PATH))]  # fmt: skip
    parts = [f"namespace st_file{number} {{\n{text}}}\n" for number, text in enumerate(texts)]
    (tmp_path / "kernels.cu").write_text('#include "st_cuda.h"\n' + "".join(parts))
    command = [nvcc, "-std=c++17", "-arch=sm_90", "-cubin", "-Xptxas", "-v", "-I", str(CSRC), "-o", "kernels.cubin", "kernels.cu"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:2000]
    frames = re.findall(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", done.stderr)
    assert len(frames) > 4
    assert set(frames) == {("0", "0", "0")}


def test_loops_along_an_array_in_registers_are_unrolled_under_conditions() -> None:
    text = on_device(UNROLLED)
    assert re.search(r"if \(p_A2_from <= p_low_3 \+ p_A2_1 && p_low_3 \+ p_A2_1 < p_A2_to\) \{\n\s+y_vals_sum \+= t\[p_A2_1\];", text)
    assert not re.search(r"\bt(_\d)?\[\w+ - ", text)


def test_whole_tiles_are_loaded_widely_without_conditions() -> None:
    text = on_device(UNROLLED)
    loads = text.partition("double t[16] = {0};")[2].partition("st_upper_bound_i32(")[0]  # up to where the thread looks for its first row
    assert "st_load_wide(A2_crd_row, A2_crd, p_low_3, 16);" in loads
    assert "st_load_wide(A_vals_row, A_vals, p_low_3, 16);" in loads
    assert "if (" not in loads


def test_nothing_that_a_thread_carries_is_read_back() -> None:
    text = on_device(PATH)
    assert "y_vals_first += added;" in text
    assert not re.search(r"(= |\()y_vals_(to|kept)\[", text)
    assert text.count("y_vals_to[") == text.count("y_vals_kept[") == 1


@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
@pytest.mark.parametrize("schedule", [SHORT, SHORT.replace("atomics", "temporary").replace("no_races", "temporary")])
def test_short_and_long_rows_are_right(schedule: str) -> None:
    rng = np.random.default_rng(0)
    kernel = st.compile(SPMV, {"A": "csr"}, schedule=schedule, target=gpu.TARGET)
    for density, shape in ((0.05, (50, 20)), (0.9, (3, 70)), (0.3, (20, 9)), (0.0, (5, 5))):
        matrix = scipy.sparse.csr_array(rng.integers(1, 5, shape) * (rng.random(shape) < density).astype(float))
        x = rng.integers(1, 5, shape[1]).astype(float)
        np.testing.assert_array_equal(kernel(A=matrix, x=x), matrix @ x)
