"""Kernels for GPUs as they run where there is one: cubins of NVRTC, the host's part on the driver, for which a pretended one stands in."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import sparsetune as st
from sparsetune.compiler.native.library import CSRC
from sparsetune.compiler.native.nvrtc import compile_cubin
from sparsetune.compiler.targets.cuda_launch import CudaKernel
from sparsetune.compiler.targets.cuda_objects import cubin_of, host_object

pytest.importorskip("cuda.core")
pytestmark = [pytest.mark.cc, pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")]

SPMV = "y(i) = A(i,j) * x(j)"
CARRIED = (
    "collapse(i, j, f); pos(f, p, A); split(p, b, q, 64); split(q, t, n, 2); parallelize(b, gpu_block, temporary);"
    " parallelize(t, gpu_thread, temporary)"
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the pretended driver, a program that says what GPU there is, and a cache that kernels are kept in."""
    folder = tmp_path_factory.mktemp("driver")
    source = Path(__file__).with_name("fake_driver.c")
    subprocess.run(["gcc", "-shared", "-fPIC", "-w", "-o", str(folder / "libcuda.so"), str(source)], check=True)
    (folder / "nvidia-smi").write_text("#!/bin/sh\necho 9.0\n")
    (folder / "nvidia-smi").chmod(0o755)
    (folder / "cache").mkdir()
    return folder


@pytest.fixture
def driver(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The log of what is launched; what the driver loads is loaded anew for every test."""
    shutil.copytree(made / "cache", tmp_path / "cache")
    monkeypatch.setenv("PATH", str(made), prepend=":")
    monkeypatch.setenv("SPARSETUNE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SPARSETUNE_LIBCUDA", str(made / "libcuda.so"))
    monkeypatch.setenv("ST_FAKE_LOG", str(tmp_path / "log"))
    yield tmp_path / "log"
    shutil.copytree(tmp_path / "cache", made / "cache", dirs_exist_ok=True)


def compute(schedule: str = "", **options: str) -> None:
    """Run a kernel whose result means nothing."""
    st.compile(SPMV, {"A": "csr"}, schedule=schedule, target="cuda", **options)(A=scipy.sparse.eye_array(10, format="csr"), x=np.ones(10))


def test_many_threads_compile_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A module that another thread is importing is half there, and two that make one object do not take each other's files away."""
    state = SimpleNamespace(inside=0, most=0)

    def slowly(name: str) -> Any:
        state.inside += 1
        state.most = max(state.most, state.inside)
        time.sleep(0.01)
        state.inside -= 1
        return import_module(name)

    monkeypatch.setattr("sparsetune.compiler.native.nvrtc.import_module", slowly)
    monkeypatch.setenv("SPARSETUNE_CACHE", str(tmp_path))
    source = st.compile(SPMV, {"A": "csr"}, target="cuda", arch="sm_90").source
    with ThreadPoolExecutor(8) as pool:
        objects = [pool.submit(host_object, source, 300.0) for _ in range(4)]
        images = [pool.submit(cubin_of, source, "sm_90") for _ in range(4)]
        assert len({made.result() for made in objects}) == len({made.result() for made in images}) == 1
    assert state.most == 1
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".cubin", ".so"]


def test_kernels_are_launched_with_what_they_take(driver: Path) -> None:
    compute()
    name, blocks, threads, stream, *given = driver.read_text().split()
    assert (name, blocks, threads, stream) == ("st_kernel_part", "1", "256", "0")
    assert len(set(given[:5])) == 5
    assert given[5] == "10"


def test_kernels_of_all_files_are_launched_by_their_types(driver: Path) -> None:
    compute(CARRIED)
    launched = [line.split() for line in driver.read_text().splitlines()]
    assert [line[0] for line in launched[:3]] == ["st_fill_part_f64", "st_fill_part_i64", "st_kernel_part"]
    assert launched[0][1:3] == ["1", "256"]
    assert launched[0][5:] == ["0", "10", "0"]


