"""What the C compiler makes of generated kernels inside sparse loops: accumulators stay in vector registers, and sums in order out of
vectors (x86-64)."""

from __future__ import annotations

import platform
import re
import subprocess
from pathlib import Path

import loop_kernels
import numpy as np
import pytest
import sparsetune as st
from assembly_loops import innermost_loops
from loop_runs import COMPILERS, source_of
from sparsetune.compiler.ir.nodes import Function
from sparsetune.compiler.native.library import CSRC
from sparsetune.compiler.native.toolchain import default_flags
from sparsetune.compiler.passes.vectorize import ACCUMULATORS, WRITTEN_OUT

pytestmark = [pytest.mark.cc, pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="looks at x86-64 assembly")]

_VECTOR_STORE = re.compile(r"^\s+vmov\w+\s+%[yz]mm\d+,\s*[^%\s]*\(")
_FUSED = re.compile(r"^\s+vfmadd\w+p[sd]\s")

_ONE_PRODUCT, _PRODUCTS = (re.compile(rf"^\s+v(mul|fmadd\d+){which}[sd]\s") for which in "sp")

TARGETS = {16: "-march=x86-64-v3", 32: "-march=x86-64-v3", 64: "-march=x86-64-v4"}


def assembly(kernel: Function, compiler: str, vector_bytes: int, folder: Path) -> list[str]:
    return assembly_of(source_of(kernel, vector_bytes), compiler, vector_bytes, folder)


def assembly_of(code: str, compiler: str, vector_bytes: int, folder: Path) -> list[str]:
    source, target = folder / "kernel.c", folder / "kernel.s"
    source.write_text(code)
    flags = [flag for flag in default_flags() if not flag.startswith("-march")]
    options = ["-std=gnu11", "-S", TARGETS[vector_bytes], *flags, "-fPIC", "-fopenmp-simd", "-I", str(CSRC)]
    subprocess.run([compiler, *options, str(source), "-o", str(target)], check=True, capture_output=True)
    return target.read_text().splitlines()


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("vector_bytes", [32, 64])
@pytest.mark.parametrize(
    ("kernel", "fused"),
    [(loop_kernels.spmm(32), 32), (loop_kernels.sddmm(128), 128), (loop_kernels.mttkrp(32), 32)],
    ids=["spmm", "sddmm", "mttkrp"],
)
def test_accumulators_stay_in_registers(kernel: Function, fused: int, compiler: str, vector_bytes: int, tmp_path: Path) -> None:
    lines = assembly(kernel, compiler, vector_bytes, tmp_path)
    sparse = [loop for loop in innermost_loops(lines) if any(_FUSED.match(line) for line in loop)]
    assert sparse, "no loop with fused multiply-adds of vectors"
    vectors = fused * 8 // vector_bytes
    wanted = vectors - ACCUMULATORS if vectors <= WRITTEN_OUT else ACCUMULATORS  # the first of each may be a product alone
    assert any(sum(bool(_FUSED.match(line)) for line in loop) >= wanted for loop in sparse)
    for loop in sparse:
        assert [line for line in loop if _VECTOR_STORE.match(line)] == []


def test_the_test_sees_stores(tmp_path: Path) -> None:
    """An array too large for registers is stored in the loop, and the patterns above find that."""
    lines = assembly(loop_kernels.spmm(512), "gcc", 64, tmp_path)
    sparse = [loop for loop in innermost_loops(lines) if any(_FUSED.match(line) for line in loop)]
    assert any(_VECTOR_STORE.match(line) for loop in sparse for line in loop)


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("expression", ["y(i) = A(i,j) * x(j)", "y(i) = A(i,j) * x(j) * x(j)"])
def test_sums_in_order_of_what_is_gathered_stay_out_of_vectors(expression: str, dtype: str, compiler: str, tmp_path: Path) -> None:
    """Products in vectors whose elements are then added one by one took longer in short rows."""
    kernel = st.compile(expression, {"A": "csr"}, schedule="unroll(j, 2)", dtype=np.dtype(dtype))
    lines = assembly_of(kernel.source, compiler, 64, tmp_path)
    assert any(_ONE_PRODUCT.match(line) for line in lines)
    assert not any(_PRODUCTS.match(line) for line in lines)
