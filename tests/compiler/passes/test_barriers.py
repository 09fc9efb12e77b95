"""Threads of a warp wait for each other where an element may change hands between two turns of a loop, and only there."""

from __future__ import annotations

import pytest
from sparsetune.compiler.ir.arithmetic import ONE, ZERO, integer
from sparsetune.compiler.ir.nodes import F64, I64, Barrier, Binary, Const, Dealt, For, Steps, Store, Value, Var
from sparsetune.compiler.ir.rewrite import nodes_of
from sparsetune.compiler.passes.barriers import with_barriers

ROW, COLUMN, ROWS, LENGTH = (Var(name, I64) for name in ("row", "column", "rows", "length"))


def sums(begin: Value, column: Value, length: Value = LENGTH, low: Value = ZERO, high: Value = LENGTH) -> Steps:
    """Return a loop over rows, for each of which threads add to elements from ``begin * length`` on."""
    index = Binary("+", Binary("*", begin, length, I64), column, I64)
    inner = For(COLUMN, low, high, Store("T", index, Const(1.0, F64), "+"), Dealt("thread", "warp"))
    return Steps((For(ROW, ZERO, ROWS, inner),))


def waits(steps: Steps) -> bool:
    return bool(nodes_of(with_barriers(steps, "warp", frozenset()), Barrier))


@pytest.mark.parametrize("length", [LENGTH, integer(6)])
def test_a_column_is_always_of_the_same_thread(length: Value) -> None:
    assert not waits(sums(ROW, COLUMN, length, high=length))
    assert not waits(sums(Binary("*", ROW, ROW, I64), COLUMN, length, high=length))


@pytest.mark.parametrize(
    "steps",
    [
        sums(ROW, COLUMN, integer(5), high=integer(6)),  # rows overlap
        sums(ROW, COLUMN, integer(6), high=integer(5)),  # they do not, but that is not looked for
        sums(ROW, COLUMN, low=ONE),
        sums(ROW, Binary("+", COLUMN, ROW, I64)),
        sums(ROW, Binary("*", COLUMN, integer(2), I64)),
        sums(ROW, COLUMN, length=ROW, high=ROW),
    ],
)
def test_columns_that_may_change_hands(steps: Steps) -> None:
    assert waits(steps)


def test_threads_of_two_loops() -> None:
    """Which thread of its warp has a column is not looked for."""
    index = Binary("+", Binary("*", ROW, LENGTH, I64), COLUMN, I64)
    threads = For(Var("thread", I64), ZERO, ROWS, Store("T", index, Const(1.0, F64), "+"), Dealt("thread", "warp"))
    warps = For(COLUMN, ZERO, LENGTH, threads, Dealt("warp", "block"))
    assert nodes_of(with_barriers(Steps((For(ROW, ZERO, ROWS, warps),)), "block", frozenset()), Barrier)
