"""Kernels as people call them: operands checked, layouts shared or converted, results, and what may be wrong."""

from __future__ import annotations

import gc
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sparsetune as st
from kernel_specs import CSC, CSR, SDDMM, SPMV, ZERO, X, copying, dot, result, spec
from sparsetune.compiler.build import TypedKernel
from sparsetune.compiler.errors import BuildError, DataError, ExpressionError, ResourceError, ShapeError
from sparsetune.compiler.format import Format, dense_format
from sparsetune.compiler.ir.nodes import (
    F64,
    I64,
    Allocate,
    ArrayParameter,
    Binary,
    Cast,
    Const,
    For,
    Free,
    Function,
    Load,
    SizeParameter,
    Steps,
    Store,
    Var,
)
from sparsetune.compiler.lowering.kernel_spec import KernelSpec
from sparsetune.compiler.storage.construct import tensor
from sparsetune.compiler.storage.tensor import Tensor

pytestmark = pytest.mark.cc


@pytest.fixture
def matrix() -> Any:
    return sp.random_array((7, 5), density=0.5, format="csr", rng=1)


@pytest.fixture
def vector() -> np.ndarray:
    return np.random.default_rng(2).random(5)


def test_call_and_bind(matrix: Any, vector: np.ndarray) -> None:
    kernel = TypedKernel(SPMV)
    expected = matrix @ vector
    np.testing.assert_allclose(kernel(A=matrix, x=vector), expected)
    np.testing.assert_allclose(kernel(A=tensor(matrix), x=tensor(vector), threads=3), expected)
    bound = kernel.bind(A=matrix, x=vector, threads=2)
    first = bound()
    np.testing.assert_allclose(first, expected)
    assert bound() is first
    assert bound.threads == 2
    assert first.ctypes.data % 64 == 0
    assert first.dtype == np.float64
    assert kernel(A=matrix, x=vector) is not kernel(A=matrix, x=vector)


def test_what_a_kernel_tells() -> None:
    kernel = TypedKernel(SPMV)
    assert kernel.source.startswith("/* y(i) = A(i,j) * x(j) */")
    assert "st_kernel" in kernel.source
    assert str(kernel.schedule) == ""
    assert kernel.loop_nest == "a loop nest"
    assert "y(i)" in repr(kernel)


def test_bound_kernels_see_changed_values(matrix: Any, vector: np.ndarray) -> None:
    bound = TypedKernel(SPMV).bind(A=matrix, x=vector)
    bound()
    vector *= 2
    matrix.data += 1
    np.testing.assert_allclose(bound(), matrix @ vector)


def test_out(matrix: Any, vector: np.ndarray) -> None:
    kernel, out = TypedKernel(SPMV), np.full(7, np.nan)
    assert kernel(A=matrix, x=vector, out=out) is out
    np.testing.assert_allclose(out, matrix @ vector)
    window = np.full((9, 3), np.nan)[1:8, 0].copy()
    bound = kernel.bind(A=matrix, x=vector, out=window[:])
    assert np.shares_memory(bound(), window)


@pytest.mark.parametrize(
    ("out", "error", "says"),
    [
        (np.zeros(6), ShapeError, "shape"),
        (np.zeros((7, 1)), ShapeError, "shape"),
        (np.zeros(7, np.float32), DataError, "float32"),
        (np.zeros(14)[::2], DataError, "contiguous"),
        ([0.0] * 7, DataError, "ndarray"),
        (np.broadcast_to(np.zeros(1), 7), DataError, "read-only"),
    ],
)
def test_bad_out(out: Any, error: type[Exception], says: str, matrix: Any, vector: np.ndarray) -> None:
    with pytest.raises(error, match=says):
        TypedKernel(SPMV)(A=matrix, x=vector, out=out)


def test_out_that_is_an_operand() -> None:
    square, vector = sp.eye_array(5, format="csr"), np.ones(5)
    with pytest.raises(DataError, match="'x'"):
        TypedKernel(SPMV)(A=square, x=vector, out=vector)
    with pytest.raises(DataError, match="'A'"):
        TypedKernel(SPMV)(A=square, x=vector, out=square.data)


