"""Vector loops that read elements wherever stored coordinates say: the same sums, interpreted and compiled."""

from __future__ import annotations

import numpy as np
import pytest
from loop_runs import COMPILERS, function, run_both, source_of, vectorized
from sparsetune.compiler.ir.memory import InterpreterError
from sparsetune.compiler.ir.nodes import (
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
    Load,
    SetVar,
    Steps,
    Store,
    Type,
    Value,
    Var,
    Vector,
)
from sparsetune.compiler.ir.rewrite import walk

K, N, J = Var("k", I64), Var("n", I64), Var("j", I64)
ZERO = Const(0, I64)
ENTRIES, ELEMENTS = 40, 30


def summed(coordinates: Type, value: Type = F64, tag: Vector | None = None, factor: int = 1, op: str = "*", into: str = "+") -> Function:
    """``y[0] = sum over k of x[factor * crd[k]] * a[k]``, or another reduction (``into``) of another operation."""
    total = Var("total", value)
    stored = Cast(Load("crd", K, coordinates), I64)
    place: Value = J if factor == 1 else Binary("*", J, Const(factor, I64), I64)
    product = Binary(op, Load("x", place, value), Load("a", K, value), value)
    loop = For(K, ZERO, N, Steps((Declare(J, stored), SetVar(total, product, into))), tag)
    arrays = {"x": (value.name, False), "a": (value.name, False), "crd": (coordinates.name, False), "y": (value.name, True)}
    return function([Declare(total, Const(1.0 if into == "*" else 0.0, value)), loop, Store("y", ZERO, total)], arrays, ["n"])


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
@pytest.mark.parametrize("masks", [False, True], ids=["elements", "masks"])
def test_sums_of_gathered_elements(compiler: str, vector_bytes: int, value: Type, coordinates: Type, factor: int, masks: bool) -> None:
    made = vectorized(summed(coordinates, value, Vector(), factor), vector_bytes, masks)
    widest = max(value.bytes, 8 if factor == 3 else coordinates.bytes)
    assert [load.type.lanes for load in gathers(made)] == [vector_bytes // widest] * (2 if masks else 1)
    for count in (0, 1, 7, 8, 16, 21, ENTRIES):
        x, a, crd, y = arrays = inputs(coordinates, value)
        run_both(made, arrays, [count], compiler=compiler)
        assert y[0] == (x[factor * crd[:count]] * a[:count]).sum()


@pytest.mark.parametrize("value", [F64, F32], ids=str)
def test_vectors_that_gather_may_be_narrower_than_others(value: Type) -> None:
    """Two of them a step then, with a sum each: elements are loaded one by one, so that nothing else is waited for."""
    made = vectorized(summed(I32, value, Vector()), 64, masks=True, gather_bytes=32)
    assert [load.type.lanes for load in gathers(made)] == [32 // value.bytes] * 4
    for count in (0, 1, 8, 15, ENTRIES):
        x, a, crd, y = arrays = inputs(I32, value)
        run_both(made, arrays, [count])
        assert y[0] == (x[crd[:count]] * a[:count]).sum()


def test_loops_gather_only_where_vectors_are_asked_for() -> None:
    assert not gathers(vectorized(summed(I32), 64))


def test_coordinates_stay_as_narrow_as_they_are_stored() -> None:
    assert [load.index.type for load in gathers(vectorized(summed(I32, tag=Vector()), 64))] == [I32.vector(8)]
    assert "(f64x4){base[at[0]], base[at[1]], base[at[2]], base[at[3]]}" in source_of(summed(I32, tag=Vector()), 32)


def test_places_are_computed_in_64_bits() -> None:
    assert [load.index.type for load in gathers(vectorized(summed(I32, tag=Vector(), factor=3), 64))] == [I64.vector(8)]


@pytest.mark.parametrize("compiler", COMPILERS)
def test_lanes_that_are_left_out_add_nothing(compiler: str) -> None:
    """A quotient of zeros would be NaN in them, and so would a sum over infinity times zero."""
    for op, numbers in (("/", np.divide), ("+", np.add)):
        made = vectorized(summed(I32, tag=Vector(), op=op), 64, masks=True)
        assert any(isinstance(node, Call) and node.function == "keep_lanes" for node in walk(made.body))
        for count in (1, 5, 9, 15):
            x, a, crd, y = arrays = inputs(I32, F64)
            x, a = (np.where(array == 0, np.inf, array) for array in (x, a))
            arrays[:2] = [x, a]
            with np.errstate(invalid="ignore"):
                expected = numbers(x[crd[:count]], a[:count]).sum()
            run_both(made, arrays, [count], compiler=compiler)
            np.testing.assert_allclose(y[0], expected, rtol=1e-12)


def test_what_is_left_of_a_product_is_read_element_by_element() -> None:
    made = vectorized(summed(I32, tag=Vector(), into="*"), 64, masks=True)
    assert len(gathers(made)) == 1
    x, a, crd, y = arrays = inputs(I32, F64)
    run_both(made, arrays, [13])
    assert y[0] == np.prod(x[crd[:13]] * a[:13])


@pytest.mark.parametrize("vectors", [2, 3, 8])
def test_a_step_takes_as_many_vectors_as_it_is_told(vectors: int) -> None:
    made = vectorized(summed(I32, tag=Vector(vectors)), 32, masks=True)
    assert (
        sum(isinstance(node, Declare) and node.variable.type.lanes == 4 and node.variable.type.is_float for node in walk(made.body))
        == vectors
    )
    for count in (0, 3, 8 * vectors - 1, ENTRIES):
        x, a, crd, y = arrays = inputs(I32, F64)
        run_both(made, arrays, [min(count, ENTRIES)])
        assert y[0] == (x[crd[: min(count, ENTRIES)]] * a[: min(count, ENTRIES)]).sum()


def test_every_lane_is_checked_by_the_interpreter() -> None:
    x, a, crd, y = inputs(I32, F64)
    crd[5] = len(x)
    with pytest.raises(InterpreterError, match="array x has 90 elements, but element 90 is used"):
        run_both(vectorized(summed(I32, tag=Vector()), 64), [x, a, crd, y], [ENTRIES])
