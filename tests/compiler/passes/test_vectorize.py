"""Vectorized functions compute what the plain ones do; and the loops that should become vectors do."""

from __future__ import annotations

from collections.abc import Callable

import loop_kernels
import numpy as np
import pytest
from loop_runs import function, run_compiled, vectorized
from short_nodes import K, N, plus, whole
from sparsetune.compiler.ir.nodes import (
    BOOL,
    F32,
    F64,
    I64,
    Allocate,
    Binary,
    Cast,
    Const,
    Declare,
    For,
    Function,
    If,
    Select,
    SetVar,
    Step,
    Steps,
    Store,
    Type,
    Unary,
    Value,
    Var,
    Vector,
)
from sparsetune.compiler.ir.rewrite import walk
from sparsetune.compiler.passes.plan import Chunk, chunks_of
from sparsetune.compiler.passes.simplify import simplify
from vector_loops import ARRAYS, TOTAL, buffers, copied, element, loop, outputs, registers, times, updates, vectors_of, with_total

EXTENTS = (0, 1, 2, 3, 4, 7, 8, 9, 15, 16, 31, 32, 33, 70, 129, 300)
WIDTHS = (16, 32, 64)


def elementwise(high: Value, tag: Vector | None) -> list[Step]:
    t, u = Var("t", F64), Var("u", F64)
    shifted = Var("j", I64)
    return [
        loop(
            high,
            Declare(shifted, plus(K, whole(5))),
            Declare(u, element("s", whole(3))),
            Declare(t, times(element("x", shifted), u)),
            SetVar(t, Const(2.0, F64), "+"),
            Store("y", plus(K, whole(1)), Binary("-", Var("t", F64), Unary("-", element("y", plus(K, whole(1))), F64), F64)),
            Store("z", K, Var("t", F64), "+"),
            low=2,
            tag=tag,
        )
    ]


def single_precision(high: Value, tag: Vector | None) -> list[Step]:
    scaled = Binary("*", element("f", K, F32), Const(0.5, F32), F32)
    mixed = Binary("+", Cast(element("f", K, F32), F64), element("x", K), F64)
    return [loop(high, Store("f", K, scaled), tag=tag), loop(high, Store("y", K, mixed), tag=tag)]


def reductions(high: Value, _: Vector | None) -> list[Step]:
    total, product = Var("total", F64), Var("product", F64)
    sign = Binary("-", Const(1.0, F64), Const(2.0, F64), F64)
    return [
        Declare(total, Const(10.0, F64)),
        Declare(product, Const(1.0, F64)),
        loop(high, SetVar(total, times(element("x", K), element("y", K)), "+"), SetVar(total, element("x", K), "-"), tag=Vector()),
        loop(high, SetVar(product, sign, "*"), tag=Vector()),
        Store("s", whole(0), total),
        Store("s", whole(1), product),
        loop(high, Store("s", whole(2), element("x", K), "+"), tag=Vector()),
    ]


def nested(high: Value, tag: Vector | None) -> list[Step]:
    p, t = Var("p", I64), Var("t", F64)
    inner = For(p, whole(0), whole(3), SetVar(t, times(element("x", p), element("x", plus(times(p, whole(7), I64), K))), "+"))
    guarded = If(Binary(">", element("s", whole(1)), Const(0.0, F64), Type("bool")), SetVar(t, Const(1.0, F64), "+"))
    return [loop(high, Declare(t, Const(0.0, F64)), inner, guarded, Store("y", K, t), tag=tag)]


BODIES = (elementwise, single_precision, reductions, nested, registers)


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("tag", [None, Vector()], ids=["untagged", "tagged"])
@pytest.mark.parametrize("constant", [True, False], ids=["constant", "variable"])
def test_vectors_compute_the_same(body, tag: Vector | None, constant: bool) -> None:
    for extent in EXTENTS:
        plain = function(body(whole(extent) if constant else N, tag), ARRAYS, ["n"])
        expected = outputs(plain, [extent])
        for width in WIDTHS:
            for ours, theirs in zip(outputs(vectorized(simplify(plain), width), [extent]), expected, strict=True):
                np.testing.assert_array_equal(ours, theirs)  # small integers: sums are exact in any order


