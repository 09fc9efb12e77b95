"""Vector loops that read elements wherever stored coordinates say: the same sums, interpreted and compiled."""

from __future__ import annotations

import numpy as np
import pytest
from loop_runs import COMPILERS, function, run_both
from sparsetune.compiler.codegen.c import emit_c
from sparsetune.compiler.loops.memory import InterpreterError
from sparsetune.compiler.loops.nodes import (
    F32,
    F64,
    I32,
    I64,
    Binary,
    Block,
    Cast,
    Const,
    Declare,
    Expr,
    For,
    Function,
    Load,
    SetVar,
    Store,
    Type,
    Var,
    Vector,
)
from sparsetune.compiler.loops.rewrite import walk
from sparsetune.compiler.loops.vectorize import GATHERED_BYTES, vectorize

K, N, J = Var("k", I64), Var("n", I64), Var("j", I64)
ZERO = Const(0, I64)
ENTRIES, ELEMENTS = 40, 30


def summed(coordinates: Type, value: Type = F64, tag: Vector | None = None, factor: int = 1) -> Function:
    """``y[0] = sum over k of x[factor * crd[k]] * a[k]``."""
    total = Var("total", value)
    stored = Cast(Load("crd", K, coordinates), I64)
    place: Expr = J if factor == 1 else Binary("*", J, Const(factor, I64), I64)
    product = Binary("*", Load("x", place, value), Load("a", K, value), value)
    loop = For(K, ZERO, N, Block((Declare(J, stored), SetVar(total, product, "+"))), tag)
    arrays = {"x": (value.name, False), "a": (value.name, False), "crd": (coordinates.name, False), "y": (value.name, True)}
    return function([Declare(total, Const(0.0, value)), loop, Store("y", ZERO, total)], arrays, ["n"])


def gathers(made: Function) -> list[Load]:
    return [node for node in walk(made.body) if isinstance(node, Load) and node.index.type.lanes > 1]


def inputs(coordinates: Type, value: Type) -> list[np.ndarray]:
    random = np.random.default_rng(1)
    x, a = (random.integers(-9, 9, size).astype(f"f{value.bytes}") for size in (3 * ELEMENTS, ENTRIES))
    return [x, a, random.integers(0, ELEMENTS, ENTRIES).astype(f"i{coordinates.bytes}"), np.full(1, np.nan, x.dtype)]


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("vector_bytes", [16, 32, 64])
@pytest.mark.parametrize("value", [F64, F32], ids=str)
@pytest.mark.parametrize("coordinates", [I32, I64], ids=str)
@pytest.mark.parametrize("factor", [1, 3])
def test_sums_of_gathered_elements(compiler: str, vector_bytes: int, value: Type, coordinates: Type, factor: int) -> None:
    made = vectorize(summed(coordinates, value, Vector(), factor), vector_bytes)
    assert [load.type.lanes for load in gathers(made)] == [min(vector_bytes, GATHERED_BYTES) // value.bytes]
    for count in (0, 1, 7, 8, 16, 21, ENTRIES):
        x, a, crd, y = arrays = inputs(coordinates, value)
        run_both(made, arrays, [count], compiler=compiler)
        assert y[0] == (x[factor * crd[:count]] * a[:count]).sum()


def test_loops_gather_only_where_vectors_are_asked_for() -> None:
    assert not gathers(vectorize(summed(I32), 64))


def test_coordinates_stay_as_narrow_as_they_are_stored() -> None:
    assert [load.index.type for load in gathers(vectorize(summed(I32, tag=Vector()), 64))] == [I32.vector(4)]
    assert "{base[at[0]], base[at[1]], base[at[2]], base[at[3]]}" in emit_c(summed(I32, tag=Vector()), 64)


def test_places_are_computed_in_64_bits() -> None:
    assert [load.index.type for load in gathers(vectorize(summed(I32, tag=Vector(), factor=3), 64))] == [I64.vector(4)]


def test_every_lane_is_checked_by_the_interpreter() -> None:
    x, a, crd, y = inputs(I32, F64)
    crd[5] = len(x)
    with pytest.raises(InterpreterError, match="array x has 90 elements, but element 90 is used"):
        run_both(vectorize(summed(I32, tag=Vector()), 64), [x, a, crd, y], [ENTRIES])
