"""Rows that loops only read and do not move are read once, before the loop, and only where it runs."""

from __future__ import annotations

import numpy as np
import pytest
from loop_runs import function, run_both
from sparsetune.compiler.ir.nodes import BOOL, F64, I64, Allocate, Binary, Const, For, If, Load, Step, Steps, Store, Value, Var
from sparsetune.compiler.ir.rewrite import nodes_of
from sparsetune.compiler.passes.held import hold_rows
from sparsetune.compiler.passes.manager import Setting, VectorUnit
from sparsetune.compiler.pipeline import compile_kernel
from sparsetune.compiler.storage.construct import tensor

WIDTH = 8
P, R, Q, LOW, HIGH = (Var(name, I64) for name in ("p", "r", "q", "low", "high"))
KINDS = {"a": ("f64", False), "y": ("f64", True)}


def at(row: Value) -> Value:
    return Binary("+", Binary("*", row, Const(WIDTH, I64), I64), R, I64)


def added(place: Value, target: Value, width: int = WIDTH) -> Step:
    return For(R, Const(0, I64), Const(width, I64), Steps((Store("y", target, Load("a", place, F64), "+"),)))


def held(*steps: Step, vectors: int = 32) -> Steps:
    """Return a loop over p after the pass."""
    kernel = function((For(P, LOW, HIGH, Steps(steps)),), KINDS, ["low", "high", "q"])
    return hold_rows(kernel, Setting(VectorUnit(vectors), kernel)).body


def rows_in(body: Steps) -> list[str]:
    return [node.array for node in nodes_of(body, Allocate)]


@pytest.mark.parametrize(("low", "high", "row"), [(0, 3, 1), (2, 3, 0), (3, 3, 10**6)])
def test_a_row_is_read_before_a_loop_that_runs(low: int, high: int, row: int) -> None:
    body = held(added(at(Q), at(P)))
    assert rows_in(body) == ["a_held"]
    assert not [node for loop in nodes_of(body, For) if loop.variable == P for node in nodes_of(loop, Load) if node.array == "a"]
    a, y = np.arange(2.0 * WIDTH), np.ones(3 * WIDTH)
    run_both(function(body.statements, KINDS, ["low", "high", "q"]), [a, y], [low, high, row])
    expected = np.ones((3, WIDTH))
    if low < high:
        expected[low:high] += a.reshape(2, WIDTH)[row]
    np.testing.assert_array_equal(y, expected.ravel())


@pytest.mark.parametrize(
    "steps",
    [
        (added(at(P), at(Q)),),
        (If(Binary("<", Q, P, BOOL), added(at(Q), at(P))),),
        (added(Binary("*", R, Q, I64), at(P)),),
        (added(at(Q), at(P)), Store("a", P, Const(0.0, F64))),
    ],
    ids=["moved by the loop", "read under a condition", "a column", "written by the loop"],
)
def test_other_rows_are_not(steps: tuple[Step, ...]) -> None:
    assert rows_in(held(*steps)) == []


@pytest.mark.parametrize(("width", "rows"), [(3, []), (4, ["a_held"]), (7, ["a_held"])])
def test_rows_shorter_than_a_vector(width: int, rows: list[str]) -> None:
    assert rows_in(held(added(at(Q), at(P), width), vectors=64)) == rows


def test_rows_take_no_more_than_the_registers() -> None:
    loops = [added(at(Binary("+", Q, Const(number, I64), I64)), at(P)) for number in range(9)]
    assert len(rows_in(held(*loops))) == 4


def test_factors_of_a_tensor_with_empty_fibres() -> None:
    """The rows that outer indices give are read once for all loops below, in the order of their products."""
    rng = np.random.default_rng(4)
    dense = rng.random((6, 5, 7)) * (rng.random((6, 5, 7)) < 0.15)
    dense[2] = dense[:, 3] = 0
    b, c = rng.random((6, 16)), rng.random((5, 16))
    text, operands = "A(k,r) = T(i,j,k) * B(i,r) * C(j,r)", {"T": tensor(dense, "dense, dense, compressed"), "B": b, "C": c}
    kernel = compile_kernel(text, {"T": "dense, dense, compressed"}, extents={"r": 16})
    assert "B_vals_held" in kernel.source
    assert "C_vals_held" in kernel.source
    np.testing.assert_allclose(kernel(**operands), np.einsum("ijk,ir,jr->kr", dense, b, c))


@pytest.mark.parametrize("text", ["S(i,j,k) = T(i,j,k) * B(i,r) * C(j,r) * D(k,r)", "S(i,j,k) = T(i,j,k) * C(j,r) * B(i,r) * D(k,r)"])
def test_rows_that_are_multiplied_with_held_rows_are_held_as_products(text: str) -> None:
    """The innermost loop multiplies by one held row alone, whatever the order of the factors."""
    rng = np.random.default_rng(5)
    dense = rng.random((6, 5, 7)) * (rng.random((6, 5, 7)) < 0.3)
    stored, factors = tensor(dense, "csf"), [rng.standard_normal((extent, 16)) for extent in dense.shape]
    kernel = compile_kernel(text, {"T": "csf", "S": "csf"}, extents={"r": 16})
    innermost = kernel.source[kernel.source.index("D_vals[") :]
    assert "_held" in kernel.source
    assert "B_vals_held" not in innermost or "C_vals_held" not in innermost
    found = kernel(T=stored, **dict(zip("BCD", factors, strict=True)))
    np.testing.assert_allclose(found.to_numpy(), dense * np.einsum("ir,jr,kr->ijk", *factors))


def test_rows_of_stored_coordinates_are_read_without_a_question() -> None:
    """A tensor has entries below every coordinate that it stores, but not in every row of a dense mode."""
    questions = {}
    for form in ("csf", "dense, compressed, compressed", "dense, dense, compressed"):
        kernel = compile_kernel("A(k,r) = T(i,j,k) * B(i,r) * C(j,r)", {"T": form}, extents={"r": 16})
        assert "B_vals_held" in kernel.source
        assert "C_vals_held" in kernel.source
        questions[form] = kernel.source.count("if (")
    assert questions == {"csf": 0, "dense, compressed, compressed": 1, "dense, dense, compressed": 2}, questions
