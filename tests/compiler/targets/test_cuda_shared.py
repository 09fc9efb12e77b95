"""Memory that the threads of a block share: what kernels declare, what they are launched with, and what architectures have."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
import sparsetune as st
from differential import gpu
from sparsetune.compiler.errors import BuildError, ScheduleError
from sparsetune.compiler.ir.parser import parse_function
from sparsetune.compiler.ir.printer import show_function
from sparsetune.compiler.native.devices import find_nvcc, shared_bytes
from sparsetune.compiler.native.library import CSRC
from sparsetune.compiler.native.nvrtc import compile_cubin
from sparsetune.compiler.targets.cuda import compile_flags

pytestmark = pytest.mark.cc
needs_cxx = pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")

SPMM = "Y(i,k) = A(i,j) * X(j,k)"
TILES = (
    "split(k, t, k1, {}); reorder(i, t, j, k1); precompute(A(i,j) * X(j,k), k1, k1, w); parallelize(i, gpu_block, no_races);"
    " parallelize([1], k1, gpu_thread, no_races); parallelize([0], k1, gpu_thread, no_races); workspace(w, registers)"
)
WARPS = TILES.replace("parallelize(i, gpu_block, no_races)", "parallelize(i, gpu_warp, no_races)")
SPGEMM, CSR = "C(i,j) = A(i,k) * B(k,j)", {"A": "csr", "B": "csr", "C": "csr"}
ROWS = "assemble(C, insert); parallelize(i, gpu_block, no_races); parallelize([0], j, gpu_thread, no_races)"


def source(size: int, arch: str, schedule: str = TILES) -> str:
    return st.compile(SPMM, {"A": "csr"}, schedule=schedule.format(size), target="cuda", arch=arch).source


@pytest.mark.parametrize(
    ("arch", "kilobytes"),
    [("sm_61", 48), ("sm_75", 64), ("sm_80", 163), ("sm_86", 99), ("sm_90", 227), ("sm_90a", 227), ("sm_100f", 227), ("sm_120", 99),
     ("sm_999", 48)],
)  # fmt: skip
def test_architectures_have_so_much(arch: str, kilobytes: int) -> None:
    assert shared_bytes(arch) == 1024 * kilobytes


def test_kernels_are_launched_with_more_than_every_gpu_lets_them_declare() -> None:
    assert "ST_SHARED(double, w, 6144);" in source(6144, "sm_80")  # 48 KiB
    text = source(10_000, "sm_80")
    assert "ST_LAUNCHED(double, w, 10000, 0);" in text
    assert "st_device.launch(i_size, {1024, 80000}, st_kernel_part," in text
    assert "ST_LAUNCHED_OF_WARP(double, w, 1000, 8, 32, 0);" in source(1000, "sm_80", WARPS)
    tables = st.compile(SPGEMM, CSR, schedule=ROWS, target="cuda", arch="sm_80").source
    assert "ST_LAUNCHED(double, w_vals_2_near_3, 8192, 32768);" in tables
    assert "ST_LAUNCHED(int32_t, w_keys_2_near_3, 8192, 98304);" in tables
    assert "if (most_keys_2 > 1536) {\n    st_device.launch(st_resident_blocks(1024), {1024, 131072}," in tables
    assert "if (most_keys_2 > 6144) {" in tables


def test_what_an_architecture_does_not_have_is_refused() -> None:
    assert "{1024, 131072}" in source(16_384, "sm_80")
    message = "on a GPU of this architecture the threads of a block share 101376 bytes, and the workspaces take 131072; split them"
    with pytest.raises(ScheduleError, match=message):
        source(16_384, "sm_86")
    with pytest.raises(ScheduleError, match="share 166912 bytes, and the workspaces take 192000"):
        source(3000, "sm_80", WARPS)
    assert "ST_LAUNCHED_OF_WARP(double, w, 3000, 8, 32, 0);" in source(3000, "sm_90", WARPS)
    for arch in ("sm_61", "sm_70"):
        text = st.compile(SPGEMM, CSR, schedule=ROWS, target="cuda", arch=arch).source
        assert ("ST_LAUNCHED(" in text) == (arch == "sm_70")


def test_sums_over_a_block_take_their_part() -> None:
    """A workspace of 48 KiB leaves no room for what a sum over the warps of a block declares, 256 bytes."""
    schedule = (
        "split(j, t, j1, {}); precompute(A(i,j) * x(j), j1, j1, w); parallelize(i, gpu_block, no_races); workspace(w, registers);"
        " parallelize([1], j1, gpu_thread, temporary); parallelize([0], j1, gpu_thread, no_races)"
    )
    for size, macro in ((6112, "ST_SHARED(double, w, 6112);"), (6144, "ST_LAUNCHED(double, w, 6144, 0);")):
        text = st.compile("y(i) = A(i,j) * x(j)", {}, schedule=schedule.format(size), target="cuda", arch="sm_90").source
        assert macro in text
        assert "st_add_of_threads_of_block(" in text


@needs_cxx
@pytest.mark.parametrize(("size", "schedule"), [(10_000, TILES), (1000, WARPS)])
def test_workspaces_that_kernels_are_launched_with(size: int, schedule: str) -> None:
    rng = np.random.default_rng(0)
    matrix = rng.integers(1, 5, (5, 4)) * (rng.random((5, 4)) < 0.5)
    x = rng.integers(1, 5, (4, size + 100)).astype(float)
    kernel = st.compile(SPMM, {"A": "csr"}, schedule=schedule.format(size), target=gpu.TARGET)
    assert "ST_LAUNCHED" in kernel.source
    np.testing.assert_array_equal(kernel(A=matrix.astype(float), X=x), matrix @ x)


@needs_cxx
def test_rows_whose_tables_take_all_that_a_block_shares() -> None:
    """Rows of some keys, of thousands, and of more than shared memory has room for."""
    rng = np.random.default_rng(0)
    first = scipy.sparse.csr_array(np.array([[1.0, 1, 1, 1], [0, 2, 0, 0], [0, 0, 0, 3], [0, 0, 0, 0], [4, 0, 0, 1]]))
    kept = rng.random((4, 9000)) < np.array([[0.2], [0.3], [0.002], [0.05]])
    second = scipy.sparse.csr_array(rng.integers(1, 5, kept.shape) * kept.astype(float))
    kernel = st.compile(SPGEMM, CSR, schedule=ROWS, target=gpu.TARGET)
    for right in (second, scipy.sparse.csr_array(second.toarray().repeat(3, axis=1))):
        found, wanted = kernel(A=first, B=right).to_scipy(), (first @ right).tocsr()
        wanted.sort_indices()
        np.testing.assert_array_equal(found.indptr, wanted.indptr)
        np.testing.assert_array_equal(found.indices, wanted.indices)
        np.testing.assert_array_equal(found.data, wanted.data)


def test_what_a_kernel_is_launched_with_is_read_back_from_its_text() -> None:
    kernel = st.compile(SPMM, {"A": "csr"}, schedule=TILES.format(10_000), target="cuda", arch="sm_90").default_kernel
    text = kernel.stages["members"]
    assert "blocks of 1024 sharing 80000:" in text
    assert show_function(parse_function(text)) == text


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_nvrtc_compiles_it(arch: str) -> None:
    pytest.importorskip("cuda.core")
    for text in (source(10_000, arch), source(1000, arch, WARPS), st.compile(SPGEMM, CSR, schedule=ROWS, target="cuda", arch=arch).source):
        assert compile_cubin(text, arch, CSRC).startswith(b"\x7fELF")


@pytest.mark.slow
def test_nvcc_compiles_what_sets_it(tmp_path: Path) -> None:
    try:
        nvcc = find_nvcc()
    except BuildError as error:
        pytest.skip(str(error))
    (tmp_path / "kernel.cu").write_text(source(10_000, "sm_90"))
    command = [nvcc, *compile_flags("sm_90"), "-Werror", "all-warnings", "-I", str(CSRC), "-o", "kernel.so", "kernel.cu"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:3000]