def test_operands_are_converted(matrix: Any, vector: np.ndarray) -> None:
    kernel, expected = TypedKernel(SPMV), matrix @ vector
    dense = matrix.toarray()
    tensors = tensor(matrix, "coo"), tensor(matrix, CSC), tensor(dense, "hashed, hashed")
    for given in (matrix.tocsc(), matrix.tocoo(), dense, dense.tolist(), *tensors):
        np.testing.assert_allclose(kernel(A=given, x=vector), expected)
    for given in (vector.tolist(), np.repeat(vector, 2)[::2], vector[::-1].copy()[::-1], tensor(vector), sp.coo_array(vector)):
        np.testing.assert_allclose(kernel(A=matrix, x=given), expected)
    wide = sp.csr_array((matrix.data, matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)), shape=matrix.shape)
    np.testing.assert_allclose(kernel(A=wide, x=vector), expected)
    np.testing.assert_allclose(kernel(A=matrix.astype(np.float32), x=vector), expected, rtol=1e-6)
    np.testing.assert_allclose(kernel(A=matrix, x=np.arange(5)), matrix @ np.arange(5))


@pytest.mark.parametrize(
    ("operands", "error", "says"),
    [
        ({"A": np.eye(5)}, ExpressionError, "'x'.*missing"),
        ({"A": np.eye(5), "x": np.ones(5), "z": 1}, ExpressionError, "'z'.*not used"),
        ({"A": np.eye(5), "x": np.ones(4)}, ShapeError, "'j'.*5.*'x'.*4"),
        ({"A": np.ones(5), "x": np.ones(5)}, ShapeError, "'A' has 1"),
        ({"A": np.eye(5), "x": 3.0}, ShapeError, "'x' has 0"),
        ({"A": np.eye(5), "x": np.ones(5) * 1j}, DataError, "'x'.*complex"),
        ({"A": np.eye(5), "x": "nonsense"}, DataError, "'x'"),
        ({"A": tensor(np.eye(5), CSR, fill_value=np.inf), "x": np.ones(5)}, DataError, "fill value inf"),
    ],
)
def test_bad_operands(operands: dict[str, Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says) as caught:
        TypedKernel(SPMV)(**operands)
    assert str(caught.value).splitlines()[0]


def test_extents_that_the_kernel_was_compiled_for(matrix: Any) -> None:
    with pytest.raises(ShapeError, match=r"'k'.*'U' has 9.*compiled for 8"):
        TypedKernel(SDDMM)(A=matrix, U=np.ones((7, 9)), V=np.ones((5, 9)))


def test_result_with_the_pattern_of_an_operand(matrix: Any) -> None:
    random = np.random.default_rng(0)
    U, V = random.random((7, 8)), random.random((5, 8))  # noqa: N806 the names of the operands
    made = TypedKernel(SDDMM)(A=matrix, U=U, V=V)
    assert isinstance(made, Tensor)
    stored = tensor(matrix)
    assert TypedKernel(SDDMM)(A=stored, U=U, V=V).levels[1] is stored.levels[1]
    assert not np.shares_memory(made.levels[1].parts["crd"], matrix.indices)
    np.testing.assert_allclose(made.to_numpy(), matrix.toarray() * (U @ V.T))
    with pytest.raises(DataError, match="dense"):
        TypedKernel(SDDMM)(A=matrix, U=U, V=V, out=np.zeros((7, 5)))
    converted = TypedKernel(replace(SDDMM, result=replace(SDDMM.result, requested=CSC)))(A=matrix, U=U, V=V)
    assert converted.format == CSC
    np.testing.assert_allclose(converted.to_numpy(), matrix.toarray() * (U @ V.T))
    dense = TypedKernel(replace(SDDMM, result=replace(SDDMM.result, requested=dense_format(2))))(A=matrix, U=U, V=V)
    np.testing.assert_allclose(dense, matrix.toarray() * (U @ V.T))


@pytest.mark.parametrize("count", [0, 1, 1000])
def test_assembled_results_are_new_each_time(count: int) -> None:
    given = np.arange(float(count))
    bound = TypedKernel(copying()).bind(x=given)
    first, second = bound(), bound()
    assert first is not second
    assert first.format == Format("compressed")
    np.testing.assert_array_equal(first.to_numpy(), given)
    given += 1
    np.testing.assert_array_equal(bound().to_numpy(), given)
    np.testing.assert_array_equal(second.to_numpy(), np.arange(float(count)))


def test_assembled_memory_is_freed() -> None:
    import psutil

    bound = TypedKernel(copying()).bind(x=np.ones(500_000))
    for _ in range(5):
        bound()
    gc.collect()
    before = psutil.Process().memory_info().rss
    for _ in range(100):
        bound()
    gc.collect()
    assert psutil.Process().memory_info().rss - before < 60_000_000  # 600 MB went through


def test_scalar_results() -> None:
    bound = TypedKernel(dot()).bind(x=np.arange(4.0))
    first = bound()
    assert isinstance(first, np.float64)
    assert first == 14
    out = np.zeros(())
    assert TypedKernel(dot())(x=np.arange(4.0), out=out) is out
    assert out == 14


def test_column_major_results() -> None:
    i, j = Var("i", I64), Var("j", I64)
    place = Binary("+", Binary("*", j, Var("rows", I64), I64), i, I64)
    value = Binary("+", Binary("*", Cast(i, F64), Const(10.0, F64), F64), Load("x", j, F64), F64)
    body = For(j, ZERO, Var("columns", I64), Store("Y", place, value))
    arrays = (ArrayParameter("Y", F64, ("Y", "values"), True), ArrayParameter("x", F64, ("x", "values")))
    sizes = (SizeParameter("rows", ("index", "i")), SizeParameter("columns", ("index", "j")))
    function = Function("st_kernel", arrays, sizes, Steps((For(i, ZERO, Var("rows", I64), body),)))
    kernel = TypedKernel(spec(function, (X,), result("Y", Format("dense, dense", (1, 0)), "ij"), "Y(i,j) = x(j)"))
    given, expected = np.arange(3.0), np.add.outer(10 * np.arange(4.0), np.arange(3.0))
    made = kernel.bind_operands({"x": given}, extents={"i": 4})()
    np.testing.assert_array_equal(made, expected)
    assert made.flags.f_contiguous
    out = np.zeros((4, 3), order="F")
    assert kernel.bind_operands({"x": given}, out=out, extents={"i": 4})() is out
    np.testing.assert_array_equal(out, expected)
    with pytest.raises(DataError, match="contiguous"):
        kernel.bind_operands({"x": given}, out=np.zeros((4, 3)), extents={"i": 4})
    with pytest.raises(ShapeError, match="'i'"):
        kernel(x=given)


def named(spec_: KernelSpec, old: str, new: str) -> KernelSpec:
    """Rename an operand, as a user may call it anything."""

    def source(entry: ArrayParameter) -> ArrayParameter:
        return replace(entry, source=(new, *entry.source[1:]) if entry.source[0] == old else entry.source)  # type: ignore[arg-type]

    function = replace(spec_.function, arrays=tuple(map(source, spec_.function.arrays)))
    operands = tuple(replace(entry, key=new, tensor=new) if entry.key == old else entry for entry in spec_.operands)
    return replace(spec_, function=function, operands=operands)


@pytest.mark.parametrize("name", ["out", "threads", "self", "operands", "for", "kernel"])
def test_operands_may_have_any_name(name: str, matrix: Any, vector: np.ndarray) -> None:
    np.testing.assert_allclose(TypedKernel(named(SPMV, "x", name))(**{"A": matrix, name: vector}), matrix @ vector)


def test_memory_that_cannot_be_had_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    statements = (Allocate("w", F64, Const(2**60, I64)), Store("s", ZERO, Load("w", ZERO, F64)), Free("w"))
    function = replace(dot().function, body=Steps(statements))
    with pytest.raises(ResourceError, match=r"the result 's' with its workspaces of .* does not fit into memory: 8.0 EiB where"):
        TypedKernel(replace(dot(), function=function))(x=np.ones(2))
    monkeypatch.setattr("sparsetune.compiler.build.kernel.workspaces", lambda _function: ())
    with pytest.raises(ResourceError, match="not enough memory"):
        TypedKernel(replace(dot(), function=function))(x=np.ones(2))


def test_flags_and_compiler_of_the_schedule(matrix: Any, vector: np.ndarray) -> None:
    chosen = TypedKernel(replace(SPMV, build=("gcc", "-O2 -funroll-loops")))
    np.testing.assert_allclose(chosen(A=matrix, x=vector), matrix @ vector)
    assert chosen.executable.flags[:2] == ("-O2", "-funroll-loops")
    assert "gcc" in chosen.executable.compiler
    with pytest.raises(BuildError, match="gcc-99"):
        TypedKernel(replace(SPMV, build=("gcc-99", None))).load()
    with pytest.raises(BuildError, match="power11"):
        TypedKernel(replace(SPMV, build=("gcc", "-O2 -march=power11"))).load()


@pytest.mark.parametrize("form", ["csr", "dense, narrow", "dcsr"])
def test_a_sum_of_nothing_stores_nothing(form: str) -> None:
    pattern = tensor(np.eye(3), form)
    for extent, stored in ((0, 0), (2, 3)):
        factor = np.ones((3, extent))
        made = st.evaluate("S(i,j) = A(i,j) * U(i,k) * V(j,k)", {"A": pattern, "U": factor, "V": factor}, output_format=form)
        assert made.nnz == stored
        assert made.format == pattern.format
