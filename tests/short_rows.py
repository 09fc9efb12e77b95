"""Sums of short rows, their batches, and matrices to run them on."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from loop_runs import function, vectorized
from numpy.typing import NDArray
from sparsetune.compiler.ir.limits import BESIDE, ROWS, SHORT
from sparsetune.compiler.ir.nodes import (
    F64,
    I32,
    I64,
    Allocate,
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
    Type,
    Unroll,
    Value,
    Var,
)
from sparsetune.compiler.ir.rewrite import walk
from sparsetune.compiler.passes.batches import AT_ONCE, AVERAGE_BESIDE

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
