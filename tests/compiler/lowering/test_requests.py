"""Requests among steps, and what says that a statement is a sum: both are parts of what lowering is given or returns."""

from __future__ import annotations

from sparsetune.compiler.concrete.annihilation import EVERYWHERE, NOWHERE, Patterns
from sparsetune.compiler.concrete.nodes import Assign, Where, Workspace
from sparsetune.compiler.ir.arithmetic import ONE, TRUE, ZERO
from sparsetune.compiler.ir.nodes import F64, I64, Const, Declare, For, If, Step, Steps, Store, Var
from sparsetune.compiler.lowering.requests import Holds, NeedsZeros, allocated_once, at_end, at_start, needs_zeros, taken
from sparsetune.compiler.notation.nodes import Access, Add

STORE = Store("y", ZERO, Const(1.0, F64))
FIRST, SECOND = (allocated_once(name, F64, ONE, zero=False) for name in ("first", "second"))
HELD = Holds("first", "w")


def test_requests_are_taken_out_of_loops_and_branches_in_order() -> None:
    loop = For(Var("i", I64), ZERO, ONE, Steps((FIRST, If(TRUE, Steps((SECOND, HELD, STORE))))))
    asked, steps = taken([Declare(Var("n", I64), ONE), loop], type(FIRST))
    assert asked == [FIRST, SECOND]
    assert steps == [Declare(Var("n", I64), ONE), For(Var("i", I64), ZERO, ONE, Steps((If(TRUE, Steps((HELD, STORE))),)))]
    assert [step.array for step in (*at_start(asked), *at_end(asked))] == ["first", "second"] * 2  # type: ignore[attr-defined]
    assert taken(steps, Holds)[0] == [HELD]


def test_steps_without_requests_stay_the_same_objects() -> None:
    steps: list[Step] = [Steps((STORE,))]
    assert taken(steps, Holds) == ([], steps)
    assert taken(steps, Holds)[1] is steps


def test_a_sum_stays_one_where_operands_are_left_out() -> None:
    kept, absent, total, target = (Access(name, ()) for name in ("a", "b", "ty", "y"))
    statement = Where(Assign(target, "=", total), Assign(total, "+=", Add((kept, absent))), Workspace("ty", (), "scalar"))
    left = Patterns(lambda access: NOWHERE if access == absent else EVERYWHERE).remaining(statement).statement
    assert left == Where(Assign(target, "=", total), Assign(total, "+=", kept), statement.local)


def test_zeros_are_needed_where_a_statement_adds_or_a_step_asks() -> None:
    y, other, value = Access("y", ()), Access("z", ()), Access("b", ())
    assert needs_zeros(Assign(y, "+=", value), [], "y")
    assert not needs_zeros(Assign(y, "=", value), [NeedsZeros("z"), HELD], "y")
    assert needs_zeros(Assign(y, "=", value), [HELD, NeedsZeros("y")], "y")
    assert not needs_zeros(Assign(other, "+=", value), [], "y")
