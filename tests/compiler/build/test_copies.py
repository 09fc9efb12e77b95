"""Dense operands that do not begin with a cache line, or are not in C order: when they are copied, and that results are right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sparsetune as st
from differential.interpreted import interpreted
from sparsetune.compiler.build.copies import LEAST_COST, LINE_COST, second_accesses
from sparsetune.compiler.build.kernel import TypedKernel
from sparsetune.compiler.storage.aligned import copy_at
from sparsetune.compiler.storage.native_kernels import NativeKernels
from sparsetune.compiler.storage.numpy_kernels import NumpyKernels

pytestmark = pytest.mark.cc
SPMM = "Y(i,k) = A(i,j) * X(j,k)"
OFFSETS = [0, 8, 24, 64]

FORMS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    **{f"{offset} bytes behind a line": lambda x, offset=offset: copy_at(x, offset).reshape(x.shape) for offset in OFFSETS},
    "columns": lambda x: np.asfortranarray(x),
    "every second column": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "every third row": lambda x: np.repeat(x, 3, axis=0)[::3],
    "rows in reverse": lambda x: x[::-1].copy()[::-1],
    "columns in reverse": lambda x: x[:, ::-1].copy()[:, ::-1],
    "a slice": lambda x: np.pad(x, ((1, 2), (3, 4)))[1:-2, 3:-4],
    "columns of a slice": lambda x: np.asfortranarray(np.pad(x, ((1, 2), (3, 4))))[1:-2, 3:-4],
}


def matrix(rows: int = 60, columns: int = 40, each: int = 7, dtype: str = "float64") -> Any:
    """Return a matrix with so many entries in each row."""
    crd = np.sort(np.argsort(np.random.default_rng(rows).random((rows, columns)), axis=1)[:, :each], axis=1)
    values = np.random.default_rng(each).integers(1, 9, rows * each).astype(dtype)
    return sp.csr_array((values, crd.reshape(-1), np.arange(0, rows * each + 1, each)), shape=(rows, columns))


def dense(*shape: int, dtype: str = "float64") -> np.ndarray:
    return np.random.default_rng(shape[0]).integers(-9, 9, shape).astype(dtype)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """Return a list of the shapes of all arrays that are copied from now on."""
    found: list[tuple[int, ...]] = []
    for kernels in (NativeKernels, NumpyKernels):
        whole = kernels.copy

        def noted(self: Any, array: Any, out: Any, whole: Any = whole) -> None:
            found.append(array.shape)
            whole(self, array, out)

        monkeypatch.setattr(kernels, "copy", noted)
    return found


@pytest.mark.parametrize("width", [16, 32, 64])
@pytest.mark.parametrize("row", [4, 8, 24, 32, 56, 64, 72, 128, 160, 200, 256, 1032])
def test_loads_that_touch_a_second_line_are_counted(row: int, width: int) -> None:
    def lines(begin: int) -> int:
        loads = [(at, min(at + width, end)) for end in range(begin + row, begin + 64 * row + 1, row) for at in range(end - row, end, width)]
        return sum(len({byte // 64 for byte in range(*load)}) for load in loads)

    for offset in (0, 4, 8, 16, 32, 40, 60):
        assert second_accesses(offset, row, width) == (lines(offset) - lines(0)) / 64


@pytest.mark.parametrize("dtype", ["float64", "float32", "uint8"])
@pytest.mark.parametrize("columns", [1, 5, 32])
@pytest.mark.parametrize("each", [2, 30])
def test_products_of_operands_anywhere_in_memory(each: int, columns: int, dtype: str) -> None:
    a, x = matrix(400, each=each, dtype=dtype), dense(40, columns, dtype=dtype)
    compiled, expected = st.compile(SPMM, {"A": "csr"}), a.toarray() @ x
    kept = st.tensor(a)
    for _ in range(2):  # in turn, so that the same kept call gets operands of all forms
        for form, given in ((form, made(x)) for form, made in FORMS.items()):
            np.testing.assert_array_equal(given, x)
            for result in (st.evaluate(SPMM, {"A": kept, "X": given}), compiled(A=a, X=given), compiled.bind(A=a, X=given)()):
                np.testing.assert_array_equal(result, expected, err_msg=form)


@pytest.mark.parametrize("form", FORMS)
def test_tensors_and_vectors_anywhere_in_memory(form: str) -> None:
    b = st.tensor((np.random.default_rng(3).integers(0, 20, (3, 3000)), np.ones(3000)), "csf", (20, 20, 20))
    c, d, x = dense(20, 16), dense(20, 24)[:, :16], dense(20, 1)
    at_c, at_d, at_x = FORMS[form](c), FORMS[form](d), FORMS[form](x)[:, 0]
    for _ in range(3):
        made = st.evaluate("Y(i,r) = B(i,j,k) * C(j,r) * D(k,r)", {"B": b, "C": at_c, "D": at_d})
        np.testing.assert_array_equal(made, np.einsum("ijk,jr,kr->ir", b.to_numpy(), c, d))
        made = st.evaluate("y(i,j) = B(i,j,k) * x(k)", {"B": b, "x": at_x})
        np.testing.assert_array_equal(made, np.einsum("ijk,k->ij", b.to_numpy(), x[:, 0]))
        made = st.evaluate("s = C(i,j) * D(i,j)", {"C": at_c, "D": at_d})
        assert made == (c * d).sum()


@pytest.mark.parametrize(
    ("each", "columns", "offset", "copies"),
    [
        (30, 16, 8, True),  # each row is read 300 times
        (30, 16, 0, False),
        (30, 16, 64, False),
        (1, 16, 8, False),  # 10 times: a copy takes longer
        (5, 16, 8, False),  # 50 times, but all in less time than asking for a copy
        (30, 1, 8, False),  # no row is longer than an element, and none of these lies in two lines
    ],
)
def test_a_copy_is_made_where_it_pays(each: int, columns: int, offset: int, copies: bool, made: list[tuple[int, ...]]) -> None:
    a, x = matrix(400, each=each), copy_at(dense(40, columns), offset).reshape(40, columns)
    assert 400 * 30 * 2 > LEAST_COST + LINE_COST * 40 * 2 > 400 * 2
    compiled = st.compile(SPMM, {"A": "csr"})
    bound = compiled.bind(A=a, X=x)
    for call in (lambda: compiled(A=a, X=x), bound):
        for _ in range(3):
            made.clear()
            call()
            assert made.count(x.shape) + made.count((x.size,)) == copies
    x *= 2
    np.testing.assert_array_equal(bound(), a @ x)


@pytest.mark.parametrize("expression", ["Y(i,j) = A(i,j) * X(i,j)", "Y(i,k) = X(i,j) * Z(j,k)", "Y(i,j) = X(i,j) * 2", SPMM])
def test_rows_that_no_coordinate_chooses_are_read_where_they_are(expression: str, made: list[tuple[int, ...]]) -> None:
    x = copy_at(dense(400, 40), 8).reshape(400, 40)
    every = {"A": st.tensor(matrix(400, each=30)), "X": x, "Z": dense(40, 40)}
    operands = {name: every[name] for name in "AXZ" if f"{name}(" in expression}
    if expression == SPMM:
        expression = "Y(i,j,k) = A(i,j) * X(i,k)"
    for _ in range(3):
        st.evaluate(expression, operands)
    assert not {(400, 40), (16000,)} & set(made)


def test_strided_operands_are_copied_once_a_call(made: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch) -> None:
    a, x = st.tensor(matrix()), np.asfortranarray(dense(40, 16))
    st.evaluate(SPMM, {"A": a, "X": x})
    made.clear()
    monkeypatch.setattr(TypedKernel, "bind_operands", None)  # later calls do not prepare anything again
    for _ in range(3):
        x *= 2
        np.testing.assert_array_equal(st.evaluate(SPMM, {"A": a, "X": x}), a.to_scipy() @ x)
    assert made == 3 * [(40, 16)]


def test_arguments_hold_what_copies_will_hold() -> None:
    """Those who run a kernel themselves, such as the interpreter of the loop IR, get the operands' values, not memory to copy them to."""
    x = copy_at(dense(40, 16), 8).reshape(40, 16)
    bound = st.compile(SPMM, {"A": "csr"}).bind(A=matrix(400, 40, 30), X=x, threads=1)
    for _ in range(2):
        given = dict(zip((array.name for array in bound.kernel.spec.function.arrays), bound.arguments()[0], strict=True))["X_vals"]
        assert given is not None
        assert not np.shares_memory(given, x)
        np.testing.assert_array_equal(given, x.reshape(-1))
        x += 1
    np.testing.assert_array_equal(interpreted(bound)[0], matrix(400, 40, 30) @ x)


@pytest.mark.parametrize("each", [1, 30])
def test_out_may_not_lie_in_an_operand_that_is_copied(each: int) -> None:
    room = copy_at(dense(440, 16), 8).reshape(440, 16)
    for x in (room[:40], room[:80:2]):
        with pytest.raises(st.DataError, match="out shares memory"):
            st.compile(SPMM, {"A": "csr"})(A=matrix(400, each=each), X=x, out=room[20:420])