def test_what_is_compiled_once_needs_no_compiler_again(driver: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compute()
    monkeypatch.setattr("sparsetune.compiler.targets.cuda_objects.compile_cubin", None)
    monkeypatch.setenv("CXX", "/nowhere")
    monkeypatch.setattr("sparsetune.compiler.targets.cuda_objects.shutil.which", lambda _: None)
    monkeypatch.setattr("sparsetune.compiler.targets.cuda.require_gpu", lambda _: None)
    monkeypatch.setattr("sparsetune.compiler.targets.cuda.architecture_here", lambda: "sm_90")
    kernel = st.compile(SPMV, {"A": "csr"}, target="cuda", arch="sm_90")
    kernel(A=scipy.sparse.eye_array(10, format="csr"), x=np.ones(10))


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("cuInit=100", "^target cuda needs an NVIDIA GPU, and its driver finds none: said by the driver"),
        ("cuInit=803", "^the GPU's driver reports: said by the driver .error 803."),
        ("cuModuleLoadData=209", "^the GPU's driver does not load what was compiled for sm_90: .*; name the architecture of this GPU"),
        ("cuModuleLoadData=222", "install a newer driver"),
        ("cuLaunchKernel=700", "^the device reports: said by the driver .error 700.; the kernel's result is lost"),
        ("cuModuleGetFunction=500", "^the device reports: said by the driver .error 500."),
    ],
)
def test_what_is_wrong_is_said(driver: Path, fault: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ST_FAKE", fault)
    with pytest.raises(st.BuildError, match=message):
        compute()


def test_memory_of_others_is_left_alone_after_a_fault(driver: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = st.compile(SPMV, {"A": "csr"}, target="cuda").default_kernel.executable
    assert isinstance(loaded, CudaKernel)
    adopted: list[object] = []
    library = SimpleNamespace(
        **{name: getattr(loaded.library, name) for name in ("st_use_stream", "st_upload", "st_get", "st_release", "st_trouble")},
        st_adopt=lambda memory, *_: adopted.append(memory),
        st_disown=adopted.remove,
    )
    watched = replace(loaded, library=library)
    vector = watched.empty((10,), np.dtype(np.float64))
    arrays = [vector if one.source == ("x", "values") else np.zeros(11, np.int64) for one in loaded.parameters]
    launch = watched.bind(arrays, [10, 10], 0, 1)
    monkeypatch.setenv("ST_FAKE", "cuStreamSynchronize=700")
    with pytest.raises(st.BuildError, match="the device reports"):
        launch.run()
    assert any(one is vector for one in arrays)
    assert not adopted


def test_a_device_without_memory(driver: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ST_FAKE", "cuMemAlloc=2")
    with pytest.raises(st.ResourceError, match="the device has no 44 B for an operand or the result"):
        compute()


def test_a_driver_that_is_missing_or_older(driver: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARSETUNE_LIBCUDA", "/nowhere/libcuda.so")
    with pytest.raises(st.BuildError, match=r"^target cuda needs a newer NVIDIA driver: the driver has no libcuda\.so\.1"):
        compute()


def test_an_architecture_that_nobody_knows(driver: Path) -> None:
    with pytest.raises(st.BuildError, match=r"^NVRTC does not know the architecture sm_11; install a newer nvidia-cuda-nvrtc"):
        compute(arch="sm_11")


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_nvrtc_compiles_every_kind_of_kernel(arch: str) -> None:
    wishes = (
        ("C(i,j) = A(i,k) * B(k,j)", {"A": "csr", "B": "csr", "C": "csr"}, "", ("+", "*"), (b"st_scan_part_i64",)),
        (SPMV, {"A": "csr"}, CARRIED, ("min", "+"), (b"st_carry_f64", b"st_fill_part_i64")),
    )
    for expression, formats, schedule, semiring, names in wishes:
        source = st.compile(expression, formats, schedule=schedule, target="cuda", arch=arch, semiring=semiring).source
        image = compile_cubin(source, arch, CSRC)
        assert image.startswith(b"\x7fELF")
        assert all(name in image for name in names)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_nvrtc_compiles_the_least_whole_numbers(dtype: str) -> None:
    """It has no headers, from which other compilers take their names."""
    source = st.compile(SPMV, {"A": "csr"}, target="cuda", arch="sm_90", semiring=("max", "+"), dtype=dtype).source
    assert f"INT{dtype.removeprefix('int')}_MIN" in source
    assert compile_cubin(source, "sm_90", CSRC).startswith(b"\x7fELF")


def test_what_nvrtc_refuses_is_said() -> None:
    with pytest.raises(st.BuildError, match=r"^NVRTC failed: .*error: .*undefined"):
        compile_cubin('#include "st_cuda.h"\nST_KERNEL(32) part() { nothing(); }\n', "sm_90", CSRC)
