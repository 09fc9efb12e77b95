"""Sums of short rows in batches: right whatever the rows are, the same for any number of threads, and only where terms may go first."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_runs import COMPILERS, run_both, run_compiled, vectorized
from short_rows import BLOCKS, ONE, ROW, ZERO, J, N, P, batched, element, matrix, place, rooms, row_sum, spmv
from sparsetune.compiler.ir.limits import FEWEST, ROWS
from sparsetune.compiler.ir.nodes import (
    BOOL,
    F32,
    F64,
    I32,
    I64,
    Allocate,
    ArrayRef,
    Binary,
    Call,
    Cast,
    Const,
    Declare,
    For,
    Function,
    Load,
    Parallel,
    Steps,
    Store,
    Type,
    Unroll,
    Var,
)
from sparsetune.compiler.ir.rewrite import walk


@settings(max_examples=25, deadline=None)
@given(blocks=st.lists(BLOCKS, max_size=4))
@pytest.mark.parametrize(("width", "masks"), [(32, False), (64, True), (64, False)])
@pytest.mark.parametrize("value", [F64, F32], ids=str)
def test_any_rows(width: int, masks: bool, value: Type, blocks: list[list[int]]) -> None:
    arrays, expected = matrix([length for block in blocks for length in block], value)
    y = np.full(len(expected), np.nan, expected.dtype)
    run_both(batched(spmv(value=value), width, masks), [*arrays, y], [len(y)])
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("compiler", COMPILERS)
def test_what_stands_behind_a_row_is_not_added(compiler: str) -> None:
    lengths = [3, 0, 17, 5] * 40
    (pos, crd, a, x), expected = matrix(lengths)
    spoilt = np.repeat(np.arange(len(lengths)) % 4 == 3, lengths)
    a[spoilt] = np.resize([np.nan, np.inf], np.count_nonzero(spoilt))
    y = np.zeros(len(lengths))
    run_both(batched(spmv(), 64, True), [pos, crd, a, x, y], [len(y)], compiler=compiler)
    kept = np.arange(len(lengths)) % 4 != 3
    np.testing.assert_array_equal(y[kept], expected[kept])
    assert not np.isfinite(y[~kept]).any()


TAGS = (Parallel(), Parallel("static"), Parallel("dynamic", FEWEST), Parallel("guided", 100), Parallel("dynamic", 300))


@pytest.mark.parametrize("tag", TAGS)
@pytest.mark.parametrize("rows", [1, ROWS, 37 * ROWS + 5])
def test_threads_share_blocks_and_sum_alike(tag: Parallel, rows: int) -> None:
    made = batched(spmv(tag=tag))
    loops = [node for node in walk(made.body) if isinstance(node, For) and isinstance(node.tag, Parallel)]
    assert len(loops) == 1
    assert [room.array for room in loops[0].private if isinstance(room, Allocate)] == ["p_terms"]
    rng = np.random.default_rng(8)
    arrays, _ = matrix(rng.integers(0, 30, rows).tolist())
    arrays[2:] = [rng.random(len(array)) for array in arrays[2:]]
    results = []
    for threads in (1, 2, 5):
        y = np.full(rows, np.nan)
        run_compiled(made, [*arrays, y], [rows], threads)
        results.append(y)
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])
    pos, crd, a, x = arrays
    np.testing.assert_allclose(results[0], np.bincount(np.repeat(np.arange(rows), np.diff(pos)), a * x[crd], rows))


def test_threads_take_as_many_rows_as_asked_for() -> None:
    chunks = {}
    for chunk in (FEWEST, 100, 300, 1024):
        loop = next(node for node in walk(batched(spmv(tag=Parallel("dynamic", chunk))).body) if isinstance(node, For))
        assert isinstance(loop.tag, Parallel)
        chunks[chunk] = loop.tag.chunk
    assert chunks == {FEWEST: 1, 100: 1, 300: 300 // ROWS, 1024: 1024 // ROWS}


def test_rows_inside_another_loop_have_one_room_for_all() -> None:
    kernel = spmv()
    outer = For(Var("o", I64), ZERO, N, kernel.body)
    made = batched(replace(kernel, body=Steps((outer,))))
    first = made.body.statements[0]
    assert isinstance(first, Allocate) or any(first is room for room in made.body.statements)
    assert len(rooms(made)) == 1
    assert not any(isinstance(node, Allocate) for loop in walk(made.body) if isinstance(loop, For) for node in walk(loop))
    arrays, expected = matrix([1, 2, 30, 4] * 30)
    y = np.full(120, np.nan)
    run_both(made, [*arrays, y], [120])
    np.testing.assert_array_equal(y, expected)


def test_two_sums_of_a_row_have_a_room_each() -> None:
    square = Binary("*", Load("a", P, F64), Load("a", P, F64), F64)
    some = Binary("<", place(ROW), place(Binary("+", ROW, ONE, I64)), BOOL)
    second = row_sum(Binary("*", square, Load("x", J, F64), F64), last=Store("y", ROW, Var("t", F64), "+"), guard=some)
    made = batched(spmv(Steps((row_sum(), second))))
    assert len(rooms(made)) == 2
    (pos, crd, a, x), expected = matrix([2, 0, 19, 1, 7] * 30)
    y = np.full(len(expected), np.nan)
    run_both(made, [pos, crd, a, x, y], [len(y)])
    np.testing.assert_array_equal(y, expected + np.bincount(np.repeat(np.arange(len(y)), np.diff(pos)), a * a * x[crd], len(y)))


DRAINED = Call("bits_drain", (ArrayRef("crd", I32), ArrayRef("bits", Type("u64")), N), I64)


@pytest.mark.parametrize(
    "kernel",
    [
        spmv(row_sum(last=Steps((Declare(Var("d", I64), DRAINED), Store("y", ROW, Var("t", F64)))))),
        spmv(row_sum(inner=Unroll(1))),
        spmv(row_sum(op="-")),
        spmv(row_sum(Binary("*", element(F64), Cast(ROW, F64), F64))),
        spmv(row_sum(Binary("*", element(F64), Var("t", F64), F64))),
        spmv(row_sum(last=Store("x", ROW, Var("t", F64)))),
        spmv(row_sum(low=Binary("max", place(ROW), N, I64))),
        spmv(row_sum(high=place(Binary("+", ROW, Const(2, I64), I64)))),
        spmv(row_sum(low=ZERO, high=N)),
        spmv(row_sum(guard=Binary("<", ROW, N, BOOL))),
        spmv(tag=Parallel("dynamic", FEWEST - 1)),
    ],
    ids=[
        "drained into", "one by one", "difference", "row's", "sum's",
        "operand written", "clipped", "rows overlap", "no rows", "guarded", "few rows",
    ],
)
def test_what_has_no_batches(kernel: Function) -> None:
    assert not rooms(batched(kernel))


def test_machines_that_do_not_gather_have_none() -> None:
    assert rooms(batched(spmv()))
    assert not rooms(vectorized(spmv(), 32))
