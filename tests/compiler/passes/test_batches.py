"""Sums of short rows in batches: right whatever the rows are, the same for any number of threads, and only where terms may go first."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_runs import COMPILERS, function, run_both, run_compiled, vectorized
from numpy.typing import NDArray
from sparsetune.compiler.ir.limits import AVERAGE_STEADY, BESIDE, FEWEST, ROWS, SHORT
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
    If,
    Load,
    Parallel,
    Prefetch,
    SetVar,
    Step,
    Steps,
    Store,
    Type,
    Unroll,
    Value,
    Var,
    Vector,
)
from sparsetune.compiler.ir.rewrite import mentions, walk
from sparsetune.compiler.passes.batches import AT_ONCE, AVERAGE_BESIDE, ROWS_BESIDE, batch_short_sums
from sparsetune.compiler.passes.manager import Setting, VectorUnit
from sparsetune.compiler.pipeline import compile_kernel

ROW, P, J, N = Var("i", I64), Var("p", I64), Var("j", I64), Var("n", I64)
ZERO, ONE = Const(0, I64), Const(1, I64)
COLUMNS = 50


def place(row: Value) -> Value:
    return Cast(Load("pos", row, I32), I64)


def element(value: Type) -> Value:
    return Binary("*", Load("a", P, value), Load("x", J, value), value)


def row_sum(
    term: Value | None = None,
    value: Type = F64,
    low: Value | None = None,
    high: Value | None = None,
    op: str = "+",
    inner: Unroll | None = None,
    last: Step | None = None,
    guard: Value | None = None,
) -> Steps:
    """Return what one row does: ``t = 0; for p: t += a[p] * x[crd[p]]; y[i] = t``."""
    total = Var("t", value)
    coordinate = Declare(J, Cast(Load("crd", P, I32), I64))
    following = place(Binary("+", ROW, ONE, I64))
    body = Steps((coordinate, SetVar(total, term or element(value), op)))
    loop: Step = For(P, low or place(ROW), high or following, body, inner)
    if guard is not None:
        loop = If(guard, loop)
    return Steps((Declare(total, Const(0.0, value)), loop, last or Store("y", ROW, total)))


def spmv(body: Steps | None = None, value: Type = F64, tag: Parallel | None = None) -> Function:
    arrays = {"pos": ("i32", False), "crd": ("i32", False), "a": (value.name, False), "x": (value.name, True), "y": (value.name, True)}
    return function([For(ROW, ZERO, N, body or row_sum(value=value), tag)], arrays, ["n"])


def batched(kernel: Function, vector_bytes: int = 32, masks: bool = False) -> Function:
    """Return a kernel with batches alone, not with the form of its loop for rows nearly all of which are empty."""
    return vectorized(kernel, vector_bytes, masks, 24, 32, without="empty_rows")


def rooms(kernel: Function) -> list[Allocate]:
    return [node for node in walk(kernel.body) if isinstance(node, Allocate)]


def matrix(lengths: list[int], value: Type = F64, seed: int = 3) -> tuple[list[NDArray[np.generic]], NDArray[np.generic]]:
    """Return the arrays of a matrix with rows of given lengths and small integers, and its product."""
    rng = np.random.default_rng(seed)
    kind = f"f{value.bytes}"
    pos = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    crd = rng.integers(0, COLUMNS, pos[-1]).astype(np.int32)
    a, x = rng.integers(-9, 10, pos[-1]).astype(kind), rng.integers(-9, 10, COLUMNS).astype(kind)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    y = np.bincount(rows, a * x[crd], len(lengths)).astype(kind)
    return [pos, crd, a, x], y


BLOCKS = st.one_of(
    st.lists(st.integers(0, 2 * SHORT), min_size=1, max_size=ROWS),
    st.lists(st.sampled_from((0, 1, AT_ONCE, AT_ONCE + 1, 5 * SHORT)), min_size=ROWS // 2, max_size=2 * ROWS),
    st.lists(st.sampled_from((0, 1, 2, *BESIDE)), min_size=1, max_size=2 * ROWS),
    st.lists(st.sampled_from((AVERAGE_BESIDE - 1, BESIDE[-1], BESIDE[-1] + 1)), min_size=1, max_size=2 * ROWS),
    st.lists(st.integers(0, BESIDE[0]), min_size=1, max_size=2 * ROWS),
    st.integers(0, 2 * AT_ONCE).map(lambda length: [length] * ROWS),
)
"""Rows of some blocks: of any length, of lengths at the limits, and all as long."""


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
