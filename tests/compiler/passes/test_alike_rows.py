"""Batches of rows that are alike, or uneven: added element by element or side by side, with the sums of any other order."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_runs import COMPILERS, run_both, run_compiled
from numpy.typing import NDArray
from short_rows import BLOCKS, COLUMNS, ROW, J, P, batched, matrix, rooms, row_sum, spmv
from sparsetune.compiler.ir.limits import AVERAGE_STEADY, BESIDE, FEWEST, ROWS
from sparsetune.compiler.ir.nodes import (
    F32,
    F64,
    I64,
    Binary,
    Const,
    For,
    Load,
    Prefetch,
    Steps,
    Store,
    Type,
    Unroll,
    Vector,
)
from sparsetune.compiler.ir.rewrite import mentions, walk
from sparsetune.compiler.passes.batches import AT_ONCE, ROWS_BESIDE, batch_short_sums
from sparsetune.compiler.passes.manager import Setting, VectorUnit
from sparsetune.compiler.pipeline import compile_kernel


def test_rows_that_are_alike_are_added_element_by_element() -> None:
    rows, length = 2 * ROWS, 5
    (pos, crd, _, _), _ = matrix([length] * rows)
    rng = np.random.default_rng(4)
    a, x, y = rng.random(rows * length), rng.random(COLUMNS), np.full(rows, np.nan)
    run_both(batched(spmv(), 64, True), [pos, crd, a, x, y], [rows])
    terms = (a * x[crd]).reshape(rows, length)
    np.testing.assert_array_equal(y, np.add.accumulate(terms, axis=1)[:, -1])


MOVING = Binary("*", Load("a", P, F64), Load("x", Binary("+", ROW, J, I64), F64), F64)
"""A term whose coordinate is counted from its row."""


@settings(max_examples=25, deadline=None)
@given(blocks=st.lists(BLOCKS, max_size=4))
def test_rows_that_terms_depend_on_are_summed_one_after_the_other(blocks: list[list[int]]) -> None:
    (pos, crd, a, _), _ = matrix([length for block in blocks for length in block])
    x = np.random.default_rng(5).integers(-9, 10, COLUMNS + len(pos)).astype(float)
    rows = np.repeat(np.arange(len(pos) - 1), np.diff(pos))
    y = np.full(len(pos) - 1, np.nan)
    made = batched(spmv(row_sum(MOVING)), 64, True)
    assert not rooms(made)
    run_both(made, [pos, crd, a, x, y], [len(y)])
    np.testing.assert_array_equal(y, np.bincount(rows, a * x[crd + rows], len(y)))


def test_rows_that_terms_depend_on_have_a_form_for_where_they_are_alike() -> None:
    """Where vectors were begun for every row, and what is left of them, rows of five took 1.6 times as long."""
    kernel = spmv(row_sum(MOVING))
    made = batch_short_sums(kernel, Setting(VectorUnit(32, False, 24, 32), kernel))
    foreseen = (Unroll(1), Vector(vectors=1, foreseen=True))
    loops = [loop for loop in walk(made.body) if isinstance(loop, For)]
    assert {loop.tag for loop in loops}.issuperset(foreseen)
    assert not any(isinstance(loop.body, Store) for loop in loops)  # no terms of many rows
    assert sum(loop.variable == P for loop in loops) == 3, "one more copy takes registers: rows of 27 took 1.09 times as long"


@pytest.mark.parametrize("shorter", [0, ROWS // 8], ids=["all alike", "mostly alike"])
def test_what_makes_no_vector_of_rows_that_are_alike_is_added_one_by_one(shorter: int) -> None:
    """How many elements are left is foreseen; vectors of which some lanes are read took 1.2 times as long."""
    lengths = np.full(2 * ROWS, AVERAGE_STEADY + 6)
    lengths[:shorter] -= 3
    (pos, crd, a, x), expected = matrix(lengths.tolist())
    y, made = np.full(len(lengths), np.nan), batched(spmv(), 64, True)
    masked = run_both(made, [pos, crd, a, x, y], [len(lengths)])
    np.testing.assert_array_equal(y, expected)
    plain = run_both(batched(spmv(), 64), [pos, crd, a, x, y], [len(lengths)])
    assert masked.counts == plain.counts  # no lane is read that is not there


def test_rows_that_are_alike_ask_ahead_once_a_row() -> None:
    """Also for what a schedule asks for; with two prefetches for each element rows of three took 1.3 times as long."""
    ahead = Prefetch("a", Binary("+", P, Const(1024, I64), I64), cache=2)
    body = row_sum()
    inner = next(step for step in body.statements if isinstance(step, For))
    asking = replace(inner, body=Steps((ahead, inner.body)))
    kernel = spmv(Steps(tuple(asking if step is inner else step for step in body.statements)))
    made = batch_short_sums(kernel, Setting(VectorUnit(32, False, 24, 32), kernel))
    foreseen = (Unroll(1), Vector(vectors=1, foreseen=True))
    in_order = [loop.body for loop in walk(made.body) if isinstance(loop, For) and loop.tag in foreseen]
    assert [[asked for asked in walk(each) if isinstance(asked, Prefetch)] for each in in_order] == [[], []]
    for begun in (asked for asked in walk(made.body) if isinstance(asked, Prefetch) and asked.count == FEWEST):
        assert (begun.array, begun.cache, mentions(begun.index, {"i"})) == ("a", 2, True)


def test_rows_most_of_which_are_as_long_as_the_one_before_are_alike() -> None:
    """Those at the border of a grid are shorter: in batches they took 1.4 times as long as by themselves."""
    lengths = ([AT_ONCE + 4] * 14 + [AT_ONCE + 2] * 2) * (ROWS // 8)
    (pos, crd, _, _), _ = matrix(lengths)
    rng = np.random.default_rng(4)
    a, x, y = rng.random(len(crd)), rng.random(COLUMNS), np.full(len(lengths), np.nan)
    run_both(batched(spmv(), 64, True), [pos, crd, a, x, y], [len(lengths)])
    rows = [np.add.accumulate((a * x[crd])[begin:end])[-1] for begin, end in pairwise(pos)]
    np.testing.assert_array_equal(y, rows)  # one after the other: shorter than vectors are worth there


def test_uneven_rows_about_as_long_as_is_added_at_once_are_added_without_asking_for_others() -> None:
    """Each other row is longer then, which no processor foresees: SpMV with rows of 10 to 20 took 1.06 times as long."""
    lengths = [AT_ONCE - 6, AT_ONCE + 4] * ROWS
    (pos, crd, _, _), _ = matrix(lengths)
    rng = np.random.default_rng(4)
    a, x, y = rng.random(len(crd)), rng.random(COLUMNS), np.full(len(lengths), np.nan)
    run_compiled(batched(spmv(), 64, True), [pos, crd, a, x, y], [len(lengths)])
    rows = []
    for begin, end in pairwise(pos):
        terms = np.zeros(2 * AT_ONCE)
        terms[: end - begin] = (a * x[crd])[begin:end]
        vectors = terms.reshape(4, 8)
        lanes = (vectors[0] + vectors[1]) + (vectors[2] + vectors[3])
        while len(lanes) > 1:
            lanes = lanes[: len(lanes) // 2] + lanes[len(lanes) // 2 :]
        rows.append(lanes[0])
    np.testing.assert_array_equal(y, rows)


def added_beside(terms: NDArray[np.floating], places: int, lanes: int) -> np.floating:
    """Return the sum of a row's terms in so many places, as rows side by side are added: whole vectors, halves, then neighbours."""
    lanes = min(lanes, places)
    filled = np.zeros(places, terms.dtype)
    filled[: len(terms)] = terms
    parts = filled.reshape(-1, lanes)
    while len(parts) > 1:
        parts = parts[::2] + parts[1::2]
    made = parts[0]
    while len(made) > min(ROWS_BESIDE, lanes):
        made = made[: len(made) // 2] + made[len(made) // 2 :]
    while len(made) > 1:
        made = made[::2] + made[1::2]
    return made[0]


@pytest.mark.parametrize("longest", BESIDE)
@pytest.mark.parametrize(("value", "width"), [(F64, 64), (F64, 32), (F32, 64), (F64, 16)], ids=str)
@pytest.mark.parametrize("compiler", COMPILERS)
def test_uneven_short_rows_are_added_side_by_side(compiler: str, value: Type, width: int, longest: int) -> None:
    rng = np.random.default_rng(7)
    rows, kind, lanes = 2 * ROWS, f"f{value.bytes}", width // value.bytes
    lengths = rng.integers(0, longest + 1, rows)
    lengths[[5, 70]] = 3, longest
    (pos, crd, _, _), _ = matrix(lengths.tolist(), value)
    a, x, y = (rng.random(size).astype(kind) for size in (len(crd), COLUMNS, rows))
    a[pos[5]], a[pos[70]] = np.inf, np.nan
    run_both(batched(spmv(value=value), width, width == 64), [pos, crd, a, x, y], [rows], compiler=compiler)
    terms = [(a * x[crd])[begin:end] for begin, end in pairwise(pos)]
    np.testing.assert_array_equal(y, [added_beside(each, longest, lanes) for each in terms])


@pytest.mark.parametrize("rows", [FEWEST + 3, ROWS + FEWEST + 3])
def test_the_rows_that_make_no_whole_vector_are_added_too(rows: int) -> None:
    (pos, crd, a, x), expected = matrix([place % 4 for place in range(rows)])
    y = np.full(rows, np.nan)
    run_both(batched(spmv(), 64, True), [pos, crd, a, x, y], [rows])
    np.testing.assert_array_equal(y, expected)


def test_blocks_without_entries_read_nothing_but_where_they_end() -> None:
    lengths = [0] * (4 * ROWS) + [1, 0] * ROWS
    (pos, crd, a, x), expected = matrix(lengths)
    y = np.full(len(lengths), np.nan)
    kernel = batched(spmv(), 64, True)
    outcome = run_both(kernel, [pos, crd, a, x, y], [len(y)])
    np.testing.assert_array_equal(y, expected)
    filled = run_both(kernel, [pos[4 * ROWS :], crd, a, x, np.zeros(2 * ROWS)], [2 * ROWS])
    assert outcome.counts.loads - filled.counts.loads == 2 * 4


@pytest.mark.parametrize("threads", [1, 2])
def test_blocks_without_entries_have_all_else_that_their_rows_add(threads: int) -> None:
    """Of an empty block the sums over its entries are left out, and no other loop of its rows."""
    rng = np.random.default_rng(2)
    a = sp.random_array((5 * ROWS, 90), density=0.05, format="lil", rng=rng)
    a[ROWS : 3 * ROWS] = 0
    a, x, d, z = a.tocsr(), rng.random(90), rng.random((5 * ROWS, 6)), rng.random(6)
    kernel = compile_kernel("y(i) = A(i,j) * x(j) + D(i,k) * z(k)", {"A": "csr"})
    np.testing.assert_allclose(kernel.bind(A=a, x=x, D=d, z=z, threads=threads)(), a @ x + d @ z)
