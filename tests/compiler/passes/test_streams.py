"""Which stores may go past the caches: whole vectors, at places that are multiples of their size for certain."""

from __future__ import annotations

from dataclasses import replace

import pytest
from loop_runs import function
from short_nodes import plus
from sparsetune.compiler.ir.nodes import (
    F64,
    I64,
    PAST_CACHES,
    Binary,
    Cast,
    Const,
    Declare,
    For,
    Load,
    SetVar,
    SizeParameter,
    Step,
    Steps,
    Store,
    Value,
    Var,
)
from sparsetune.compiler.ir.rewrite import walk
from sparsetune.compiler.passes.manager import Setting, VectorUnit
from sparsetune.compiler.passes.streams import pass_caches

P, N, AT = Var("p", I64), Var("n", I64), Var("at", I64)
ZERO = Cast(Const(0.0, F64), F64.vector(8))


def number(value: int) -> Const:
    return Const(value, I64)


def times(left: Value, right: Value) -> Value:
    return Binary("*", left, right, I64)


def streams(*steps: Step, step: int = 1) -> bool:
    made = function([For(P, number(0), N, Steps(steps), step=step)], {"x": ("f64", False), "y": ("f64", True)}, ["n"])
    made = replace(made, sizes=(*made.sizes, SizeParameter("large", ("y", PAST_CACHES, 0))))
    return any(isinstance(node, Store) and node.streams for node in walk(pass_caches(made, Setting(VectorUnit(64), made)).body))


@pytest.mark.parametrize(
    ("index", "certain"),
    [
        (times(P, number(16)), True),
        (plus(times(P, number(32)), number(24)), True),
        (times(P, number(12)), False),
        (plus(times(P, number(16)), number(4)), False),
        (times(P, N), False),
        (P, False),
    ],
)
def test_places_must_be_multiples(index: Value, certain: bool) -> None:
    assert streams(Store("y", index, ZERO)) == certain


def test_variables_are_what_they_are_given() -> None:
    def given(low: int, more: int) -> bool:
        return streams(Declare(AT, times(P, number(low))), Store("y", AT, ZERO), SetVar(AT, number(more), "+"))

    assert [given(8, 16), given(12, 16), given(8, 4)] == [True, False, False]
    assert [streams(Store("y", P, ZERO), step=step) for step in (8, 4)] == [True, False]


VALUE = Load("x", P, F64)


@pytest.mark.parametrize(
    ("store", "may"),
    [
        (Store("y", P, VALUE), False),
        (Store("y", P, Const(1.0, F64)), False),
        (Store("y", P, Const(0.0, F64)), True),
        (Store("y", P, VALUE, "+"), True),
        (Store("y", P, VALUE, "+", atomic=True), True),
    ],
    ids=["a part of a row", "a constant", "zeros", "added", "added by threads"],
)
def test_a_row_that_may_not_keeps_all(store: Store, may: bool) -> None:
    whole = Store("y", times(P, number(16)), Cast(VALUE, F64.vector(8)))
    assert streams(whole, store) == may
