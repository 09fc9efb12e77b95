"""What nothing reads is left out, and nothing else."""

from __future__ import annotations

from loop_runs import function
from sparsetune.compiler.ir.nodes import (
    BOOL,
    F64,
    I64,
    Allocate,
    ArrayRef,
    Binary,
    Call,
    Const,
    Declare,
    For,
    Free,
    If,
    Load,
    Run,
    SetVar,
    Step,
    Steps,
    Store,
    Type,
    Var,
)
from sparsetune.compiler.passes.dead import remove_dead

ROW, J, X, N = Var("i", I64), Var("j", I64), Var("x", F64), Var("n", I64)
ZERO, ONE = Const(0, I64), Const(1.0, F64)
U64 = Type("u64")


def left(*statements: Step) -> tuple[Step, ...]:
    return remove_dead(function(statements, {"a": ("f64", True)}, ["n"])).body.statements


def test_chains_of_unread_variables_go() -> None:
    store = Store("a", ROW, ONE)
    loop = For(ROW, ZERO, N, Steps((Declare(J, ROW), Declare(X, Load("a", J, F64)), SetVar(X, ONE, "+"), store)))
    assert left(loop) == (For(ROW, ZERO, N, Steps((store,))),)


def test_a_name_that_is_read_in_another_scope_only_goes() -> None:
    reading = For(ROW, ZERO, N, Steps((Declare(J, ROW), Store("a", J, ONE))))
    store = Store("a", ROW, ONE)
    assert left(For(ROW, ZERO, N, Steps((Declare(J, ROW), store))), reading) == (For(ROW, ZERO, N, Steps((store,))), reading)


def test_what_the_next_iteration_reads_stays() -> None:
    body = Steps((Store("a", J, ONE), SetVar(J, Const(1, I64), "+")))
    assert left(Declare(J, ZERO), For(ROW, ZERO, N, body)) == (Declare(J, ZERO), For(ROW, ZERO, N, body))


def test_what_a_block_inside_declares_is_seen_after_it() -> None:
    inner, store = Steps((Declare(J, N),)), Store("a", J, ONE)
    assert left(inner, store) == (inner, store)


def test_unread_arrays_go_with_all_that_fills_them() -> None:
    assert left(Allocate("w", F64, N), For(ROW, ZERO, N, Steps((Store("w", ROW, ONE), Store("a", ROW, ONE)))), Free("w")) == (
        For(ROW, ZERO, N, Steps((Store("a", ROW, ONE),))),
    )


def test_arrays_that_are_read_stay() -> None:
    kept = (Allocate("w", F64, N), Store("w", ZERO, ONE), Store("a", ZERO, Load("w", ZERO, F64)), Free("w"))
    assert left(*kept) == kept


def test_calls_that_change_something_stay() -> None:
    bits = ArrayRef("bits", U64)
    arguments = (bits, N, ROW)
    new = Declare(Var("new", BOOL), Call("bits_insert", arguments, BOOL))
    count = Declare(J, Call("bits_drain", (ArrayRef("list", I64), bits, N), I64))
    loop = For(ROW, ZERO, N, Steps((new,)))
    around = (Allocate("bits", U64, N, zero=True), Allocate("list", I64, N))
    found = left(*around, loop, count, If(Binary("<", J, N, BOOL), Store("a", ZERO, ONE)))
    assert found[2] == For(ROW, ZERO, N, Steps((Run("bits_insert", arguments),)))
    assert count in found
