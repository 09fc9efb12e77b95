"""Atomic updates are made once after a loop that does not move them, and not moved where the loop needs them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse
from loop_runs import function, run_both, source_of, vectorized
from sparsetune.compiler.ir.nodes import (
    F64,
    I64,
    Binary,
    Const,
    Declare,
    For,
    Function,
    Load,
    Node,
    Parallel,
    Step,
    Steps,
    Store,
    Value,
    Var,
)
from sparsetune.compiler.ir.rewrite import walk
from sparsetune.compiler.pipeline import compile_kernel
from sparsetune.compiler.storage.construct import tensor

R, P, K, N = (Var(name, I64) for name in ("i", "p", "k", "n"))
ZERO, ONE = Const(0, I64), Const(1, I64)
ROW = 5


def plus(left: Value, right: Value, op: str = "+") -> Value:
    return Binary(op, left, right, I64)


def segments(update: Step) -> Function:
    """Runs ``update`` for all p of segments i of ``a``, dealt out to threads."""
    low, high = Load("pos", R, I64), Load("pos", plus(R, ONE), I64)
    inner = For(P, low, high, update)
    arrays = {"pos": ("i64", False), "a": ("f64", False), "y": ("f64", True)}
    return function([For(R, ZERO, N, inner, Parallel())], arrays, ["n"])


def atomics_inside(made: Function) -> list[Node]:
    """Return the atomic updates inside the loop over p."""
    loops = [node for node in walk(made.body) if isinstance(node, For) and node.variable == P]
    return [node for loop in loops for node in walk(loop) if isinstance(node, Store) and node.atomic]


def run(made: Function, width: int = 1, op: str = "+") -> np.ndarray:
    pos, a = np.array([0, 3, 3, 4, 9]), np.arange(1.0, 10.0)
    y = np.arange(4.0 * width)
    expected = y.copy()
    for i, (low, high) in enumerate(pairwise(pos)):
        for k in range(width):
            for p in range(low, high):
                expected[i * width + k] = expected[i * width + k] + a[p] if op == "+" else expected[i * width + k] * a[p]
    run_both(made, [pos, a, y], [4], threads=3)
    np.testing.assert_array_equal(y, expected)
    return y


@pytest.mark.parametrize("op", ["+", "*"])
def test_one_element_is_updated_once(op: str) -> None:
    made = vectorized(segments(Store("y", R, Load("a", P, F64), op, atomic=True)), 32)
    assert not atomics_inside(made)
    run(made, op=op)


def test_a_row_is_updated_once() -> None:
    row = Store("y", plus(plus(R, Const(ROW, I64), "*"), K), Load("a", P, F64), "+", atomic=True)
    made = vectorized(segments(For(K, ZERO, Const(ROW, I64), row)), 32)
    assert not atomics_inside(made)
    run(made, ROW)


@pytest.mark.parametrize(
    "update",
    [
        Store("y", P, Load("a", P, F64), "+", atomic=True),
        Store("y", R, Load("y", P, F64), "+", atomic=True),
        Steps((Store("y", R, Load("a", P, F64), "+", atomic=True), Store("y", P, Load("a", P, F64), "+", atomic=True))),
        Store("y", R, Load("a", P, F64), "min", atomic=True),
        For(K, ZERO, N, Store("y", plus(R, K), Load("a", P, F64), "+", atomic=True)),
        For(K, ZERO, Const(1000, I64), Store("y", plus(R, K), Load("a", P, F64), "+", atomic=True)),
    ],
    ids=["moved", "read", "twice", "no neutral value", "row of unknown length", "long row"],
)
def test_what_has_to_stay_inside(update: Step) -> None:
    assert atomics_inside(vectorized(segments(update), 32))


def test_row_of_position_split_stays_in_registers() -> None:
    text = "collapse(i, j, f); pos(f, p, A); split_up(p, p0, p1, 4); parallelize(p0, cpu_thread, atomics, static)"
    kernel = compile_kernel("Y(i,k) = A(i,j) * X(j,k)", {"A": "csr"}, {"k": 16}, text)
    source = source_of(kernel.default_kernel.spec.function, 64)
    entries = source[source.index("for (int64_t p_A2") :]
    assert "atomic" not in entries[: entries.index("}")]
    assert "f64x8 Y_vals_sums_0" in source


@pytest.mark.parametrize("lengths", [[0, 3, 3, 0, 90, 1, 1], [1] * 40, [0, 0, 64, 0], [200], [0, 0]], ids=str)
@pytest.mark.parametrize("tiles", [1, 2, 7, 64])
def test_segments_inside_a_tile_need_no_lock(lengths: list[int], tiles: int) -> None:
    text = f"collapse(i, j, f); pos(f, p, A); split_up(p, p0, p1, {tiles}); parallelize(p0, cpu_thread, atomics, dynamic, 1)"
    pos = np.cumsum([0, *lengths])
    random = np.random.default_rng(1)
    columns, values = random.integers(0, 9, pos[-1]), random.integers(1, 9, pos[-1]).astype(float)
    matrix = scipy.sparse.csr_array((values, columns, pos), (len(lengths), 9))
    matrix.sum_duplicates()
    for kernel, x in (("y(i) = A(i,j) * x(j)", np.arange(9.0)), ("y(i,k) = A(i,j) * x(j,k)", np.arange(72.0).reshape(9, 8))):
        compiled = compile_kernel(kernel, {"A": "csr"}, {"k": 8} if x.ndim == 2 else {}, text)
        assert "(int64_t)A2_pos[i + 1] <= p_high" in compiled.source
        np.testing.assert_array_equal(compiled(A=matrix, x=x, threads=4), matrix @ x)


def test_tiles_of_other_sizes_than_they_step_overlap() -> None:
    """What begins at p0 * 4 and holds 8 entries meets the next tile: a segment inside one may be inside another too."""
    low, high = Var("low", I64), Var("high", I64)
    begin, end = Load("pos", R, I64), Load("pos", plus(R, ONE), I64)
    for size in (4, 8):
        update = Store("y", R, Load("a", P, F64), "+", atomic=True)
        entries = For(P, plus(begin, low, "max"), plus(end, high, "min"), update)
        tile = [Declare(low, plus(K, Const(4, I64), "*")), Declare(high, plus(plus(low, Const(size, I64)), Load("pos", N, I64), "min"))]
        loop = For(K, ZERO, Const(3, I64), Steps((*tile, For(R, ZERO, N, entries))), Parallel())
        arrays = {"pos": ("i64", False), "a": ("f64", False), "y": ("f64", True)}
        made = vectorized(function([loop], arrays, ["n"]), 32)
        plain = [node for node in walk(made.body) if isinstance(node, Store) and not node.atomic]
        assert len(plain) == (1 if size == 4 else 0)


_TUCKER = "A(i,r,s) = T(i,j,k) * B(j,r) * C(k,s)"
_TILES = "collapse(i, j, f); pos(f, p, T); split_up(p, p0, p1, {}); parallelize(p0, cpu_thread, atomics)"
_TILED = f"precompute(T(i,j,k) * C(k,s), s, s, w); {_TILES}"


@pytest.mark.parametrize(
    ("r", "s", "tiles", "constant"), [(3, 5, 2, True), (1, 7, 40, True), (16, 17, 5, True), (3, 5, 5, False)],
    ids=["gathered", "short tiles", "too long to be gathered", "of unknown length"],
)  # fmt: skip
def test_rows_of_two_modes_need_no_lock_inside_a_tile(r: int, s: int, tiles: int, constant: bool) -> None:
    random = np.random.default_rng(tiles)
    dense = random.integers(1, 9, (12, 7, 6)) * (random.random((12, 7, 6)) < 0.3) * (np.arange(12) % 5 > 0)[:, None, None]
    dense[4] = 2
    b, c = random.integers(0, 9, (7, r)).astype(float), random.integers(0, 9, (6, s)).astype(float)
    formats = {"T": "dense, compressed, compressed"}
    compiled = compile_kernel(_TUCKER, formats, {"r": r, "s": s} if constant else {}, _TILED.format(tiles))
    t = tensor(dense.astype(float), "dense, compressed, compressed")
    np.testing.assert_array_equal(compiled(T=t, B=b, C=c, threads=3), np.einsum("ijk,jr,ks->irs", dense, b, c))


@pytest.mark.parametrize("extent", [16, 17], ids=["gathered", "too long to be gathered"])
def test_only_rows_that_tiles_share_have_locks(extent: int) -> None:
    compiled = compile_kernel(_TUCKER, {"T": "dense, compressed, compressed"}, {"r": 16, "s": extent}, _TILED.format(2))
    first, inside, last = compiled.source.split("// f stored in T(i,j,k)")[1:]
    assert [part.count("st_atomic_add") for part in (first, inside, last)] == [1, 0, 1]


@pytest.mark.parametrize(
    ("expression", "extents"), [("y(j,k) = A(i,j) * x(i,k)", {}), ("y(k) = A(i,j) * x(i,k)", {"k": 3})], ids=["each entry", "gathered"]
)
def test_what_is_no_row_of_its_segment_stays_locked(expression: str, extents: dict[str, int]) -> None:
    text = "collapse(i, j, f); pos(f, p, A); split_up(p, p0, p1, 2); parallelize(p0, cpu_thread, atomics)"
    compiled = compile_kernel(expression, {"A": "csr"}, extents, text)
    rows = compiled.source.split("for (int64_t i = ", 1)[1]
    assert "st_atomic_add" in rows
    assert "==" not in rows
    matrix = scipy.sparse.random_array((30, 20), density=0.2, format="csr", random_state=3)
    x = np.arange(90.0).reshape(30, 3)
    expected = matrix.sum(axis=1) @ x if extents else matrix.T @ x
    np.testing.assert_allclose(compiled(A=matrix, x=x, threads=2), expected)
