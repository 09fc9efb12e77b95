"""Flags that loops raise: a comparison of bounds before loops that always raise them, as they were elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
from loop_runs import function, run_both
from sparsetune.compiler.ir.nodes import BOOL, F64, I64, Binary, Const, Declare, For, If, Load, SetVar, Step, Steps, Store, Var
from sparsetune.compiler.ir.rewrite import walk
from sparsetune.compiler.passes.flags import raise_flags_before_loops
from sparsetune.compiler.passes.manager import Setting, VectorUnit

K, LOW, HIGH, SEEN, T = Var("k", I64), Var("low", I64), Var("high", I64), Var("seen", BOOL), Var("t", F64)
RAISE = SetVar(SEEN, Const(True, BOOL))
ADD = SetVar(T, Load("a", K, F64), "+")


def kernel(*steps: Step) -> Steps:
    """Return statements that add in a loop and say at the end whether the flag is up."""
    said = If(SEEN, Store("y", Const(0, I64), T), Store("y", Const(0, I64), Const(-1.0, F64)))
    return Steps((Declare(T, Const(0.0, F64)), Declare(SEEN, Const(False, BOOL)), For(K, LOW, HIGH, Steps(steps)), said))


def raised(body: Steps) -> Steps:
    """Return statements after the pass."""
    kernel = function(body.statements, {})
    return raise_flags_before_loops(kernel, Setting(VectorUnit(32), kernel)).body


def raised_inside(body: Steps) -> bool:
    return any(isinstance(node, SetVar) and node.variable == SEEN for loop in walk(body) if isinstance(loop, For) for node in walk(loop))


@pytest.mark.parametrize(("low", "high"), [(0, 5), (2, 3), (3, 3), (4, 1)])
def test_a_flag_says_whether_the_loop_ran(low: int, high: int) -> None:
    body = raised(kernel(ADD, Steps((RAISE,))))
    assert not raised_inside(body)
    made = function(body.statements, {"a": ("f64", False), "y": ("f64", True)}, ["low", "high"])
    a, y = np.arange(1.0, 6.0), np.zeros(1)
    run_both(made, [a, y], [low, high])
    assert y[0] == (a[low:high].sum() if low < high else -1)


@pytest.mark.parametrize(
    "steps",
    [
        (ADD, If(Binary("<", Const(2, I64), K, BOOL), RAISE)),
        (ADD, RAISE, If(SEEN, ADD)),
        (ADD, SetVar(SEEN, Const(False, BOOL))),
        (Declare(SEEN, Const(False, BOOL)), RAISE),
        (For(Var("m", I64), LOW, K, RAISE),),
    ],
    ids=["sometimes", "read", "lowered", "its own", "inner loop"],
)
def test_other_flags_stay_in_the_loop(steps: tuple[Step, ...]) -> None:
    made = raised(kernel(*steps))
    outer = next(node for node in walk(made) if isinstance(node, For) and node.variable == K)
    assert any(isinstance(node, SetVar) and node.variable == SEEN for node in walk(outer))
