"""Kernels as files that compile without this package: the main among them runs the kernel, and says how long it takes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from sparsetune.compiler.build.standalone import standalone
from sparsetune.compiler.pipeline import compile_kernel

KERNELS = [
    ("C(i,j) = A(i,k) * B(k,j)", {"A": "csr", "B": "csr", "C": "csr"}, "parallelize(i, cpu_thread, no_races)"),
    ("A(i,r) = B(i,j,k) * C(j,r) * D(k,r)", {"B": "csf"}, ""),
]


@pytest.mark.cc
@pytest.mark.parametrize(("text", "formats", "schedule"), KERNELS)
def test_a_kernel_that_stands_alone_is_timed_by_its_main(text: str, formats: dict[str, str], schedule: str, tmp_path: Path) -> None:
    for name, content in standalone(compile_kernel(text, formats, schedule=schedule).default_kernel).items():
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    command = ["gcc", "-std=gnu11", "-O0", "-fopenmp-simd", "-I", ".", "-o", "timed", "main.c", "kernel.c", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "timed"], cwd=tmp_path, capture_output=True, text=True, check=True)
    seconds, unit, *rest = done.stdout.split()
    assert float(seconds) > 0
    assert (unit, rest[:3]) == ("s,", ["the", "least", "of"])
    (tmp_path / "operands.bin").write_bytes(b"")
    done = subprocess.run([tmp_path / "timed"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "operands.bin" in done.stderr


def test_compound_subscripts_have_no_main() -> None:
    assert "main.c" not in standalone(compile_kernel("y(i) = A(i + j) * w(j)").default_kernel)
