"""Counting builds: exact numbers for known kernels, and those of the interpreter for random ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sparsetune as st
from differential.batch import build_together
from differential.cases import Case, random_case
from differential.compare import bound, compiled, unstorable
from differential.oracle import expected
from sparsetune.compiler.build.bound import BoundKernel
from sparsetune.compiler.build.counting import CountingKernel
from sparsetune.compiler.build.kernel import TypedKernel
from sparsetune.compiler.ir.interpret import interpret
from sparsetune.compiler.kernel import Kernel
from sparsetune.compiler.passes.cpu import PORTABLE
from sparsetune.compiler.passes.manager import VectorUnit

pytestmark = pytest.mark.cc
CASES = 150


def matrix() -> sp.csr_array:
    return sp.csr_array(sp.random_array((60, 40), density=0.1, rng=np.random.default_rng(5)))


def counted(
    expression: str, formats: dict[str, Any], operands: dict[str, Any], schedule: str | None = None, threads: int = 1
) -> dict[str, int]:
    return st.compile(expression, formats=formats, schedule=schedule).bind(threads=threads, **operands).count()


def test_a_product_with_a_vector() -> None:
    a = matrix()
    counts = counted("y(i) = A(i,j) * x(j)", {"A": "csr"}, {"A": a, "x": np.ones(40)})
    assert counts == {"flops": 2 * a.nnz, "loads": 3 * a.nnz + 60 + 60, "stores": 60, "iterations": 60 + a.nnz, "workspace": 0}


@pytest.mark.parametrize("before", ["parallelize(i", "split(i, i0, i1, 8); parallelize(i0"])
def test_threads_do_what_one_does(before: str) -> None:
    a, x = matrix(), np.ones((40, 12))
    plain = counted("Y(i,k) = A(i,j) * X(j,k)", {"A": "csr"}, {"A": a, "X": x})
    shared = counted("Y(i,k) = A(i,j) * X(j,k)", {"A": "csr"}, {"A": a, "X": x}, f"{before}, cpu_thread, no_races)", threads=4)
    assert shared["flops"] == plain["flops"] == 2 * a.nnz * 12
    assert shared["workspace"] == 0


def test_vectors_count_by_lanes_and_integers_and_truth_values_as_numbers_do() -> None:
    a = matrix()
    a.data[:] = 2
    for dtype, semiring in (("float32", None), ("int64", None), ("bool", ("or", "and"))):
        k = st.compile("Y(i,k) = A(i,j) * X(j,k)", formats={"A": "csr"}, schedule="parallelize(k, cpu_vector, no_races)", semiring=semiring)
        assert k.bind(A=a.astype(dtype), X=np.ones((40, 12), dtype)).count()["flops"] == 2 * a.nnz * 12


def test_the_elements_of_workspaces_that_are_alive_at_once() -> None:
    rng = np.random.default_rng(3)
    coordinates = np.unique(rng.integers(0, [6, 7, 8], (60, 3)), axis=0).T
    b = st.tensor((coordinates, np.ones(coordinates.shape[1])), "csf", (6, 7, 8))
    c, d = np.ones((7, 5)), np.ones((8, 5))
    fibres = len({(i, j) for i, j, _ in coordinates.T})
    operands, expression = {"B": b, "C": c, "D": d}, "A(i,r) = B(i,j,k) * C(j,r) * D(k,r)"
    row = counted(expression, {"B": "csf"}, operands, "reorder(i, j, k, r); precompute(B(i,j,k) * D(k,r), r, r, w)")
    assert row["workspace"] == 5
    assert row["flops"] == 2 * b.nnz * 5 + 2 * fibres * 5  # Kanakagiri and Solomonik, section 2.4: 2 nnz A + 2 nnz_IJ A
    none = counted(expression, {"B": "csf"}, operands, "reorder(i, j, k, r)")
    assert none["workspace"] == 0
    assert none["flops"] == 3 * b.nnz * 5


def test_nothing_is_counted_where_nothing_is_computed() -> None:
    assert set(counted("B(j,i) = A(i,j)", {"A": "csr", "B": "csr"}, {"A": matrix()}).values()) == {0}
    empty = sp.csr_array((0, 40))
    assert counted("y(i) = A(i,j) * x(j)", {"A": "csr"}, {"A": empty, "x": np.ones(40)})["flops"] == 0


def test_the_result_and_the_operands_stay_as_they_are() -> None:
    a, x, out = matrix(), np.ones(40), np.full(60, 7.0)
    kernel = st.compile("y(i) = A(i,j) * x(j)", formats={"A": "csr"}).bind(A=a, x=x, out=out)
    first = kernel.count()
    assert np.all(out == 7)
    assert kernel.count() == first
    assert np.allclose(kernel(), a @ x)


def _interpreted(bound: BoundKernel) -> dict[str, int]:
    arrays, sizes = bound.arguments()
    function = PORTABLE.run(bound.kernel.spec.function, VectorUnit(8))
    fresh = [parameter.name for parameter in function.arrays if parameter.writable and not parameter.assembled]
    with np.errstate(all="ignore"):
        return interpret(function, arrays, sizes, fresh).counts.as_dict()


def test_random_kernels_count_what_the_interpreter_counts(tmp_path: Path) -> None:
    ready: list[tuple[Case, Kernel, TypedKernel, CountingKernel]] = []
    for seed in range(CASES):
        case = random_case(seed)
        with case.limited():
            made, kernel = compiled(case)
        if not kernel.spec.result.copies and not unstorable(case, expected(case)):
            ready.append((case, made, kernel, CountingKernel(kernel.spec)))
    build_together([kernel for _, _, *pair in ready for kernel in pair], tmp_path, "counting")
    for case, made, _, counting in ready:
        with case.limited():
            one = bound(case, made)
            found = counting.count(one.operands, one.extents)
        wanted = _interpreted(one)
        same = ("loads", "stores", "iterations", *(("flops",) if np.dtype(case.dtype).kind == "f" else ()))
        assert {what: found[what] for what in same} == {what: wanted[what] for what in same}, str(case)
