"""Register arrays of one number become variables, so that products with one column are made as those with a vector are."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
import sparsetune as st
from loop_runs import function
from sparsetune.compiler.ir.nodes import (
    F64,
    I64,
    Allocate,
    ArrayRef,
    Const,
    Declare,
    Fill,
    For,
    Load,
    Parallel,
    SetVar,
    Step,
    Steps,
    Store,
    Var,
)
from sparsetune.compiler.ir.rewrite import walk
from sparsetune.compiler.passes.single import single_registers

ONE, ZERO = Const(1, I64), Const(0, I64)
USED = Steps((Store("t", ZERO, Const(2.0, F64), "+"), Store("y", ZERO, Load("t", ZERO, F64))))


def body_of(code: str) -> str:
    """Return the code of a kernel without what tells its names apart."""
    return code[code.index("int32_t st_kernel") :].lower()


@pytest.mark.parametrize("form", ["csr", "dl", "dn", "dt"])
@pytest.mark.parametrize("schedule", ["", "parallelize(i, cpu_thread, no_races, dynamic, 64)", "prefetch(j, A, 512)"])
def test_a_product_with_one_column_has_the_code_of_that_with_a_vector(form: str, schedule: str) -> None:
    column = st.compile("y(i,k) = A(i,j) * x(j,k)", {"A": form}, extents={"k": 1}, schedule=schedule)
    vector = st.compile("y(i) = A(i,j) * x(j)", {"A": form}, schedule=schedule)
    assert body_of(column.source) == body_of(vector.source)


@pytest.mark.cc
@pytest.mark.parametrize("form", ["csr", "dcsr", "dl", "dn"])
@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (1, 40), (40, 1), (300, 200)])
def test_results_are_those_of_scipy(form: str, shape: tuple[int, int]) -> None:
    """With empty rows and explicit zeros among the entries, for both sizes of floating-point numbers."""
    rng = np.random.default_rng(0)
    for dtype in (np.float32, np.float64):
        matrix = scipy.sparse.random_array(shape, density=0.05 if shape[0] > 40 else 0.5, rng=rng, format="csr", dtype=dtype)
        matrix.data[::3] = 0
        x = rng.standard_normal((shape[1], 1)).astype(dtype)
        found = st.evaluate("Y(i,k) = A(i,j) * X(j,k)", {"A": st.tensor(matrix, form), "X": x}, schedule="default")
        assert np.allclose(found, matrix @ x, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("made", "is_changed"),
    [
        ((Allocate("t", F64, ONE, "registers", zero=True),), True),
        ((Allocate("t", F64, ONE, "registers"),), False),
        ((Allocate("t", F64, Const(2, I64), "registers", zero=True),), False),
        ((Allocate("t", I64, ONE, "registers", zero=True),), False),
        ((Allocate("t", F64, ONE, "registers", zero=True), Fill("t", ZERO, ONE, Const(1.0, F64))), False),
    ],
)
def test_arrays_of_one_number_are_variables(made: tuple[Step, ...], is_changed: bool) -> None:
    before = function([*made, USED], {"y": ("f64", True)})
    after = single_registers(before)
    assert (after != before) == is_changed
    if is_changed:
        t = Var("t", F64)
        assert [node for node in walk(after.body) if isinstance(node, Declare | SetVar)] == [
            Declare(t, Const(0.0, F64)), SetVar(t, Const(2.0, F64), "+"),
        ]  # fmt: skip
        assert not any(isinstance(node, Allocate | ArrayRef) for node in walk(after.body))


@pytest.mark.cc
@pytest.mark.parametrize("order", ["i, k0, j, k1", "k0, i, j, k1"])
def test_tiles_of_one_column_have_one_place_whatever_their_index_says(order: str) -> None:
    schedule = f"split_up(k, k0, k1, 8); reorder({order}); precompute(A(i,j) * X(j,k), k1, k1, w); parallelize({order[:2].strip(',')}, "
    kernel = st.compile("Y(i,k) = A(i,j) * X(j,k)", {"A": "csr"}, {"k": 8}, schedule=f"{schedule}cpu_thread, no_races)")
    matrix = scipy.sparse.random_array((60, 50), density=0.1, rng=np.random.default_rng(0), format="csr")
    columns = np.random.default_rng(1).random((50, 8))
    assert np.allclose(kernel(A=matrix, X=columns), matrix @ columns)


def test_arrays_to_which_threads_store_stay_arrays() -> None:
    """Threads assign no variable of outside: this did not compile."""
    matrix = scipy.sparse.random_array((30, 20), density=0.2, rng=np.random.default_rng(0), format="csr")
    schedule = "split_up(i, t, r, 1); precompute(A(i,j), [t], [u], w); parallelize(u, cpu_thread, parallel_reduction)"
    kernel = st.compile("y = A(i,j)", {"A": "csr"}, schedule=schedule)
    assert np.isclose(kernel(A=matrix), matrix.sum())
    inside = For(Var("i", I64), ZERO, ONE, Steps((Allocate("t", F64, ONE, "registers", zero=True), USED)), Parallel())
    before = function([inside], {"y": ("f64", True)})
    assert single_registers(before) != before
