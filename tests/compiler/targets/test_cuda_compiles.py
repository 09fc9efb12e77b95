"""nvcc and NVRTC compile generated CUDA C++; nvcc for two architectures, also where our package is not."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
import sparsetune as st
from differential import gpu, gpu_templates
from differential.cases import random_case
from differential.gpu_mappings import MAPPINGS, SHARED, SPMM, source
from differential.gpu_results import ALONE, COLLECTED, COPIED, INNER
from differential.scheduled import Scheduled, kinds_of
from sparsetune.compiler.build.standalone import standalone
from sparsetune.compiler.errors import BuildError, ScheduleError
from sparsetune.compiler.evaluate import compile_kernel
from sparsetune.compiler.native import devices
from sparsetune.compiler.native.devices import find_nvcc
from sparsetune.compiler.native.library import CSRC
from sparsetune.compiler.space.library import LIBRARY
from sparsetune.compiler.targets.cuda_objects import cubin_of

pytestmark = pytest.mark.cc


@pytest.fixture(scope="module")
def nvcc() -> str:
    try:
        return find_nvcc()
    except BuildError as error:
        pytest.skip(str(error))
UNOPTIMISED = ("-O0", "-Xcicc", "-O0", "-Xptxas", "-O0")
"""Takes a third of the time, and refuses what is no CUDA all the same."""


def compile_for_devices(nvcc: str, sources: list[str], folder: Path) -> None:
    """Compile kernels, in one file, for both architectures."""
    parts = ['#include "st_cuda.h"\n']
    for number, text in enumerate(sources):
        plain = text.replace('#include "st_cuda.h"\n', "").replace("int32_t st_kernel(", f"int32_t st_kernel_{number}(")
        parts.append(f"namespace st_file{number} {{\n{plain}}}\n")
    (folder / "kernels.cu").write_text("".join(parts))
    code = [f"-gencode=arch=compute_{arch},code=sm_{arch}" for arch in (80, 90)]
    command = [nvcc, *UNOPTIMISED, "-std=c++17", "-Werror", "all-warnings", *code, "-c", "-I", str(CSRC), "-o", "kernels.o", "kernels.cu"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:3000] + done.stdout[:3000]


@pytest.mark.slow
def test_forty_kernels_compile_for_two_architectures(nvcc: str, tmp_path: Path) -> None:
    library = [
        st.compile(found.expression, dict(found.formats), dict(found.extents), found.schedule, target="cuda", arch="sm_90").source
        for found in LIBRARY
        if found.target == "cuda"
    ]
    drawn = gpu.draws(100, max(40 - len(library) - len(MAPPINGS), 0)).seeds
    random = [gpu.compiled(gpu.random_gpu(seed)).source for seed in drawn]
    compile_for_devices(nvcc, [source(name) for name in MAPPINGS] + library + random, tmp_path)


@pytest.mark.slow
def test_sparse_results_and_copies_compile_for_two_architectures(nvcc: str, tmp_path: Path) -> None:
    cases = [*ALONE, *INNER, *COLLECTED, *COPIED]
    made = [gpu.compiled(Scheduled(0, expression, kinds_of(formats), schedule)) for expression, formats, schedule in cases]
    compile_for_devices(nvcc, [kernel.source for kernel in made], tmp_path)


@pytest.mark.nightly
@pytest.mark.parametrize(("kernel", "part", "parts"), gpu_templates.NIGHT)
def test_all_templates_compile_for_two_architectures(kernel: int, part: int, parts: int, nvcc: str, tmp_path: Path) -> None:
    sources: list[str] = []
    refused: list[ScheduleError] = []
    for number in gpu_templates.numbers_of_templates(kernel)[part::parts]:
        try:
            sources.append(gpu.compiled(gpu_templates.one_template(number)).source)
        except ScheduleError as error:
            refused.append(error)
    assert sources
    assert all(gpu.NEVER in str(error) for error in refused)
    for first in range(0, len(sources), 100):
        folder = tmp_path / str(first)
        folder.mkdir()
        compile_for_devices(nvcc, sources[first : first + 100], folder)


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


@pytest.mark.nightly
def test_nvrtc_compiles_random_expressions() -> None:
    """What nvcc compiles may name what NVRTC, which has no headers, does not know."""
    compiled = 0
    refused: list[ScheduleError] = []
    for seed in range(7000, 7200):
        case = random_case(seed)
        semiring = None if case.semiring == ("+", "*") else case.semiring
        made = compile_kernel(case.text, case.formats, case.constants, semiring=semiring, target="cuda", arch="sm_90")
        kernel, _ = made.specialised({name: operand.given for name, operand in case.operands.items()}, case.given)
        try:
            compiled += cubin_of(kernel.source, "sm_90").startswith(b"\x7fELF")
        except ScheduleError as error:
            refused.append(error)
    assert compiled > 150
    assert all(gpu.NEVER in str(error) for error in refused)
