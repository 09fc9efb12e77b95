"""cuSPARSE as a rival: all of its algorithms are run with what they take, here by a library that pretends, on memory of the processor."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from sparsetune.compiler.errors import BuildError
from sparsetune.datasets import load
from sparsetune.tuner.reports import gpu_cusparse
from sparsetune.tuner.reports.gpu_cases import KERNELS
from sparsetune.tuner.reports.gpu_oracle import expected, same
from sparsetune.tuner.reports.gpu_race import Device

pytestmark = [pytest.mark.cc, pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")]


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    made = tmp_path / "libcusparse.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-w", "-o", str(made), str(Path(__file__).with_name("fake_cusparse.c"))], check=True)
    monkeypatch.setenv("SPARSETUNE_LIBCUSPARSE", str(made))
    gpu_cusparse.cusparse.cache_clear()
    yield
    gpu_cusparse.cusparse.cache_clear()


@pytest.mark.usefixtures("library")
def test_all_algorithms_are_run_with_what_they_take() -> None:
    device, data = Device.here("cuda-executor"), load("random:uniform:12x12:nnz=40")
    for kernel in KERNELS:
        family = kernel.name.split()[0]
        if kernel.order > 2 or family not in gpu_cusparse.ALGORITHMS:
            continue
        operands, ran = kernel.operands(data), list[str]()
        for run in gpu_cusparse.runs_of_cusparse(device.rivals, kernel.name, operands):
            started = run.start()
            if family == "SpMV" and "CSR_ALG2" in run.what:
                with pytest.raises(BuildError, match=r"^cusparseSpMV of cuSPARSE returns 10"):
                    started.result()
                continue
            assert same(started.result(), expected(kernel.expression, operands)) == "yes", run.what
            assert len(started.seconds(2, 100)) == 2
            ran.append(run.what)
        assert f"{family}, default" in ran
        assert (f"{family}, default: preprocessing alone" in ran) == (family in ("SpMV", "SDDMM"))  # as the library has it


def test_a_machine_without_it_has_no_such_rival(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARSETUNE_LIBCUSPARSE", "/nowhere/libcusparse.so")
    gpu_cusparse.cusparse.cache_clear()
    data = load("random:uniform:12x12:nnz=40")
    assert not list(gpu_cusparse.runs_of_cusparse(Device.here("cuda-executor").rivals, "SpMV", KERNELS[0].operands(data)))
    gpu_cusparse.cusparse.cache_clear()
