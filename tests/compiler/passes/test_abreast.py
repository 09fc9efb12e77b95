"""Rows of sliced levels side by side: a lane each, where that is the same, and right whatever the vectors are."""

from __future__ import annotations

import numpy as np
import pytest
import sparsetune as st
from loop_runs import COMPILERS, function, run_both, vectorized
from numpy.typing import NDArray
from sparsetune.compiler.ir.arithmetic import ZERO, add, compare, integer, multiply, quotient, remainder, subtract
from sparsetune.compiler.ir.nodes import (
    BOOL,
    F32,
    F64,
    I32,
    I64,
    Binary,
    Call,
    Cast,
    Const,
    Declare,
    For,
    Function,
    If,
    Load,
    SetVar,
    Steps,
    Store,
    Type,
    Value,
    Var,
)  # fmt: skip
from sparsetune.compiler.ir.rewrite import nodes_of
from sparsetune.compiler.passes.abreast import rows_abreast
from sparsetune.compiler.passes.manager import Setting, VectorUnit

ROW, S, P, J, N = (Var(name, I64) for name in "ispjn")
COLUMNS = 9


def _at(array: str, index: Value) -> Value:
    return Cast(Load(array, index, I32), I64)


def kernel(kind: Type, rows: int = 4, op: str = "+") -> Function:
    """Return a kernel that sums the rows of slices of so many, as lowering makes it."""
    total, c = Var("t", kind), integer(rows)
    first, past = _at("slices", quotient(ROW, c)), _at("slices", add(quotient(ROW, c), integer(1)))
    element = Binary("*", Load("a", P, kind), Load("x", J, kind), kind)
    ends = Call("harmless", (compare("<", quotient(P, c), _at("ends", ROW)),), BOOL)
    inner = Steps((
        Declare(P, add(Var("begin", I64), multiply(S, c))), Declare(J, _at("crd", P)), If(ends, Steps((SetVar(total, element, op),))),
    ))  # fmt: skip
    body = Steps((
        Declare(total, Const(0.0, kind)), Declare(Var("begin", I64), add(multiply(first, c), remainder(ROW, c))),
        For(S, ZERO, subtract(past, first), inner), Store("y", ROW, total),
    ))  # fmt: skip
    arrays = {"slices": ("i32", False), "ends": ("i32", False), "crd": ("i32", False)}
    arrays |= {"a": (kind.name, False), "x": (kind.name, False), "y": (kind.name, True)}
    return function([For(ROW, ZERO, N, body)], arrays, ["n"])


def operands(lengths: list[int], kind: Type, rows: int = 4) -> list[NDArray[np.generic]]:
    """Return the arrays of rows of some lengths; what stands behind a row would be an infinity if it were added."""
    rng, count = np.random.default_rng(0), -(-len(lengths) // rows)
    whole = np.array(lengths + [0] * (rows * count - len(lengths))).reshape(-1, rows)
    slices = np.concatenate([[0], np.cumsum(whole.max(axis=1, initial=0))]).astype(np.int32)
    ends = (slices[np.arange(len(lengths)) // rows] + np.array(lengths, int)).astype(np.int32)
    size = rows * int(slices[-1])
    crd, values = rng.integers(1, COLUMNS, size).astype(np.int32), rng.integers(-8, 8, size).astype(kind.name.replace("f", "float"))
    columns, lanes = np.arange(size) // rows, np.arange(size) % rows
    parents = rows * (np.searchsorted(slices, columns, side="right") - 1) + lanes
    behind = np.append(ends, np.zeros(rows, np.int32))[np.minimum(parents, len(ends))] <= columns
    crd[behind] = 0
    x = rng.integers(-8, 8, COLUMNS).astype(values.dtype)
    x[0] = np.inf
    return [slices, ends, crd, values, x, np.zeros(len(lengths), values.dtype)]


@pytest.mark.cc
@pytest.mark.parametrize("vector_bytes", [16, 32, 64])
@pytest.mark.parametrize("kind", [F64, F32])
@pytest.mark.parametrize("rows", [4, 8])
def test_rows_of_any_lengths(vector_bytes: int, kind: Type, rows: int) -> None:
    made = vectorized(kernel(kind, rows), vector_bytes, gathers=0)
    assert any(call.function == "keep_lanes" for call in nodes_of(made.body, Call))
    for lengths in ([3, 0, 2, 5, 1, 1, 1, 1, 0, 0, 0, 0, 4, 2], [], [2], [1] * 8 + [0] * 5, [0] * 16):
        given = operands(lengths, kind, rows)
        expected = np.zeros(len(lengths))
        for row, length in enumerate(lengths):
            places = rows * (given[0][row // rows] + np.arange(length)) + row % rows
            expected[row] = (given[3][places] * given[4][given[2][places]]).sum()
        for compiler in COMPILERS:
            arrays = [array.copy() for array in given]
            run_both(made, arrays, [len(lengths)], compiler=compiler)
            np.testing.assert_array_equal(arrays[-1], expected)


def _slices_of(schedule: str, semiring: tuple[str, str] = ("+", "*")) -> bool:
    made = st.compile("y(i) = A(i,j) * x(j)", {"A": "dl"}, schedule=schedule, semiring=semiring)
    return "i_lane" in made.stages["abreast"]


@pytest.mark.parametrize(
    ("schedule", "abreast"),
    [
        ("", True),
        ("parallelize(i, cpu_thread, no_races, static)", True),
        ("parallelize(i, cpu_thread, no_races, dynamic, 8)", True),
        ("parallelize(i, cpu_thread, no_races, dynamic, 6)", False),  # threads would cut slices
        ("reorder(j, i); protocol(A, step, locate)", False),
        ("split(j, j0, j1, 10); reorder(j0, i, j1)", False),
    ],
)
def test_where_rows_go_abreast(schedule: str, abreast: bool) -> None:
    assert _slices_of(schedule) == abreast


def test_least_values_are_looked_for_row_by_row() -> None:
    """What stands behind the end of a row would have to be the identity of another operator than plus."""
    assert not _slices_of("", ("min", "+"))


def test_machines_without_vectors_go_row_by_row() -> None:
    whole = kernel(F64)
    assert rows_abreast(whole, Setting(VectorUnit(0), whole)) is whole
    assert rows_abreast(whole, Setting(VectorUnit(32, gathers=0), whole)) is not whole
