"""Factors that stand still in a sum that is made in vectors: multiplied once, behind it."""

from __future__ import annotations

import numpy as np
import pytest
from loop_runs import COMPILERS, function, run_both, vectorized
from sparsetune.compiler.ir.nodes import F64, I64, Binary, Const, Declare, For, Function, Load, SetVar, Step, Store, Value, Var, Vector
from sparsetune.compiler.ir.rewrite import block, nodes_of
from sparsetune.compiler.passes.factors import take_out_factors
from sparsetune.compiler.passes.manager import Setting, VectorUnit

K, TOTAL, OTHER = Var("k", I64), Var("total", F64), Var("other", F64)
STILL, MOVING, MOVING_TOO = Load("s", Const(1, I64), F64), Load("u", K, F64), Load("v", K, F64)


def times(*factors: Value) -> Value:
    product, *others = factors
    for factor in others:
        product = Binary("*", product, factor, F64)
    return product


def summed(value: Value, *others: Step, extent: Value | None = None, op: str = "+") -> Function:
    """Return a kernel that sums a value over ``k``, and stores the sum."""
    loop = For(K, Const(0, I64), extent or Const(11, I64), block([SetVar(TOTAL, value, op), *others]), Vector())
    begun = [Declare(variable, Const(2.0, F64)) for variable in (TOTAL, OTHER)]
    arrays = dict.fromkeys("suv", ("f64", False)) | {"y": ("f64", True)}
    return function([*begun, loop, Store("y", Const(0, I64), TOTAL)], arrays, ["n"])


def multiplications(kernel: Function) -> int:
    """Return how many multiplications stand inside the loop after the pass."""
    changed = take_out_factors(kernel, Setting(VectorUnit(32), kernel))
    (loop,) = nodes_of(changed.body, For)
    return sum(node.op == "*" for node in nodes_of(loop, Binary))


@pytest.mark.parametrize("factors", [(STILL, MOVING, MOVING_TOO), (MOVING, STILL, MOVING_TOO), (MOVING, MOVING_TOO, STILL, STILL)])
def test_what_stands_still_is_multiplied_behind_the_loop(factors: tuple[Value, ...]) -> None:
    assert multiplications(summed(times(*factors))) == 1


@pytest.mark.parametrize(
    ("kernel", "left"),
    [
        (summed(times(STILL, MOVING)), 1),
        (summed(times(MOVING, MOVING_TOO)), 1),
        (summed(times(STILL, MOVING, MOVING_TOO), extent=Var("n", I64)), 2),
        (summed(times(STILL, MOVING, MOVING_TOO), extent=Const(0, I64)), 2),
        (summed(times(STILL, MOVING, MOVING_TOO), SetVar(OTHER, TOTAL, "+")), 2),
        (summed(Binary("+", times(STILL, MOVING, MOVING_TOO), MOVING, F64)), 2),
    ],
    ids=["one moves", "all move", "perhaps empty", "empty", "read meanwhile", "no product"],
)
def test_nothing_is_taken_out_where_it_gains_nothing_or_would_be_wrong(kernel: Function, left: int) -> None:
    assert multiplications(kernel) == left


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("op", ["+", "-"])
def test_the_sum_is_the_same(compiler: str, op: str) -> None:
    made = vectorized(summed(times(MOVING, STILL, MOVING_TOO), op=op), 32)
    assert len(nodes_of(made.body, For)) < 2  # in vectors
    s, u, v = (np.random.default_rng(1).integers(-9, 9, 11).astype(float) for _ in range(3))
    y = np.full(1, np.nan)
    run_both(made, [s, u, v, y], [0], compiler=compiler)
    assert y[0] == 2 + (u * v).sum() * s[1] * (1 if op == "+" else -1)
