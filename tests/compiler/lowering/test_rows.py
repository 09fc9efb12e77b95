"""Rows of dense results: summed in registers, stored once, and past the caches where a result is too large for them."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from loop_runs import COMPILERS, source_of
from numpy.typing import NDArray
from sparsetune.compiler.build.kernel import TypedKernel
from sparsetune.compiler.ir.nodes import Fill, Load, Store
from sparsetune.compiler.ir.rewrite import walk
from sparsetune.compiler.kernel import Kernel
from sparsetune.compiler.native.machine import Machine
from sparsetune.compiler.pipeline import compile_kernel
from sparsetune.compiler.storage.construct import tensor
from sparsetune.compiler.targets.c import C

SPMM, TTM = "Y(i,r) = A(i,j) * X(j,r)", "Y(i,j,r) = T(i,j,k) * X(k,r)"
MTTKRP = "Y(i,r) = T(i,j,k) * X(j,r) * Z(k,r)"
FIBRES = "dense, compressed, compressed"
ROWS = {"Y": "dense, compressed, dense", "T": FIBRES}


def reads_or_fills(compiled: Kernel) -> bool:
    """Whether a kernel does anything to its result beside storing."""
    body = compiled.default_kernel.spec.function.body
    own = [node for node in walk(body) if isinstance(node, Load | Fill | Store) and node.array == "Y_vals"]
    assert own
    return any(not isinstance(node, Store) or bool(node.op) for node in own)


@pytest.mark.parametrize(
    ("expression", "formats", "schedule"),
    [
        (SPMM, {"A": "csr"}, ""),
        (SPMM, {"A": "csr"}, "parallelize(i, cpu_thread, no_races, dynamic, 8); prefetch(j, X, 4)"),
        (SPMM, {"A": "csr"}, "parallelize(r, cpu_vector, no_races)"),
        (TTM, ROWS, ""),
        (MTTKRP, {"T": FIBRES}, ""),
    ],
)
def test_short_rows_are_stored_once_and_never_read(expression: str, formats: dict[str, str], schedule: str) -> None:
    assert not reads_or_fills(compile_kernel(expression, formats, {"r": 32}, schedule))


@pytest.mark.parametrize(
    ("expression", "formats", "extents", "schedule"),
    [
        (SPMM, {"A": "csr"}, {}, ""),  # how long a row is is not known
        (SPMM, {"A": "csr"}, {"r": 129}, ""),  # longer than the registers that there are
        (SPMM, {"A": "csc"}, {"r": 32}, ""),  # each row is reached many times
        (SPMM, {"A": "csr", "X": "csr"}, {"r": 32}, ""),  # components come one by one
        (SPMM, {"A": "csr"}, {"r": 32}, "split(j, a, b, 4); reorder(a, i, b, r)"),
    ],
)
def test_other_rows_are_updated_where_they_lie(
    expression: str, formats: dict[str, str], extents: dict[str, int], schedule: str
) -> None:
    assert reads_or_fills(compile_kernel(expression, formats, extents, schedule))


def matrix(form: str, rows: int = 50) -> tuple[object, NDArray[np.float64]]:
    rng = np.random.default_rng(11)
    dense = (rng.integers(-4, 5, (rows, 30)) * (rng.random((rows, 30)) < 0.1)).astype(float)
    dense[5:20] = 0
    return tensor(dense, form), dense


@pytest.mark.parametrize("form", ["csr", "dcsr", "coo", "csc"])
@pytest.mark.parametrize("expression", [SPMM, "Y(i,r) = A(i,j) * X(j,r) + X(i,r) - X(i,r)", "Y(i,r) += A(i,j) * X(j,r)"])
def test_rows_that_store_nothing_are_zero(expression: str, form: str) -> None:
    stored, dense = matrix(form, 30)
    x = np.arange(30.0 * 8).reshape(30, 8) - 100
    given = {"Y": np.full((30, 8), 3.0)} if "+=" in expression else {}
    out = np.full((30, 8), 7.0)
    compile_kernel(expression, {"A": form}, {"r": 8})(A=stored, X=x, out=out, **given)
    assert np.array_equal(out, dense @ x + (3 if given else 0))


@pytest.mark.parametrize("schedule", ["", "parallelize(i, cpu_thread, no_races, dynamic, 4)"])
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("vector_bytes", [16, 32, 64])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_results_larger_than_the_caches_are_written_past_them(
    dtype: str, vector_bytes: int, compiler: str, schedule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Machine, "last_level_cache", property(lambda _: 16))
    stored, dense = matrix("csr")
    x = np.arange(30.0 * 64).reshape(30, 64).astype(dtype)
    compiled = compile_kernel(SPMM, {"A": "csr"}, {"r": 64}, schedule, dtype=dtype)
    kernel = TypedKernel(replace(compiled.default_kernel.spec, build=(compiler, None)))
    source = source_of(kernel.spec.function, vector_bytes)
    assert "st_stream_" in source
    monkeypatch.setitem(kernel.__dict__, "executable", C.compile(kernel.spec, source))
    room = np.full(50 * 64 + 32, 7, dtype)
    first = -(room.ctypes.data // room.itemsize) % (64 // room.itemsize)
    for shift, streams in ((0, 1), (1, 0)):  # rows that do not begin where vectors may be written so are stored as ever
        out = room[first + shift :][: 50 * 64].reshape(50, 64)
        bound = kernel.bind(A=stored.astype(dtype), X=x, out=out, threads=2)  # type: ignore[attr-defined]
        assert bound.arguments()[1][-1] == streams
        assert np.array_equal(bound(), dense.astype(dtype) @ x)


def test_only_whole_vectors_are_written_past_the_caches() -> None:
    def streams(extent: int) -> bool:
        return "st_stream_" in source_of(compile_kernel(SPMM, {"A": "csr"}, {"r": extent}).default_kernel.spec.function, 64)

    assert [extent for extent in (4, 8, 12, 16, 20, 100, 128) if streams(extent)] == [8, 16, 128]


def test_small_results_stay_in_the_caches() -> None:
    stored, dense = matrix("csr")
    compiled = compile_kernel(SPMM, {"A": "csr"}, {"r": 8})
    bound = compiled.bind(A=stored, X=np.ones((30, 8)))
    assert bound.arguments()[1][-1] == 0
    assert np.array_equal(bound(), dense @ np.ones((30, 8)))


def test_any_name_is_an_index() -> None:
    stored, dense = matrix("csr")
    compiled = compile_kernel("index(past_caches,r) = A(past_caches,j) * X(j,r)", {"A": "csr"}, {"r": 8})
    assert np.array_equal(compiled(A=stored, X=np.ones((30, 8))), dense @ np.ones((30, 8)))


def test_threads_drain_what_they_wrote() -> None:
    """Before they leave the parallel region, after which others read the result."""
    compiled = compile_kernel(SPMM, {"A": "csr"}, {"r": 8}, "parallelize(i, cpu_thread, no_races)")
    source = source_of(compiled.default_kernel.spec.function, 64)
    assert re.search(r"st_next\(.*\n(.*\n)+  if \(Y_past_caches != 0\) {\n    st_drain_stores\(\);\n  }\n}\n", source)