@pytest.mark.cc
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("width", WIDTHS)
def test_vectors_compiled(compiler: str, width: int) -> None:
    import shutil

    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is not installed")
    statements = [
        Steps((For(Var("once", I64), whole(0), whole(2), Steps(tuple(body(high, Vector())))),))
        for body in BODIES
        for high in (whole(7), whole(21), whole(28), whole(200), N)
    ]
    plain = function(statements, ARRAYS, ["n"])
    expected, arrays = outputs(plain, [37]), buffers()
    run_compiled(vectorized(plain, width), arrays, [37], compiler=compiler)
    for ours, theirs in zip(arrays, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_chunks() -> None:
    assert chunks_of(21, 8) == (Chunk(0, 8), Chunk(8, 8), Chunk(16, 4), Chunk(20, 1))
    assert chunks_of(3, 8) == (Chunk(0, 2), Chunk(2, 1))
    assert chunks_of(0, 8) == ()


@pytest.mark.parametrize("lanes", [2, 4, 8, 16])
def test_chunks_that_may_overlap(lanes: int) -> None:
    assert chunks_of(7, 8, overlap=True) == (Chunk(0, 4), Chunk(3, 4))
    assert chunks_of(13, 8, overlap=True) == (Chunk(0, 8), Chunk(5, 8))
    assert chunks_of(12, 8, overlap=True) == chunks_of(12, 8)
    for extent in range(70):
        chunks, apart = chunks_of(extent, lanes, overlap=True), chunks_of(extent, lanes)
        places = [range(chunk.first, chunk.first + chunk.lanes) for chunk in chunks]
        assert sorted(set().union(*places)) == list(range(extent))
        assert len({chunk.first for chunk in chunks}) == len(chunks) <= len(apart)
        assert [chunk.lanes for chunk in chunks] == sorted((chunk.lanes for chunk in chunks), reverse=True)


def in_place(high: Value) -> Step:
    return loop(high, Store("y", K, times(element("y", K), Const(2.0, F64))))


def added_in_memory(high: Value) -> Step:
    return loop(high, Store("y", K, element("x", K), "+"))


def stored_lanes(*statements: Step) -> list[int]:
    """Return the lanes of each store to ``y``."""
    made = vectorized(function(list(statements), ARRAYS, ["n"]), 64)
    return [store.value.type.lanes for store in walk(made.body) if isinstance(store, Store) and store.array == "y"]


@pytest.mark.parametrize(("body", "lanes"), [(in_place, [4, 2, 1]), (added_in_memory, [4, 2, 1]), (copied, [4, 4])])
def test_vectors_overlap_where_values_may_be_computed_twice(body: Callable[[Value], Step], lanes: list[int]) -> None:
    assert stored_lanes(body(whole(7))) == lanes


def test_vectors_that_are_summed_do_not_overlap() -> None:
    total = Var("total", F64)
    summed = loop(whole(7), SetVar(total, element("x", K), "+"), tag=Vector())
    assert stored_lanes(Declare(total, Const(0.0, F64)), summed, Store("z", whole(0), total), copied(whole(7))) == [4, 2, 1]


def test_rows_overlap_in_registers_and_not_in_memory() -> None:
    """A row for which no registers are left is added to in memory, where each value is added once."""
    made = vectorized(simplify(loop_kernels.spmm(15)), 64)
    assert {store.value.type.lanes for store in walk(made.body) if isinstance(store, Store)} == {8}
    p, long, short = Var("p", I64), whole(28 * 8), whole(7)
    updates = [loop(extent, Store(name, K, element("x", plus(p, K)), "+")) for name, extent in (("w", long), ("v", short))]
    kernel = function(
        [
            *(Allocate(name, F64, extent, "registers", zero=True) for name, extent in (("w", long), ("v", short))),
            For(p, whole(0), whole(3), Steps(tuple(updates))),
            loop(long, Store("y", K, element("w", K))),
            loop(short, Store("z", K, element("v", K))),
        ],
        ARRAYS, ["n"],
    )  # fmt: skip
    made = vectorized(kernel, 64)
    assert [node.array for node in walk(made.body) if isinstance(node, Allocate)] == ["v"]
    for ours, theirs in zip(outputs(made, [0]), outputs(kernel, [0]), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def steps(made: Function) -> list[int]:
    return [node.step for node in walk(made.body) if isinstance(node, For)]


MOVED = Store("y", plus(K, times(Var("p", I64), whole(2), I64)), element("x", K))
SOME_LANES = If(Binary("<", K, whole(3), Type("bool")), Store("y", K, Const(1.0, F64)))


@pytest.mark.parametrize(
    ("name", "statement"),
    [
        ("a product is not reassociated without a tag", SetVar(TOTAL, element("x", K), "*")),
        ("iterations that meet", Store("y", plus(K, whole(1)), element("y", K))),
        ("a place that an inner loop moves", For(Var("p", I64), whole(0), whole(3), MOVED)),
        ("elements that are not consecutive", Store("y", K, element("x", times(K, whole(2), I64)))),
        ("the loop variable as a value", Store("y", K, Cast(K, F64))),
        ("a condition that differs by lane", SOME_LANES),
    ],
)
def test_loops_that_stay_as_they_are(name: str, statement: Step) -> None:
    plain = with_total(loop(N, statement))
    made = vectorized(plain, 64)
    assert vectors_of(made.body) == [], name
    assert steps(made) == steps(plain)


def test_a_vector_loop_without_a_vector_form_keeps_its_tag() -> None:
    x, z = element("x", K), element("z", K)
    chosen = SetVar(TOTAL, Select(Binary("<", x, z, BOOL), x, z, F64), "+")
    made = vectorized(with_total(loop(N, chosen, tag=Vector())), 64)
    assert next(node for node in walk(made.body) if isinstance(node, For)).tag == Vector()


ROW = plus(times(Var("i", I64), whole(20), I64), K)


def rows_stored(made: Function) -> int:
    """Count the stores into ``y`` inside the loop over p."""
    sparse = next(node for node in walk(made.body) if isinstance(node, For) and node.variable.name == "p")
    return sum(isinstance(node, Store) and node.array == "y" for node in walk(sparse))


def test_updated_rows_are_kept_in_registers() -> None:
    made = vectorized(simplify(updates(ROW)), 64)
    assert rows_stored(made) == 0
    np.testing.assert_array_equal(outputs(made, [0])[1], outputs(updates(ROW), [0])[1])


@pytest.mark.parametrize(
    ("name", "kernel"),
    [
        ("the row moves", updates(plus(Var("p", I64), K))),
        ("something reads the row", updates(ROW, Store("s", whole(0), element("y", whole(3))))),
        ("something else writes it", updates(ROW, Store("y", whole(3), Const(1.0, F64)))),
        ("two rows of one array", updates(ROW, loop(whole(20), Store("y", K, Const(1.0, F64), "+")))),
    ],
)
def test_rows_that_stay_in_memory(name: str, kernel: Function) -> None:
    made = vectorized(simplify(kernel), 64)
    assert rows_stored(made) > 0, name
    np.testing.assert_array_equal(outputs(made, [0])[1], outputs(kernel, [0])[1])


def tiled(count: int) -> list[Step]:
    """Sum rows tile by tile in a register array that is indexed from the tile's start."""
    start, p = Var("start", I64), Var("p", I64)
    local = Binary("-", K, start, I64)

    def tile(*body: Step) -> For:
        return For(K, start, plus(start, whole(count)), Steps(body))

    return [
        Declare(start, times(Var("t", I64), whole(count), I64)),
        Allocate("w", F64, whole(count), "registers", zero=True),
        For(p, whole(0), whole(4), tile(Store("w", local, times(element("x", p), element("x", plus(p, K))), "+"))),
        tile(Store("y", K, element("w", local))),
    ]


@pytest.mark.parametrize("count", [1, 4, 20])
def test_tiles_are_counted_from_zero(count: int) -> None:
    plain = function([For(Var("t", I64), whole(0), whole(3), Steps(tuple(tiled(count))))], ARRAYS)
    made = vectorized(simplify(plain), 32)
    assert not any(isinstance(node, Allocate) for node in walk(made.body)) or count == 1
    np.testing.assert_array_equal(outputs(made, [])[1], outputs(plain, [])[1])


def test_register_arrays_of_one_name_in_two_branches() -> None:
    t = Var("t", I64)
    branches = If(Binary("<", t, whole(2), Type("bool")), Steps(tuple(tiled(16))), Steps(tuple(tiled(24))))
    again = For(t, whole(0), whole(3), Steps(tuple(tiled(8))))
    plain = function([For(t, whole(0), whole(4), branches), again], ARRAYS)
    made = vectorized(simplify(plain), 64)
    assert not any(isinstance(node, Allocate) for node in walk(made.body))
    np.testing.assert_array_equal(outputs(made, [])[1], outputs(plain, [])[1])
