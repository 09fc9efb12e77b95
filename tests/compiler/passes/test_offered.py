"""Loops without a vector form: which are offered to the C compiler, and that printing adds nothing to what is said of them."""

from __future__ import annotations

import numpy as np
import pytest
import sparsetune as st
from loop_runs import function
from sparsetune.compiler.codegen.c import print_c
from sparsetune.compiler.ir.nodes import F64, I64, Allocate, Const, Declare, For, Function, Load, SetVar, Simd, Step, Store, Var, Vector
from sparsetune.compiler.ir.rewrite import walk
from sparsetune.compiler.passes.manager import Setting, VectorUnit
from sparsetune.compiler.passes.offered import offer_vectors, undecided

K, N = Var("k", I64), Var("n", I64)
TOTAL, PRODUCT = Var("total", F64), Var("product", F64)
X = Load("x", K, F64)


def looped(*body: Step) -> Function:
    first = [Declare(TOTAL, Const(0.0, F64)), Declare(PRODUCT, Const(1.0, F64))]
    last = [Store("x", Const(0, I64), TOTAL), Store("x", Const(1, I64), PRODUCT)]
    loops = [For(K, Const(0, I64), N, step, Vector()) for step in body]
    return function([*first, *loops, *last], {"x": ("f64", True)}, ["n"])


def tags(kernel: Function) -> list[object]:
    return [node.tag for node in walk(kernel.body) if isinstance(node, For)]


@pytest.mark.parametrize(
    ("step", "tag"),
    [
        (Store("x", K, X, "+"), Simd()),
        (SetVar(TOTAL, X, "+"), Simd((("+", ("total",)),))),
        (SetVar(TOTAL, X, "-"), Simd((("+", ("total",)),))),
        (SetVar(PRODUCT, X, "*"), Simd((("*", ("product",)),))),
        (SetVar(TOTAL, X, "max"), None),
        (For(Var("j", I64), Const(0, I64), N, Allocate("room", F64, N)), None),
    ],
    ids=["stores", "sum", "difference", "product", "maximum", "memory"],
)
def test_loops_that_the_compiler_takes_are_offered(step: Step, tag: Simd | None) -> None:
    kernel = looped(step)
    made = offer_vectors(kernel, Setting(VectorUnit(64), kernel))
    assert tags(made)[0] == tag
    assert undecided(made) is None


def test_what_is_not_decided_is_named() -> None:
    assert undecided(looped(SetVar(TOTAL, X, "+"))) == "the loop over k is tagged"


def test_printing_decides_nothing() -> None:
    kernel = looped(SetVar(TOTAL, X, "+"))
    assert "#pragma" not in print_c(kernel)
    assert "#pragma omp simd reduction(+:total)\n" in print_c(offer_vectors(kernel, Setting(VectorUnit(64), kernel)))


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("W(i,j) = A(i,j) * exp(u(i) + v(j))", 1),
        ("n(i) = A(i,j) * exp(u(i) + v(j))", 1),
        ("n(i) = A(i,j) * tanh(A(i,j))", 1),
        ("W(i,j) = exp(A(i,j))", 0),  # which it finds by itself
        ("W(i,j) = A(i,j) * (u(i) + v(j))", 0),  # gathering alone gains nothing
        ("Y(i,k) = A(i,j) * exp(u(i) + v(j)) * H(j,k)", 0),
    ],
)
def test_untagged_loops_that_compute_functions_are_offered_where_they_are_long(expression: str, told: int) -> None:
    formats = {"A": "csr", "W": "csr"}
    source = st.compile(expression, {name: form for name, form in formats.items() if f"{name}(" in expression}, dtype="float64").source
    forms = 2 if "i with elements" in source else 1  # one for rows nearly all of which are empty
    assert source.count("#pragma omp simd") == told * forms
    assert source.count("} else {") == told * forms + forms - 1
    single = st.compile(expression, {name: form for name, form in formats.items() if f"{name}(" in expression}, schedule="unroll(j, 1)")
    assert "#pragma omp simd" not in single.source


@pytest.mark.cc
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_long_and_short_rows_are_computed_alike(dtype: str) -> None:
    rng = np.random.default_rng(0)
    stored = (np.arange(60)[:, None] > np.arange(70)).astype(dtype) * rng.random((60, 70)).astype(dtype)
    u, v = rng.random(60).astype(dtype), rng.random(70).astype(dtype)
    given, wanted = {"A": st.tensor(stored, "csr"), "u": u, "v": v}, np.where(stored, stored * np.exp(u[:, None] + v), 0)
    close = {"rtol": 1e-12 if dtype == "float64" else 1e-5}
    found = st.evaluate("W(i,j) = A(i,j) * exp(u(i) + v(j))", given, "csr", schedule="default")
    assert np.allclose(found.to_numpy(), wanted, **close)
    assert np.allclose(st.evaluate("n(i) = A(i,j) * exp(u(i) + v(j))", given, schedule="default"), wanted.sum(1), **close)
