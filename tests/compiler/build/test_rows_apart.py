"""Matrices whose rows lie apart in memory: kernels read them where they are, with the same results as from a copy."""

from __future__ import annotations

import gc
import pickle
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sparsetune as st
from sparsetune.compiler.build.copies import LEAST_APART, second_accesses
from sparsetune.compiler.build.kernel import TypedKernel
from sparsetune.compiler.ir.parser import parse_function
from sparsetune.compiler.kernel import Kernel
from sparsetune.compiler.lowering.rows_apart import reads_rows_apart
from sparsetune.compiler.storage.aligned import copy_at
from sparsetune.compiler.storage.native_kernels import NativeKernels
from sparsetune.compiler.storage.numpy_kernels import NumpyKernels

pytestmark = pytest.mark.cc
ROWS, COLUMNS = 240, 20
SPMM = "Y(i,k) = A(i,j) * X(j,k)"

APART: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "a slice": lambda x: np.pad(x, ((1, 2), (3, 4)))[1:-2, 3:-4],
    "rows in reverse": lambda x: x[::-1].copy()[::-1],
    "every third row": lambda x: np.repeat(x, 3, axis=0)[::3],
    "rows of lines": lambda x: copy_at(np.pad(x, ((0, 0), (0, 12))), 0).reshape(ROWS, 32)[:, :COLUMNS],
}
OTHERS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "columns": np.asfortranarray,
    "every second column": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
}


def dense(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape[0]).integers(-9, 9, shape).astype("float64")


def sparse(rows: int = ROWS, columns: int = ROWS, each: int = 3) -> Any:
    crd = np.sort(np.argsort(np.random.default_rng(rows).random((rows, columns)), axis=1)[:, :each], axis=1)
    return sp.csr_array((dense(rows * each) + 10, crd.reshape(-1), np.arange(0, rows * each + 1, each)), shape=(rows, columns))


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """Return a list of the shapes of all matrices that are copied from now on."""
    found: list[tuple[int, ...]] = []
    for kernels in (NativeKernels, NumpyKernels):

        def noted(self: Any, array: Any, out: Any, whole: Any = kernels.copy) -> None:
            found.append(array.shape)
            whole(self, array, out)

        monkeypatch.setattr(kernels, "copy", noted)
    return found


CASES = {
    SPMM: ("", "parallelize(i, cpu_thread, no_races)", "split(k, k0, k1, 8); reorder(k0, i, j, k1)", "unroll(k, 4)", "prefetch(j, X, 8)",
           "pos(j, q, A(i,j)); split(q, q0, q1, 16)", "collapse(i, j, f); pos(f, p, A(i,j)); split(p, p0, p1, 32)"),
    "S(i,j) = A(i,j) * X(i,k) * X(j,k)": ("", "parallelize(i, cpu_thread, no_races)"),
    "Y(i,k) = X(i,k) * 2 + X(i,k)": ("", "collapse(i, k, f)", "split(i, i0, i1, 16)"),
    "Y(k,i) = X(i,k)": ("",),
    "s = X(i,k) * X(i,k)": ("", "collapse(i, k, f); split(f, f0, f1, 64); parallelize(f0, cpu_thread, atomics)"),
    "y(i) = X(i,k) * v(k)": ("", "parallelize(i, cpu_thread, no_races)"),
    "Y(i,l) = X(i,k) * W(k,l)": ("",),
}  # fmt: skip


@pytest.mark.parametrize(("expression", "schedule"), [(text, schedule) for text, schedules in CASES.items() for schedule in schedules])
def test_results_are_those_of_a_matrix_in_order(expression: str, schedule: str) -> None:
    x = dense(ROWS, COLUMNS)
    assert x.nbytes >= LEAST_APART
    every = {"A": st.tensor(sparse()), "v": dense(COLUMNS), "W": dense(COLUMNS, 9)}
    operands = {name: data for name, data in every.items() if f"{name}(" in expression}
    formats = {"A": "csr"} | ({"S": "csr"} if expression.startswith("S") else {})
    compiled = st.compile(expression, {name: form for name, form in formats.items() if f"{name}(" in expression}, schedule=schedule)
    expected = compiled(**operands, X=x)
    for _ in range(2):  # in turn, so that kept calls get matrices of all forms
        for form, made in {**APART, **OTHERS}.items():
            given = made(x)
            np.testing.assert_array_equal(given, x)
            found = compiled(**operands, X=given)
            if isinstance(found, st.Tensor):
                found, wanted = found.to_numpy(), expected.to_numpy()
            else:
                wanted = expected
            np.testing.assert_array_equal(found, wanted, err_msg=form)


@pytest.mark.parametrize("form", APART)
def test_they_are_not_copied(form: str, copied: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch) -> None:
    a, x = st.tensor(sparse()), APART[form](dense(ROWS, COLUMNS))
    compiled = st.compile(SPMM, {"A": "csr"})
    compiled(A=a, X=dense(ROWS, COLUMNS))
    copied.clear()
    for call in (compiled, lambda **operands: st.evaluate(SPMM, operands, schedule="default")):
        call(A=a, X=x)
        with monkeypatch.context() as later:
            later.setattr(TypedKernel, "bind_operands", None)  # later calls do not prepare anything again
            for _ in range(3):
                x *= 2
                np.testing.assert_array_equal(call(A=a, X=x), a.to_scipy() @ x)
    assert not copied


