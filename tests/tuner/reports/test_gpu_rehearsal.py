"""What is prepared for a machine that has a GPU's driver and no compiler is all that the parts need there: a pretended driver stands in."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from sparsetune.tuner.reports import gpu, gpu_cases, gpu_listed, gpu_parts
from sparsetune.tuner.reports.gpu_cases import KERNELS, SPMV
from sparsetune.tuner.reports.gpu_rows import FILE, Row, read_rows

pytest.importorskip("cuda.core")
pytestmark = [pytest.mark.cc, pytest.mark.slow, pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")]

DRIVER = Path(__file__).parents[2] / "compiler" / "targets" / "fake_driver.c"
STATE = "an H100, 580.1, 1980 MHz, 2619 MHz, 0x0000000000000000, 40, 100 W"


def pretend(folder: Path) -> None:
    """Make a driver and the program that says what GPU there is."""
    subprocess.run(["gcc", "-shared", "-fPIC", "-w", "-o", str(folder / "libcuda.so"), str(DRIVER)], check=True)
    (folder / "nvidia-smi").write_text(f'#!/bin/sh\ncase "$1" in *compute_cap*) echo 9.0;; *) echo "{STATE}";; esac\n')
    (folder / "nvidia-smi").chmod(0o755)


def test_nothing_is_compiled_where_only_the_driver_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = replace(SPMV, mappings=SPMV.mappings[:1])
    kernels = (few, replace(next(kernel for kernel in KERNELS if kernel.name == "SpGEMM"), mappings=()))
    for module in (gpu, gpu_parts, gpu_cases, gpu_listed):
        monkeypatch.setattr(module, "KERNELS", kernels)
    for module in (gpu, gpu_parts):
        monkeypatch.setattr(module, "SPMV", few)
        monkeypatch.setattr(module, "LISTED", 3)
    monkeypatch.setattr(gpu_parts, "SKEWED", ("warp per row", "row to a thread"))
    gpu_listed.listed.cache_clear()
    monkeypatch.setenv("SPARSETUNE_CACHE", str(tmp_path / "cache"))
    gpu.prepare("sm_90", 8)
    pretend(tmp_path)
    for name, value in {"PATH": tmp_path, "SPARSETUNE_LIBCUDA": tmp_path / "libcuda.so", "ST_FAKE_LOG": tmp_path / "log"}.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr("sparsetune.compiler.targets.cuda_objects.compile_cubin", None)
    words = ["random:uniform:9x9:nnz=20", "--folder", str(tmp_path / "rows"), "--size", "1e-6", "--runs", "2"]
    for part in gpu_parts.PARTS:
        done = CliRunner().invoke(gpu.main, [part, *words], catch_exceptions=False)
        assert done.exit_code == 0, done.output
    rows = read_rows(tmp_path / "rows" / FILE)
    assert {row.part for row in rows} == set(gpu_parts.PARTS)
    assert {row.device for row in rows} == {"an H100, driver 580.1"}
    assert all(_ran(row) for row in rows), [row for row in rows if not _ran(row)]
    assert sum(row.kernel == "state" for row in rows) == 2 * len(gpu_parts.PARTS)
    gpu_listed.listed.cache_clear()


def _ran(row: Row) -> bool:
    """Return whether a kernel was launched, whose results mean nothing: nothing computes."""
    return row.right.startswith(("yes", "wrong", "its shape", "is not here"))
