"""Sums of which a schedule says nothing: in vectors where elements are consecutive or quickly gathered, else one by one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from loop_runs import COMPILERS, function, run_both, vectorized
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
    Prefetch,
    Select,
    SetVar,
    Step,
    Steps,
    Store,
    Type,
    Unroll,
    Value,
    Var,
    Vector,
    While,
)
from sparsetune.compiler.ir.rewrite import walk
from sparsetune.compiler.passes.manager import Setting, VectorUnit
from sparsetune.compiler.passes.sums import sum_in_vectors

K, N, J = Var("k", I64), Var("n", I64), Var("j", I64)
ZERO = Const(0, I64)


def looped(step: Step, *declared: Step, tag: Unroll | Vector | None = None) -> For:
    return For(K, ZERO, N, Steps((*declared, step)), tag)


def added(value: Value, op: str = "+") -> SetVar:
    return SetVar(Var("total", value.type), value, op)


def summed(loop: For, gathers: int | None) -> For:
    """Return a loop after the pass."""
    kernel = function([loop], {})
    made = sum_in_vectors(kernel, Setting(VectorUnit(32, gathers=gathers), kernel)).body.statements[0]
    assert isinstance(made, For)
    return made


def gathering(coordinates: Type) -> For:
    """Return a loop that adds products of consecutive elements and gathered ones."""
    coordinate = Load("crd", K, coordinates)
    place = coordinate if coordinates == I64 else Cast(coordinate, I64)
    return looped(added(Binary("*", Load("x", J, F64), ELEMENT, F64)), Declare(J, place))


ELEMENT = Load("a", K, F64)
CONSECUTIVE, IN_NO_VECTORS = looped(added(ELEMENT)), looped(added(Select(Binary("<", J, K, BOOL), ELEMENT, ELEMENT, F64)))


@pytest.mark.parametrize(
    ("loop", "gathers", "tag"),
    [(CONSECUTIVE, None, Vector()), (gathering(I32), None, None), (gathering(I32), 0, Vector()), (gathering(I64), 0, Vector()),
     (gathering(I64), 16, Vector(least=16)), (CONSECUTIVE, 16, Vector()), (IN_NO_VECTORS, 0, None)],
)  # fmt: skip
def test_gathering_decides_unless_elements_are_consecutive(loop: For, gathers: int | None, tag: Vector | None) -> None:
    assert summed(loop, gathers).tag == tag


@pytest.mark.parametrize(
    "loop",
    [
        looped(added(ELEMENT), tag=Unroll(1)),
        looped(added(ELEMENT, "*")),
        looped(added(ELEMENT, "")),
        looped(added(Load("a", K, I64))),
        looped(Store("b", K, ELEMENT)),
        looped(If(Binary("<", K, J, BOOL), added(ELEMENT))),
        looped(SetVar(Var("own", F64), ELEMENT, "+"), Declare(Var("own", F64), Const(0.0, F64))),
        looped(looped(added(ELEMENT))),
    ],
    ids=["one by one asked for", "product", "last value", "integers", "stores", "condition", "own scalar", "outer loop"],
)
def test_what_is_no_sum_stays(loop: For) -> None:
    assert summed(loop, 0).tag == loop.tag


def dot(value: Type) -> Function:
    total = Var("total", value)
    product = Binary("*", Load("x", K, value), Load("a", K, value), value)
    arrays = dict.fromkeys("xa", (value.name, False)) | {"y": (value.name, True)}
    return function([Declare(total, Const(0.0, value)), looped(added(product)), Store("y", ZERO, total)], arrays, ["n"])


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("value", [F64, F32], ids=str)
@pytest.mark.parametrize("masks", [False, True], ids=["elements", "masks"])
def test_dot_products_are_made_in_vectors(compiler: str, value: Type, masks: bool) -> None:
    made = vectorized(dot(value), 32, masks)
    assert any(isinstance(node, Load) and node.type.lanes == 32 // value.bytes for node in walk(made.body))
    random = np.random.default_rng(2)
    for count in (0, 1, 3, 8, 31, 70):
        x, a = (random.integers(-9, 9, 70).astype(f"f{value.bytes}") for _ in range(2))
        y = np.full(1, np.nan, x.dtype)
        run_both(made, [x, a, y], [count], compiler=compiler)
        assert y[0] == (x[:count] * a[:count]).sum()


def asked(loop: For) -> list[Prefetch]:
    return [node for node in walk(summed(loop, 0)) if isinstance(node, Prefetch)]


def test_a_gathered_sum_asks_for_what_it_reads_in_order() -> None:
    loop = gathering(I32)
    assert {prefetch.array for prefetch in asked(loop)} == {"a", "crd"}
    own = replace(loop, body=Steps((Prefetch("a", K, 1), loop.body)))
    assert asked(own) == [Prefetch("a", K, 1)]
    assert asked(CONSECUTIVE) == []


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("masks", [False, True], ids=["elements", "masks"])
def test_few_gathered_elements_are_added_one_by_one(compiler: str, masks: bool) -> None:
    total = Var("total", F64)
    loop = gathering(I32)
    arrays = {"x": ("f64", False), "a": ("f64", False), "crd": ("i32", False), "y": ("f64", True)}
    made = vectorized(function([Declare(total, Const(0.0, F64)), loop, Store("y", ZERO, total)], arrays, ["n"]), 32, masks, 16)
    enough = Binary("<=", Const(16, I64), N, BOOL)
    conditions = [node.condition for node in walk(made.body) if isinstance(node, If)]
    assert conditions[0] == Call("seldom", (enough,), BOOL)
    assert len(conditions) == 1
    assert any(isinstance(node, Load) and node.first is not None for node in walk(made.body)) == masks
    asking = [node for node in walk(made.body) if isinstance(node, For | While) and any(isinstance(part, Prefetch) for part in walk(node))]
    assert [type(node) for node in asking] == [While]
    random = np.random.default_rng(5)
    x, a, crd = random.integers(-9, 9, 90).astype(float), random.integers(-9, 9, 90).astype(float), random.permutation(90).astype(np.int32)
    for count in (0, 1, 15, 16, 17, 19, 90):
        y = np.full(1, np.nan)
        run_both(made, [x, a, crd, y], [count], compiler=compiler)
        assert y[0] == (x[crd[:count]] * a[:count]).sum()