@pytest.mark.parametrize("form", OTHERS)
def test_rows_whose_items_lie_apart_are_copied(form: str, copied: list[tuple[int, ...]]) -> None:
    x = OTHERS[form](dense(ROWS, COLUMNS))
    np.testing.assert_array_equal(st.compile(SPMM, {"A": "csr"})(A=sparse(), X=x), sparse() @ x)
    assert copied == [(ROWS, COLUMNS)]


def test_a_copy_is_made_where_rows_are_read_so_often_that_it_pays(copied: list[tuple[int, ...]]) -> None:
    """Rows that begin with cache lines gain nothing by it."""
    a = st.tensor(sparse(each=200))
    compiled = st.compile(SPMM, {"A": "csr"})
    wide = copy_at(dense(ROWS, 48), 0).reshape(ROWS, 48)
    for x, copies in ((wide[:, 1:33], 3), (wide[:, 8:40], 0)):
        copied.clear()
        for _ in range(3):
            np.testing.assert_array_equal(compiled(A=a, X=x), a.to_scipy() @ x)
        assert len(copied) == copies


def test_second_accesses_of_rows_apart_are_counted() -> None:
    assert second_accesses(0, 64, 64, 128) == 0
    assert second_accesses(16, 64, 64, 128) == 1
    assert second_accesses(8, 128, 64, 136) == 2 * 7 / 8  # every eighth row begins with a line
    assert second_accesses(8, 24, 32) == second_accesses(8, 24, 32, 24)


PROGRAM = """
kernel st_kernel
  reads X_vals: f64[] = X values
  writes Y_vals: f64[] = Y values
  size i_size = index i
  size k_size = index k
  size X_step = X step 1
  for i: i64 in 0 .. i_size:
    prefetch X_vals[min(i + 4, i_size - 1) * X_step]
    for k: i64 in 0 .. k_size:
      Y_vals[i * k_size + k] = X_vals[i * X_step + k] * X_vals[PLACE]
"""


@pytest.mark.parametrize(
    ("place", "fits"),
    [
        ("i * X_step + k", True),
        ("k + i * X_step", True),
        ("(i + 1) * X_step + (k / 8 * 8 + 2)", True),
        ("i * k_size + k", False),
        ("k", False),
        ("i * X_step * X_step + k", False),
        ("i * X_step + X_step", False),
        ("i * X_step + k * X_step", False),
        ("i * X_step + k % X_step", False),
    ],
)
def test_rows_may_lie_apart_where_each_index_is_a_row_times_the_step_plus_something(place: str, fits: bool) -> None:
    assert reads_rows_apart(parse_function(PROGRAM.replace("PLACE", place)), "X") == fits


def test_a_routine_gets_a_copy(copied: list[tuple[int, ...]]) -> None:
    """Whoever counts on rows that follow each other, such as BLAS, finds them so."""
    x, w = APART["a slice"](dense(ROWS, COLUMNS)), dense(COLUMNS, 9)
    compiled = st.compile("Y(i,l) = X(i,k) * W(k,l)", schedule="call([], gemm)")
    for calls in range(3):
        np.testing.assert_array_equal(compiled(X=x, W=w), x @ w)
        assert copied == (calls + 1) * [x.shape]


def test_kernels_are_pickled_without_those_for_rows_apart() -> None:
    x = APART["a slice"](dense(ROWS, COLUMNS))
    compiled: Kernel = st.compile(SPMM, {"A": "csr"})
    compiled(A=sparse(), X=x)
    again = pickle.loads(pickle.dumps(compiled))
    np.testing.assert_array_equal(again(A=sparse(), X=x), sparse() @ x)


def test_a_kernel_is_gone_with_its_last_user() -> None:
    compiled = st.compile(SPMM, {"A": "csr"})
    compiled(A=sparse(), X=APART["a slice"](dense(ROWS, COLUMNS)))
    kept = weakref.ref(compiled)
    gc.disable()
    try:
        del compiled
        assert kept() is None
    finally:
        gc.enable()


def test_out_may_not_lie_between_the_rows(copied: list[tuple[int, ...]]) -> None:
    room = dense(2 * ROWS, COLUMNS)
    with pytest.raises(st.DataError, match="out shares memory"):
        st.compile(SPMM, {"A": "csr"})(A=sparse(), X=room[::2], out=room[ROWS:])
    made = np.empty((ROWS, COLUMNS))
    np.testing.assert_array_equal(st.compile(SPMM, {"A": "csr"})(A=sparse(), X=room[::2], out=made), sparse() @ room[::2])
    assert not copied


def test_several_threads_call_one_kernel_with_different_slices() -> None:
    a, wide, wrong = st.tensor(sparse()), dense(ROWS, 8 * COLUMNS), list[int]()
    compiled = st.compile(SPMM, {"A": "csr"})

    def call(first: int) -> None:
        x = wide[:: 1 + first % 2][: ROWS // 2, first * COLUMNS : (first + 1) * COLUMNS]
        for _ in range(50):
            if not np.array_equal(compiled(A=half, X=x), half.to_scipy() @ x):
                wrong.append(first)

    half = st.tensor(a.to_scipy()[:, : ROWS // 2])
    callers = [threading.Thread(target=call, args=(first,)) for first in range(8)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong
