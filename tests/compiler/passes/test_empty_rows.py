"""Rows nearly all of which are empty: the same sums, and empty rows are not visited."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sparsetune as st
from loop_runs import function, run_both, run_compiled
from numpy.typing import NDArray
from sparsetune.compiler.ir.interpret import interpret
from sparsetune.compiler.ir.nodes import (
    F64,
    I32,
    I64,
    Binary,
    Cast,
    Const,
    Declare,
    For,
    Function,
    If,
    Load,
    Parallel,
    SetVar,
    Step,
    Steps,
    Store,
    Value,
    Var,
)
from sparsetune.compiler.ir.rewrite import walk
from sparsetune.compiler.passes.empty_rows import EMPTY, PIECE, skip_empty_rows
from sparsetune.compiler.passes.manager import Setting, VectorUnit

ROW, P, J, N, TOTAL = Var("i", I64), Var("p", I64), Var("j", I64), Var("n", I64), Var("t", F64)
COLUMNS = 50
VECTOR = Binary("*", Load("a", P, F64), Load("x", J, F64), F64)


def place(row: Value) -> Value:
    return Cast(Load("pos", row, I32), I64)


def spmv(
    tag: Parallel | None = None, zero: float = 0.0, op: str = "+", term: Value = VECTOR, last: Step | None = None, extra: Step | None = None
) -> Function:
    """Return ``for i: t = zero; for p in a row: t op= term; y[i] = t``."""
    inner = Steps((Declare(J, Cast(Load("crd", P, I32), I64)), SetVar(TOTAL, term, op)))
    sums = For(P, place(ROW), place(Binary("+", ROW, Const(1, I64), I64)), inner)
    body = Steps((Declare(TOTAL, Const(zero, F64)), *([] if extra is None else [extra]), sums, last or Store("y", ROW, TOTAL)))
    arrays = {"pos": ("i32", False), "crd": ("i32", False), "a": ("f64", False), "x": ("f64", True), "y": ("f64", True)}
    return function([For(ROW, Const(0, I64), N, body, tag)], arrays, ["n"])


def skipping(kernel: Function) -> Function:
    return skip_empty_rows(kernel, Setting(VectorUnit(64), kernel))


def matrix(rows: int, filled: list[int], length: int = 3) -> tuple[list[NDArray[Any]], NDArray[Any]]:
    """Return the arrays of a matrix of small integers with elements in some rows, and its product."""
    rng = np.random.default_rng(rows)
    lengths = np.zeros(rows, int)
    lengths[filled] = length
    pos = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    crd = rng.integers(0, COLUMNS, pos[-1]).astype(np.int32)
    a, x = rng.integers(1, 10, pos[-1]).astype(float), rng.integers(1, 10, COLUMNS).astype(float)
    return [pos, crd, a, x], np.bincount(np.repeat(np.arange(rows), lengths), a * x[crd], rows)


FILLED = [[], [0], [15], [16], [17, 18], [0, 31, 32, 33, 998], [999], list(range(100, 120))]


@pytest.mark.cc
@pytest.mark.parametrize("tag", [None, Parallel("static"), Parallel("dynamic", 64), Parallel("guided", 2 * PIECE)])
@pytest.mark.parametrize("filled", FILLED, ids=str)
def test_sums_are_right_wherever_the_filled_rows_are(filled: list[int], tag: Parallel | None) -> None:
    arrays, expected = matrix(1000, filled, 2)
    for kernel in (spmv(tag), skipping(spmv(tag))):
        y = np.full(1000, np.nan)
        run_both(kernel, [*arrays, y], [1000])
        np.testing.assert_array_equal(y, expected)


@pytest.mark.cc
def test_threads_take_pieces_of_rows() -> None:
    rows = 5 * PIECE + 17
    arrays, expected = matrix(rows, list(range(0, rows, 1000)))
    for tag in (Parallel(), Parallel("static"), Parallel("dynamic", 64)):
        y = np.full(rows, np.nan)
        run_compiled(skipping(spmv(tag)), [*arrays, y], [rows], 3)
        np.testing.assert_array_equal(y, expected)


def iterations(kernel: Function, rows: int, filled: list[int], length: int = 1) -> int:
    arrays, _ = matrix(rows, filled, length)
    return interpret(kernel, [*arrays, np.zeros(rows)], [rows]).counts.iterations


def test_empty_rows_are_not_visited() -> None:
    kernel, rows = skipping(spmv()), 64 * EMPTY
    assert iterations(kernel, rows, [3, 500]) == 2 * 2  # rows and elements
    assert iterations(kernel, rows, list(range(64))) == 2 * 64
    assert iterations(kernel, rows, list(range(65))) == rows + 65  # too many: one after the other


def test_the_sum_of_no_elements_may_be_any() -> None:
    kernel = skipping(spmv(zero=-np.inf, op="max"))
    arrays, _ = matrix(200, [70])
    y = np.zeros(200)
    interpret(kernel, [*arrays, y], [200])
    assert np.isneginf(np.delete(y, 70)).all()
    assert y[70] > 0


@pytest.mark.parametrize(
    "kernel",
    [
        spmv(last=Store("y", ROW, TOTAL, "+")),
        spmv(last=Store("y", Binary("*", ROW, Const(2, I64), I64), TOTAL)),
        spmv(last=Store("y", ROW, Binary("+", TOTAL, Load("x", ROW, F64), F64))),
        spmv(term=Load("y", J, F64)),
        spmv(extra=SetVar(TOTAL, Load("x", ROW, F64))),
        spmv(extra=Store("x", ROW, TOTAL)),
    ],
    ids=["added", "elsewhere", "more than the sum", "reads the result", "begins with an element", "stores more"],
)
def test_what_empty_rows_need_is_done(kernel: Function) -> None:
    assert skipping(kernel).body == kernel.body


def test_rows_in_other_loops_stay() -> None:
    inner = spmv().body.statements[0]
    arrays = dict.fromkeys("axy", ("f64", True))
    for tag, forms in ((None, 0), (Parallel(), 1)):
        kernel = function([For(Var("b", I64), Const(0, I64), N, inner, tag)], arrays, ["n"])
        assert len([step for step in walk(skipping(kernel).body) if isinstance(step, If)]) == forms


@pytest.mark.cc
@pytest.mark.parametrize(
    "schedule",
    [
        "",
        "parallelize(i, cpu_thread, no_races)",
        "prefetch(j, A, 512)",
        "collapse(i, j, d1); pos(d1, d2, A); split_up(d2, d3, d4, 3); parallelize(d3, cpu_thread, atomics, static)",
    ],
)
def test_matrices_of_empty_rows(schedule: str) -> None:
    rng = np.random.default_rng(2)
    rows = np.sort(rng.choice(40_000, 300))
    given: Any = sp.coo_array((rng.random(300), (rows, rng.integers(0, 90, 300))), shape=(40_000, 90)).tocsr()
    x = rng.random(90)
    kernel = st.compile("y(i) = A(i,j) * x(j)", {"A": "csr"}, schedule=schedule)
    assert "st_filled_row_i32(" in kernel.source
    for threads in (1, 2):
        np.testing.assert_allclose(kernel(A=given, x=x, threads=threads), given @ x)
