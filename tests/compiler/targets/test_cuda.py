"""CUDA C++: what is generated of schedules, that nvcc compiles it, and that it is right where the executor runs it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import sparsetune as st
from differential import gpu
from differential.runner import run_isolated
from differential.scheduled import reference
from sparsetune.compiler.build.standalone import standalone
from sparsetune.compiler.errors import BuildError, ScheduleError
from sparsetune.compiler.ir.parser import parse_function
from sparsetune.compiler.ir.printer import show_function
from sparsetune.compiler.kernel import Signature
from sparsetune.compiler.native import devices
from sparsetune.compiler.native.devices import find_nvcc
from sparsetune.compiler.native.library import CSRC
from sparsetune.compiler.notation.nodes import accesses
from sparsetune.compiler.notation.parser import parse
from sparsetune.compiler.passes.cuda import CUDA as PASSES
from sparsetune.compiler.passes.manager import VectorUnit
from sparsetune.compiler.space.library import LIBRARY

pytestmark = pytest.mark.cc
needs_cxx = pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")


@pytest.fixture(scope="module")
def nvcc() -> str:
    try:
        return find_nvcc()
    except BuildError as error:
        pytest.skip(str(error))



SPMV, SPMM = "y(i) = A(i,j) * x(j)", "Y(i,k) = A(i,j) * X(j,k)"
WARPS = "parallelize(i, gpu_warp, no_races); parallelize(j, gpu_thread, parallel_reduction)"
BLOCKS = "parallelize(i, gpu_block, no_races); parallelize(j, gpu_thread, parallel_reduction)"
NONZEROS = (
    "collapse(i, j, f); pos(f, p, A); split(p, b, q, 256); split(q, t, n, 8); parallelize(b, gpu_block, no_races);"
    " parallelize(t, gpu_thread, atomics)"
)
CARRIED = (
    "collapse(i, j, f); pos(f, p, A); split(p, b, q, 64); split(q, t, n, 2); parallelize(b, gpu_block, temporary);"
    " parallelize(t, gpu_thread, temporary)"
)
SHARED = (
    "split(k, k0, k1, 8); reorder(i, k0, j, k1); precompute(A(i,j) * X(j,k), k1, k1, w); parallelize(i, gpu_block, no_races);"
    " parallelize([1], k1, gpu_thread, no_races)"
)
SPGEMM = "C(i,j) = A(i,k) * B(k,j)"
CSR = {"A": "csr", "B": "csr", "C": "csr"}
PATH = (
    "collapse(i, j, f); pos(f, p, A); merge_path(p, m); split(m, b, q, 64); split(q, t, n, 4); parallelize(b, gpu_block, temporary);"
    " parallelize(t, gpu_thread, temporary)"
)

MAPPINGS = {
    "merge path": (SPMV, {"A": "csr"}, PATH),
    "merge path of fibres": ("M(i,l) = B(i,j,k) * C(j,l) * D(k,l)", {"B": "csf"}, "collapse(j, k, f); collapse(i, f, g);"
                             " pos(g, p, B(i,j,k)); merge_path(p, m); split(m, b, n, 16); reorder(b, l, n);"
                             " parallelize(b, gpu_block, no_races); parallelize(l, gpu_thread, atomics)"),
    "row to a thread": (SPMV, {"A": "csr"}, ""),
    "row to a warp": (SPMV, {"A": "csr"}, WARPS),
    "row to eight lanes": (SPMV, {"A": "csr"}, WARPS.replace("no_races", "no_races, lanes, 8") + "; unroll(j, 4)"),
    "row to a block": (SPMV, {"A": "csr"}, BLOCKS),
    "equal shares of nonzeros": (SPMV, {"A": "csr"}, NONZEROS),
    "shares of blocks": (
        SPMV, {"A": "csr"}, "collapse(i, j, f); pos(f, p, A); split_up(p, b, q, 3); split(q, t, n, 4); parallelize(b, gpu_block, atomics);"
        " parallelize(t, gpu_thread, atomics)",
    ),
    "columns": (SPMV, {"A": "csc"}, "parallelize(j, gpu_thread, atomics)"),
    "columns of a sparse vector": (SPMV, {"A": "csc", "x": "compressed"}, "parallelize(j, gpu_warp, atomics);"
                                   " parallelize(i, gpu_thread, atomics)"),
    "coordinates": (SPMV, {"A": "coo"}, "collapse(i, j, f); pos(f, p, A); split(p, b, t, 64); parallelize(b, gpu_block, no_races);"
                    " parallelize(t, gpu_thread, atomics)"),
    "entries one by one": (SPMV, {"A": "csr"}, "collapse(i, j, f); pos(f, p, A); split(p, b, t, 64); parallelize(b, gpu_block, no_races);"
                           " parallelize(t, gpu_thread, atomics)"),
    "pairs of columns": (SPMM, {"A": "csr"}, "split(k, t, k1, 2); reorder(i, t, j, k1); precompute(A(i,j) * X(j,k), k1, k1, w);"
                         " collapse(i, t, f); parallelize(f, gpu_thread, no_races)"),
    "tiles of rows and columns": (SPMM, {"A": "csr"}, "reorder(i, k, j); collapse(i, k, f); split(f, b, t, 48);"
                                  " parallelize(b, gpu_block, no_races); parallelize(t, gpu_thread, no_races)"),
    "sparse result": (SPMV, {"A": "csr", "y": "compressed"}, "parallelize(i, gpu_thread, no_races); assemble(y, insert)"),
    "dense rows": (SPMM, {"A": "csr"}, "parallelize(i, gpu_block, no_races); parallelize(k, gpu_thread, no_races)"),
    "dense rows, sums in registers": (SPMM, {"A": "csr"}, "reorder(i, k, j); parallelize(i, gpu_warp, no_races);"
                                      " parallelize(k, gpu_thread, no_races)"),
    "rows by nonzeros": (SPMM, {"A": "csr"}, "collapse(i, j, f); pos(f, p, A); split(p, b, n, 32); reorder(b, k, n);"
                         " parallelize(b, gpu_block, no_races); parallelize(k, gpu_thread, atomics)"),
    "sampled": ("Z(i,j) = B(i,j) * C(i,k) * D(j,k)", {"B": "csr", "Z": "csr"}, "collapse(i, j, f); pos(f, p, B); split(p, b, w, 8);"
                " parallelize(b, gpu_block, no_races); parallelize(w, gpu_warp, no_races); parallelize(k, gpu_thread, parallel_reduction)"),
    "fibres to warps": ("T(i,j) = B(i,j,k) * c(k)", {"B": "csf", "T": "dcsr"}, "collapse(i, j, f); pos(f, p, B(i,j,k)); split(p, b, w, 8);"
                        " parallelize(b, gpu_block, no_races); parallelize(w, gpu_warp, no_races);"
                        " parallelize(k, gpu_thread, parallel_reduction)"),
    "tensor times matrix": ("T(i,j,l) = B(i,j,k) * C(k,l)", {"B": "csf"}, "pos(i, p, B); parallelize(p, gpu_block, no_races);"
                            " parallelize(l, gpu_thread, no_races)"),
    "matricized tensor": ("M(i,l) = B(i,j,k) * C(j,l) * D(k,l)", {"B": "csf"}, "parallelize(i, gpu_block, no_races);"
                          " parallelize(l, gpu_thread, atomics)"),
    "matricized tensor by nonzeros": ("M(i,l) = B(i,j,k) * C(j,l) * D(k,l)", {"B": "csf"}, "collapse(j, k, f); collapse(i, f, g);"
                                      " pos(g, p, B(i,j,k)); split(p, b, n, 16); reorder(b, l, n); parallelize(b, gpu_block, no_races);"
                                      " parallelize(l, gpu_thread, atomics)"),
    "two dense factors": ("R(i,l,m) = B(i,j,k) * C(j,l) * D(k,m)", {"B": "csf"}, "parallelize(i, gpu_block, no_races);"
                          " parallelize(m, gpu_thread, no_races)"),
    "sums carried in order": (SPMV, {"A": "csr"}, CARRIED),
    "sums of coordinates carried": (SPMV, {"A": "coo"}, CARRIED.replace("64", "60")),
    "rows of sums carried": (SPMM, {"A": "csr"}, "collapse(i, j, f); pos(f, p, A); split(p, b, n, 16); reorder(b, k, n);"
                             " parallelize(b, gpu_block, temporary); parallelize(k, gpu_thread, no_races)"),
    "carried to slices": ("M(i,l) = B(i,j,k) * C(j,l) * D(k,l)", {"B": "csf"}, "collapse(j, k, f); collapse(i, f, g); pos(g, p, B(i,j,k));"
                          " split(p, b, q, 12); split(q, w, n, 4); reorder(b, w, l, n); parallelize(b, gpu_block, temporary);"
                          " parallelize(w, gpu_warp, temporary); parallelize(l, gpu_thread, no_races)"),
    "carried to fibres": ("T(i,j) = B(i,j,k) * c(k)", {"B": "csf", "T": "dcsr"}, "collapse(j, k, f); collapse(i, f, g); pos(g, p, B);"
                          " split(p, t, n, 4); parallelize(t, gpu_thread, temporary)"),
    "product": (SPGEMM, CSR, ""),
    "product of dense result": (SPGEMM, {"A": "csr", "B": "csr"}, "parallelize(i, gpu_warp, no_races);"
                                " parallelize(j, gpu_thread, no_races)"),
    "bitmap": (SPMV, {"A": "csr", "y": "bitmap"}, ""),
    "sum": ("Z(i,j) = B(i,j) + C(i,j)", {"B": "csr", "C": "csr", "Z": "csr"}, ""),
    "sum by warps": ("Z(i,j) = B(i,j) + C(i,j)", {"B": "csr", "C": "csr", "Z": "csr"}, "parallelize(i, gpu_warp, no_races);"
                     " assemble(Z, insert)"),
    "inner product": ("a = B(i,j) * C(i,j)", {"B": "csr", "C": "csr"}, "parallelize(i, gpu_thread, atomics)"),
    "blocks of one sum": ("a = x(i) * z(i)", {}, "split(i, b, t, 64); parallelize(b, gpu_block, atomics);"
                          " parallelize(t, gpu_thread, parallel_reduction)"),
    "transposed": ("Z(i,j) = 2 * B(j,i)", {"B": "csr", "Z": "csr"}, ""),
    "hashed result of one thread": ("y(i) = A(j,i) * x(j)", {"A": "csr", "y": "hashed"}, "assemble(y, insert)"),
    "one thread": ("y(i) = A(i,j) * x(j)", {"A": "csr", "x": "compressed"}, "bound(i, ib, 0, min_exact)"),
}  # fmt: skip
KERNELS = range(len((*gpu.TEMPLATES, *gpu.LARGE)))
EXTENTS = {"i": 19, "j": 14, "k": 37, "l": 6, "m": 3}


def operands(expression: str, formats: dict[str, str], seed: int = 0, density: float = 0.2) -> dict[str, np.ndarray[Any, Any]]:
    """Return whole numbers, of which every order of adding gives the same."""
    rng, found = np.random.default_rng(seed), {}
    for access in accesses(parse(expression).value):
        shape = tuple(EXTENTS[name] for name in access.indices)
        values = rng.integers(1, 5, shape).astype(float)
        found[access.tensor] = values * (rng.random(shape) < density) if access.tensor in formats else values
    return found


def dense(result: Any) -> np.ndarray[Any, Any]:
    return result.to_numpy() if isinstance(result, st.Tensor) else np.asarray(result)


def source(name: str) -> str:
    expression, formats, schedule = MAPPINGS[name]
    return st.compile(expression, formats, schedule=schedule, target="cuda", arch="sm_90").source


@needs_cxx
def test_every_mapping_is_right(tmp_path: Path) -> None:
    made = {
        name: st.compile(expression, formats, schedule=schedule, target=gpu.TARGET)
        for name, (expression, formats, schedule) in MAPPINGS.items()
    }
    gpu.build([kernel.default_kernel for kernel in made.values()], tmp_path, "mappings")
    for name, kernel in made.items():
        expression, formats, _ = MAPPINGS[name]
        for seed, density in ((0, 0.3), (1, 0.02)):
            arrays = operands(expression, formats, seed, density)
            expected = reference(expression, arrays, EXTENTS)
            np.testing.assert_array_equal(dense(kernel(**arrays)), expected, err_msg=f"{name}, {density}")


ODD = ("one row", "empty rows", "nothing")


def odd_operands(expression: str, formats: dict[str, str], pattern: str, rows: int) -> tuple[dict[str, Any], dict[str, int]]:
    """Return operands whose first slices are next to all empty, but for one that has everything, or all of them; and the extents."""
    rng, found = np.random.default_rng(0), {}
    extents = dict.fromkeys("ijklmr", 5)
    extents |= {"one row": {"j": 300}, "empty rows": {"i": rows}, "nothing": {}}[pattern]
    for access in accesses(parse(expression).value):
        shape = tuple(extents[name] for name in access.indices)
        values = rng.integers(1, 5, shape).astype(float)
        if access.tensor in formats:
            kept = np.zeros(shape, bool)
            if pattern == "one row":
                kept[2] = True
            elif pattern == "empty rows":
                kept[[1, -2]] = rng.random((2, *shape[1:])) < 0.6
            values *= kept
        found[access.tensor] = scipy.sparse.csr_array(values) if access.tensor in formats and values.ndim == 2 else values
    return found, extents


@needs_cxx
@pytest.mark.parametrize("rows", [700, pytest.param(100_000, marks=pytest.mark.nightly)])
def test_rows_of_any_length_in_all_mappings(rows: int, tmp_path: Path) -> None:
    """One row with all entries, so many rows next to none of which has entries, and no entries."""
    library = {f"library: {found.name}, {found.expression}": found for found in LIBRARY if found.target == "cuda"}
    every = MAPPINGS | {name: (found.expression, dict(found.formats), found.text) for name, found in library.items() if not found.extents}
    made = {name: st.compile(text, formats, schedule=schedule, target=gpu.TARGET) for name, (text, formats, schedule) in every.items()}
    gpu.build([kernel.default_kernel for kernel in made.values()], tmp_path, "mappings")
    for name, kernel in made.items():
        expression, formats, _ = every[name]
        for pattern in ODD:
            arrays, extents = odd_operands(expression, formats, pattern, rows if expression == SPMV and "A" in formats else 400)
            if expression == SPMV:
                x = arrays["x"]
                expected = arrays["A"] @ (x if isinstance(x, np.ndarray) else x.toarray().ravel())
            else:
                plain = {tensor: value if isinstance(value, np.ndarray) else value.toarray() for tensor, value in arrays.items()}
                expected = reference(expression, plain, extents)
            np.testing.assert_array_equal(dense(kernel(**arrays)), expected, err_msg=f"{name}, {pattern}")


@needs_cxx
@pytest.mark.slow
def test_random_schedules_are_right() -> None:
    found = run_isolated(range(30), chunk=15, work=gpu.run_gpu, describe=gpu.random_gpu)
    assert not found, "\n".join(map(str, found))


@needs_cxx
@pytest.mark.slow
def test_random_expressions_are_right() -> None:
    found = run_isolated(range(60), chunk=30, work=gpu.run_mapped)
    assert not found, "\n".join(map(str, found))


@needs_cxx
@pytest.mark.slow
def test_random_sums_are_carried_rightly() -> None:
    found = run_isolated(range(10), chunk=10, work=gpu.run_carried, describe=gpu.carried_gpu)
    assert not found, "\n".join(map(str, found))


@needs_cxx
@pytest.mark.nightly
def test_a_campaign_of_random_sums_that_are_carried() -> None:
    found = run_isolated(range(1000, 1500), chunk=25, work=gpu.run_carried, describe=gpu.carried_gpu)
    assert not found, "\n".join(map(str, found))


@needs_cxx
@pytest.mark.nightly
def test_a_campaign_of_random_schedules() -> None:
    found = run_isolated(range(1000, 3000), chunk=25, work=gpu.run_gpu, describe=gpu.random_gpu)
    assert not found, "\n".join(map(str, found))


@needs_cxx
@pytest.mark.nightly
def test_a_campaign_of_random_expressions() -> None:
    found = run_isolated(range(1000, 6000), chunk=50, work=gpu.run_mapped)
    assert not found, "\n".join(map(str, found))


@needs_cxx
def test_templates_of_every_kernel_are_right() -> None:
    """A few of those that have few."""
    first = [kernel * gpu.EACH + number for kernel in (0, 1, 4, 5) for number in (0, 2)]
    assert not gpu.run_templates(first)


@needs_cxx
@pytest.mark.nightly
@pytest.mark.parametrize("kernel", KERNELS)
def test_all_templates_are_right(kernel: int) -> None:
    numbers = gpu.numbers_of_templates(kernel)
    assert numbers
    found = run_isolated(numbers, chunk=20, work=gpu.run_templates, describe=gpu.one_template)
    assert not found, "\n".join(map(str, found))


@needs_cxx
def test_what_the_tuner_lists_for_gpus_is_right() -> None:
    found = gpu.searched_templates()
    assert not any("cpu_" in case.schedule for case in found)
    assert {unit for case in found for unit in gpu.UNITS if unit in case.schedule} == set(gpu.UNITS)
    assert not gpu.run_searched(range(0, len(found), 23))


@needs_cxx
@pytest.mark.nightly
def test_all_that_the_tuner_lists_for_gpus_is_right() -> None:
    found = run_isolated(range(len(gpu.searched_templates())), chunk=20, work=gpu.run_searched)
    assert not found, "\n".join(map(str, found))


UNOPTIMISED = ("-O0", "-Xcicc", "-O0", "-Xptxas", "-O0")
"""Takes a third of the time, and refuses what is no CUDA all the same."""


def compile_for_devices(nvcc: str, sources: list[str], folder: Path, how: Sequence[str] = ("-O1",)) -> None:
    """Compile kernels, in one file, for both architectures."""
    parts = ['#include "st_cuda.h"\n']
    for number, text in enumerate(sources):
        plain = text.replace('#include "st_cuda.h"\n', "").replace("int32_t st_kernel(", f"int32_t st_kernel_{number}(")
        parts.append(f"namespace st_file{number} {{\n{plain}}}\n")
    (folder / "kernels.cu").write_text("".join(parts))
    code = [f"-gencode=arch=compute_{arch},code=sm_{arch}" for arch in (80, 90)]
    command = [nvcc, *how, "-std=c++17", "-Werror", "all-warnings", *code, "-c", "-I", str(CSRC), "-o", "kernels.o", "kernels.cu"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:3000] + done.stdout[:3000]


@pytest.mark.slow
def test_forty_kernels_compile_for_two_architectures(nvcc: str, tmp_path: Path) -> None:
    library = [
        st.compile(found.expression, dict(found.formats), dict(found.extents), found.schedule, target="cuda", arch="sm_90").source
        for found in LIBRARY
        if found.target == "cuda"
    ]
    drawn: list[str] = []
    for seed in range(100, 200):
        try:
            drawn.append(gpu.compiled(gpu.random_gpu(seed)).source)
        except ScheduleError:
            continue
        if len(drawn) + len(library) + len(MAPPINGS) == 40:
            break
    compile_for_devices(nvcc, [source(name) for name in MAPPINGS] + library + drawn, tmp_path, UNOPTIMISED)


@pytest.mark.nightly
@pytest.mark.parametrize("kernel", KERNELS)
def test_all_templates_compile_for_two_architectures(kernel: int, nvcc: str, tmp_path: Path) -> None:
    """All of the kernels with hundreds of templates, and every tenth of those with thousands."""
    sources: list[str] = []
    refused: list[ScheduleError] = []
    numbers = gpu.numbers_of_templates(kernel)
    for number in numbers if len(numbers) < 500 else numbers[::10]:
        try:
            sources.append(gpu.compiled(gpu.one_template(number)).source)
        except ScheduleError as error:
            refused.append(error)
    assert all(gpu.NEVER in str(error) for error in refused)
    for first in range(0, len(sources), 40):
        folder = tmp_path / str(first)
        folder.mkdir()
        compile_for_devices(nvcc, sources[first : first + 40], folder)


def test_the_nvcc_that_a_user_names_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "nvidia" / "cu99" / "bin" / "nvcc"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    wheels = SimpleNamespace(submodule_search_locations=[str(tmp_path / "nvidia")])
    monkeypatch.setattr(devices, "find_spec", {"nvidia": wheels}.get)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("SPARSETUNE_NVCC", raising=False)
    assert devices.find_nvcc() == str(program)
    monkeypatch.setenv("SPARSETUNE_NVCC", "/nowhere/nvcc")
    with pytest.raises(BuildError, match=r"nvcc was not found \(/nowhere/nvcc\)"):
        devices.find_nvcc()
    monkeypatch.delenv("SPARSETUNE_NVCC")
    program.chmod(0o644)
    with pytest.raises(BuildError, match=r"pip install 'sparsetune\[cuda\]'"):
        devices.find_nvcc()


@pytest.mark.slow
def test_sources_compile_without_the_package(nvcc: str, tmp_path: Path) -> None:
    kernel = st.compile(SPMM, {"A": "csr"}, schedule=SHARED, target="cuda", arch="sm_90").default_kernel
    for name, text in standalone(kernel, "sm_90").items():
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    for target in ("kernel.so", "kernel_on_cpu.so"):
        done = subprocess.run(["make", f"NVCC={nvcc}", target], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[:3000]
        assert (tmp_path / target).is_file()


@needs_cxx
def test_workspaces_of_a_block_are_shared_between_barriers() -> None:
    kernel = st.compile(SPMM, {"A": "csr"}, schedule=SHARED, target=gpu.TARGET)
    assert "ST_SHARED(double, w, 8);" in kernel.source
    assert "st_barrier_of_block();" in kernel.source
    arrays = operands(SPMM, {"A": "csr"})
    np.testing.assert_array_equal(kernel(**arrays), arrays["A"] @ arrays["X"])


def test_sums_of_a_warp_are_shuffled_and_stored_once() -> None:
    text = source("row to a warp")
    assert "ty += st_add_of_threads_of_warp(ty_own);" in text
    assert "if (st_first_of_warp()) {\n      y_vals[i] = ty;" in text
    assert "st_atomic" not in text


TILES = (
    "split(k, t, k1, 4); reorder(i, t, j, k1); precompute(A(i,j) * X(j,k), k1, k1, w); parallelize(i, gpu_warp, no_races);"
    " parallelize(t, gpu_thread, no_races)"
)


@needs_cxx
@pytest.mark.parametrize(
    ("schedule", "extent", "dtype", "call"),
    [
        (TILES, 8, "float32", "st_load_wide(X_vals_row, X_vals, j * 8 + k_low, 4);"),
        (TILES, 8, "float64", "st_load_wide(X_vals_row, X_vals, j * 8 + k_low, 4);"),
        ("parallelize(i, gpu_thread, no_races)", 16, "float32", "st_load_wide(X_vals_row, X_vals, j * 16, 16);"),
        (TILES, 6, "float32", None),  # rows begin between multiples of four
        (TILES.replace("k1, 4)", "k1, 2)"), 6, "float64", "st_load_wide(X_vals_row, X_vals, j * 6 + k_low, 2);"),
        (TILES, None, "float32", None),
    ],
)
def test_neighbouring_elements_are_loaded_together_where_they_are_aligned(
    schedule: str, extent: int | None, dtype: str, call: str | None
) -> None:
    known = {} if extent is None else {"k": extent}
    kernel = st.compile(SPMM, {"A": "csr"}, known, schedule, dtype=dtype, target=gpu.TARGET)
    assert ("st_load_wide" in kernel.source) == (call is not None)
    assert call is None or call in kernel.source
    arrays = {name: values.astype(dtype) for name, values in operands(SPMM, {"A": "csr"}).items()}
    arrays["X"] = np.tile(arrays["X"], (1, 2))[:, : extent or 37]
    np.testing.assert_array_equal(kernel(**arrays), arrays["A"] @ arrays["X"])


@needs_cxx
def test_sums_that_are_carried_need_no_atomics() -> None:
    text = source("sums carried in order")
    assert "st_atomic" not in text
    assert "st_device.carry(y_vals_to, y_vals_kept, y_vals, y_vals_slots, 1, 0);" in text
    rng = np.random.default_rng(0)
    matrix, x = scipy.sparse.csr_array(rng.random((3, 400)) * (rng.random((3, 400)) < 0.9)), rng.random(400)
    found = st.compile(SPMV, {"A": "csr"}, schedule=CARRIED, target=gpu.TARGET)(A=matrix, x=x)
    np.testing.assert_allclose(found, matrix.toarray() @ x, rtol=1e-14)


def test_atomic_sums_are_gathered_first() -> None:
    text = source("equal shares of nonzeros")
    assert "y_vals_sum += A_vals[p_A2] * x_vals[j];" in text
    assert "st_upper_bound_i32(A2_pos" in text


def test_shares_of_nonzeros_are_one_kernel_without_waiting() -> None:
    text = source("equal shares of nonzeros")
    assert "st_device.take(" not in text
    assert "st_device.launch((A2_length + 255) / 256, 32," in text  # a tile of 256 has 32 of 8
    assert "b_end = (A2_length + 255) / 256;" in text
    assert "st_barrier_of_block" not in text


def test_threads_look_for_rows_among_those_of_their_block() -> None:
    text = source("equal shares of nonzeros")
    of_block, of_thread = text.index("st_upper_bound_of_warp_i32(A2_pos, 1, i_size + 1, p_low)"), text.index("for (int64_t t =")
    assert of_block < of_thread < text.index("st_upper_bound_i32(A2_pos, first_A1 + 1, past_A1 + 1, p_low_2)")
    assert text.count("i_size + 1, p_low") == 1


def test_entries_of_one_long_row_go_to_all_warps() -> None:
    text = source("sampled")
    assert "for (int64_t w = st_warp_of_block() + p_low, w_end = p_high; w < w_end; w += st_warps_of_block()) {" in text
    assert "st_device.fill" not in text  # every entry is written, so nothing is before


def test_loads_that_are_unrolled_ask_for_no_rows() -> None:
    """Senanayake et al., Figure 2e: products are computed first, whatever rows they belong to."""
    named = next(found for found in LIBRARY if found.name == "position split, unrolled loads")
    text = st.compile(named.expression, dict(named.formats), schedule=named.text, target="cuda", arch="sm_90").source
    loads = text[text.index("double t[16] = {0};") :].split("first_A1")[0]
    assert "ST_UNROLL(16)" in loads
    assert "int64_t j = A2_crd_row[nz_pre_1];" in loads
    assert "A2_pos" not in loads


def test_a_sparse_result_is_counted_scanned_and_filled() -> None:
    text = source("product")
    host = text[text.index("ST_EXPORT") :]
    first, scan, second = host.index("st_kernel_part"), host.index("st_device.scan("), host.rindex("st_device.launch(")
    assert first < scan < second
    assert host.count("st_device.publish(") == 3


def test_positions_beyond_32_bits() -> None:
    compiled = st.compile(SPMV, {"A": "csr"}, schedule=NONZEROS, target="cuda", arch="sm_90")
    wide = compiled.kernel_for(Signature((("A", "float64"), ("x", "float64")), (("A", (64, 64)), ("x", (64,))), wide=True)).source
    assert "ST_ARRAY(const int64_t) A2_pos" in wide
    assert "int32_t p" not in wide


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        ("parallelize(i, gpu_block, temporary); precompute(A(i,j) * x(j), j, j, w)", "directive 2"),
        ("parallelize(j, gpu_block, temporary)", "combine what they add"),
        (CARRIED.replace("split(q, t, n, 2);", "split(q, n, t, 2); reorder(b, t, n);"), "in order; these add to several; use atomics"),
        (
            "split(j, a, b, 8192); precompute(A(i,j) * x(j), b, b, w); workspace(w, registers); parallelize(i, gpu_block, no_races);"
            " parallelize([0], b, gpu_thread, no_races)", "on a GPU a block has 48128 bytes",
        ),
        ("parallelize(i, cpu_thread, no_races)", "target cuda has no such unit; it has gpu_block, gpu_thread, gpu_warp"),
    ],
)
def test_what_has_no_form_is_refused(schedule: str, message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        _ = st.compile(SPMV, {"A": "csr"}, schedule=schedule, target="cuda", arch="sm_90").source


def test_nothing_runs_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    kernel = st.compile(SPMV, {"A": "csr"}, target="cuda", arch="sm_90")
    assert str(kernel.schedule) == "parallelize(i, gpu_thread, no_races)"
    with pytest.raises(BuildError, match=r"^target cuda needs an NVIDIA GPU"):
        kernel(A=np.eye(3), x=np.ones(3))


@needs_cxx
def test_functions_of_expressions_have_the_values_of_numpy() -> None:
    kernel = st.compile("y(i) = exp(x(i)) + pow(x(i), 2.5) + tanh(x(i)) * sqrt(x(i)) + abs(log(x(i)))", target=gpu.TARGET)
    x = np.linspace(0.1, 2, 40)
    np.testing.assert_allclose(kernel(x=x), np.exp(x) + x**2.5 + np.tanh(x) * np.sqrt(x) + np.abs(np.log(x)))


@needs_cxx
def test_transfers_are_counted() -> None:
    kernel = st.compile(SPMV, {"A": "csr"}, target=gpu.TARGET)
    stored, x = scipy.sparse.eye_array(10, format="csr"), np.ones(10)
    bound = kernel.bind(A=stored, x=x)
    np.testing.assert_array_equal(bound(), x)
    assert bound.launch.transferred == 11 * 4 + 10 * 4 + 10 * 8 + 10 * 8 + 10 * 8
    x *= 2
    np.testing.assert_array_equal(bound(), x)


@needs_cxx
def test_dense_blocks_without_entries_take_no_place() -> None:
    """Below a compressed level: the place where one would go is that of the next one, which another thread fills."""
    order = (2, 0, 1)
    kernel = st.compile(
        "A(j,i,l) = B(l,j,i)",
        {"B": "dense, dense, compressed", "A": st.Format("compressed, dense, compressed", order)},
        target=gpu.TARGET,
    )
    b = np.zeros((7, 3, 4))
    b[2, 1, 3], b[4, 0, 0], b[4, 2, 1] = 1.0, 2.0, 3.0
    found = kernel(B=st.tensor(b, format="dense, dense, compressed"))
    assert found.nnz == 3
    np.testing.assert_array_equal(found.to_numpy(), b.transpose(1, 2, 0))


@needs_cxx
def test_faults_of_kernels_are_errors() -> None:
    kernel = st.compile(SPMV, {"A": "csr"}, target="cuda-executor").default_kernel
    kernel.__dict__["source"] = kernel.source.replace("y_vals[i] = ty", "y_vals[0] = ty")
    with pytest.raises(BuildError, match=r"^the device reports: block 0, thread \d+: race on element 0"):
        kernel(A=scipy.sparse.eye_array(10, format="csr"), x=np.ones(10))


@pytest.mark.parametrize("name", MAPPINGS)
def test_texts_of_every_stage_are_read_back(name: str) -> None:
    expression, formats, schedule = MAPPINGS[name]
    kernel = st.compile(expression, formats, schedule=schedule, target="cuda", arch="sm_90").default_kernel
    functions = [kernel.spec.function, *(made for _, made in PASSES.stages(kernel.spec.function, VectorUnit(0)))]
    for made in functions:
        text = show_function(made)
        again = parse_function(text)
        assert show_function(again) == text
