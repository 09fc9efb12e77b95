"""Products of rows begin with those that change least often, so that these are multiplied with one another seldom."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest
from loop_runs import function, run_both
from sparsetune.compiler.ir.nodes import F64, I64, Binary, Const, For, Function, Load, Step, Steps, Store, Value, Var
from sparsetune.compiler.ir.rewrite import nodes_of
from sparsetune.compiler.passes.factors import factors_of
from sparsetune.compiler.passes.manager import Setting, VectorUnit
from sparsetune.compiler.passes.still_first import multiply_still_rows_first
from sparsetune.compiler.pipeline import compile_kernel
from sparsetune.datasets.generate import generate

WIDTH, ROWS = 8, 3
P, Q, R, N = (Var(name, I64) for name in ("p", "q", "r", "n"))
KINDS = {name: ("f64", name == "y") for name in "abcty"}


def row(of: Value) -> Value:
    return Binary("+", Binary("*", of, Const(WIDTH, I64), I64), R, I64)


FACTORS = {"t": Load("t", Q, F64), "a": Load("a", row(N), F64), "b": Load("b", row(P), F64), "c": Load("c", row(Q), F64)}
"""One that no loop over rows moves through, a row that stays the same, one that the outer loop moves, one that the inner one moves."""


def loop(variable: Var, high: int, body: Step) -> For:
    return For(variable, Const(0, I64), Const(high, I64), Steps((body,)))


def kernel(order: str) -> Function:
    value = reduce(lambda one, other: Binary("*", one, other, F64), (FACTORS[name] for name in order))
    return function((loop(P, ROWS, loop(Q, ROWS, loop(R, WIDTH, Store("y", row(Q), value, "+")))),), KINDS, ["n"])


def order_of(changed: Function) -> str:
    (store,) = nodes_of(changed.body, Store)
    return "".join(factor.array for factor in factors_of(store.value) if isinstance(factor, Load))


@pytest.mark.parametrize(
    ("order", "found"),
    [
        ("tabc", "abtc"), ("tbac", "abtc"), ("bact", "abct"), ("abtc", "abtc"), ("tbc", "tbc"), ("tcb", "tcb"), ("tac", "tac"),
        ("bat", "abt"),
    ],
)
def test_rows_come_in_the_order_of_how_often_they_change(order: str, found: str) -> None:
    before = kernel(order)
    changed = multiply_still_rows_first(before, Setting(VectorUnit(32), before))
    assert order_of(changed) == found
    assert order_of(multiply_still_rows_first(before, Setting(VectorUnit(8), before))) == order  # there are no vectors
    rng = np.random.default_rng(1)
    arrays = {name: rng.random(ROWS * WIDTH) for name in KINDS}
    factors = {
        "t": arrays["t"][:ROWS, None], "a": arrays["a"][WIDTH : 2 * WIDTH], "b": arrays["b"].reshape(ROWS, WIDTH).sum(axis=0),
        "c": arrays["c"].reshape(ROWS, WIDTH),
    }  # fmt: skip
    times = 1 if "b" in order else ROWS
    expected = arrays["y"].reshape(ROWS, WIDTH) + times * reduce(np.multiply, (factors[name] for name in order))
    run_both(changed, list(arrays.values()), [1])
    np.testing.assert_allclose(arrays["y"].reshape(ROWS, WIDTH), expected, rtol=1e-13)


@pytest.mark.parametrize("text", ["T(i,j,k,l) * B(j,r) * C(k,r) * D(l,r)", "D(l,r) * C(k,r) * T(i,j,k,l) * B(j,r)"])
def test_an_entry_is_multiplied_twice_whatever_the_order_of_a_tensors_factors(text: str) -> None:
    """Products of rows that outer fibres choose are made there."""
    stored = generate("random:uniform:9x8x7x6:nnz=200", "csf")
    rng = np.random.default_rng(2)
    factors = {name: rng.random((extent, 16)) for name, extent in zip("BCD", (8, 7, 6), strict=True)}
    made = compile_kernel(f"A(i,r) = {text}", {"T": "csf"}, extents={"r": 16})
    sums = [line for line in made.source.splitlines() if "+=" in line and "D_vals" in line]
    assert sums
    assert all(line.count(" * ") - line.count("l * ") == 2 for line in sums)
    expected = np.einsum("ijkl,jr,kr,lr->ir", stored.to_numpy(), factors["B"], factors["C"], factors["D"])
    np.testing.assert_allclose(made(T=stored, **factors), expected, rtol=1e-12)
