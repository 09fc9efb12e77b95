"""The interpreter sees what a compiled kernel would get away with, and counts what a kernel does."""

from __future__ import annotations

import loop_kernels
import numpy as np
import pytest
import scipy.sparse as sp
from loop_runs import function
from short_nodes import whole
from sparsetune.compiler.ir.interpret import interpret
from sparsetune.compiler.ir.memory import InterpreterError
from sparsetune.compiler.ir.nodes import (
    BOOL,
    F32,
    F64,
    I32,
    I64,
    Allocate,
    ArrayRef,
    Binary,
    Call,
    Const,
    Declare,
    Fill,
    For,
    Free,
    Grow,
    If,
    Load,
    Parallel,
    Prefetch,
    Publish,
    Run,
    SetVar,
    Step,
    Steps,
    Store,
    Type,
    Value,
    Var,
)
from sparsetune.compiler.ir.printer import show_statement

ARRAYS = {"a": ("f64", True), "crd": ("i32", False)}
X, CAPACITY = Var("x", I64), Var("capacity", I64)
ONE = Const(1.0, F64)


def run(*statements: Step) -> np.ndarray:
    array = np.arange(4.0)
    interpret(function(statements, ARRAYS), [array, np.array([0, 2, 5], np.int32)], ())
    return array


def element(array: str, index: Value) -> Load:
    return Load(array, index, F64)


WRONG: list[tuple[str, list[Step]]] = [
    ("a has 4 elements, but element 4", [Store("a", whole(4), ONE)]),
    ("element -1 is used", [Store("a", whole(0), element("a", whole(-1)))]),
    ("a has 4 elements", [Store("a", whole(9), ONE, "+")]),
    ("w is read before it was written", [Allocate("w", F64, whole(3)), Store("a", whole(0), element("w", whole(1))), Free("w")]),
    ("w is used after it was freed", [Allocate("w", F64, whole(3)), Free("w"), Store("w", whole(1), ONE)]),
    ("w is neither freed", [Allocate("w", F64, whole(3))]),
    ("w is freed, but it is not held", [Allocate("w", F64, whole(3)), Free("w"), Free("w")]),
    ("w is allocated while it is held", [Allocate("w", F64, whole(3)), Allocate("w", F64, whole(3)), Free("w")]),
    ("w is allocated with -3", [Allocate("w", F64, whole(-3)), Free("w")]),
    ("capacity is said to be 7", [Allocate("w", F64, whole(3)), Declare(CAPACITY, whole(7)), Grow("w", F64, CAPACITY, whole(9))]),
    ("w is read before", [Allocate("w", F64, whole(3)), Fill("w", whole(0), whole(2), ONE), Publish("out", "w", whole(3))]),
    ("divided by zero", [Declare(X, Binary("/", whole(3), whole(0), I64))]),
    ("overflows i64", [Declare(X, Binary("*", whole(2**40), whole(2**40), I64))]),
    ("x is used where it is not declared", [Store("a", X, ONE)]),
    ("x is assigned where it is not declared", [SetVar(X, whole(1))]),
    ("range 1 .. 9", [Declare(X, Call("lower_bound", (ArrayRef("crd", I32), whole(1), whole(9), whole(2)), I64))]),
    ("sort on a", [Run("sort", (ArrayRef("a", F64), whole(5)))]),
    ("crd has 3 elements", [Prefetch("a", Load("crd", whole(3), I32))]),
]


@pytest.mark.parametrize(("says", "statements"), WRONG, ids=[says for says, _ in WRONG])
def test_what_must_never_happen(says: str, statements: list[Step]) -> None:
    with pytest.raises(InterpreterError, match=says):
        run(*statements)


def test_prefetch_may_point_anywhere() -> None:
    assert run(Prefetch("a", whole(10**12), 64)).tolist() == [0, 1, 2, 3]


def test_scopes() -> None:
    inner = Steps((Declare(X, whole(2)), Store("a", X, Const(20.0, F64))))
    hidden = run(Declare(X, whole(1)), inner, Store("a", X, Const(10.0, F64)))
    assert hidden.tolist() == [0, 10, 20, 3]
    shared = run(Steps((Declare(X, whole(2)),)), Store("a", X, Const(10.0, F64)))
    assert shared.tolist() == [0, 1, 10, 3]


def test_locals_of_a_branch_do_not_leave_it() -> None:
    with pytest.raises(InterpreterError, match="not declared"):
        run(If(Const(True, Type("bool")), Steps((Declare(X, whole(2)),))), Store("a", X, ONE))


def test_single_precision_rounds_at_every_step() -> None:
    y, out = Var("y", F32), np.zeros(1, np.float32)
    body = [Declare(y, Const(1.0, F32)), For(X, whole(0), whole(20), SetVar(y, Const(1e-8, F32), "+")), Store("o", whole(0), y)]
    interpret(function(body, {"o": ("f32", True)}), [out], ())
    assert out[0] == 1


def test_counts_of_spmv() -> None:
    random = np.random.default_rng(0)
    matrix = sp.csr_array(random.random((6, 8)) * (random.random((6, 8)) < 0.5))
    arrays = [np.zeros(6), matrix.indptr, matrix.indices, matrix.data, np.ones(8)]
    counts = interpret(loop_kernels.spmv(), arrays, [6], fresh=["y_vals"]).counts
    assert counts.flops == 2 * matrix.nnz
    assert counts.iterations == 6 + matrix.nnz
    assert counts.loads == 2 * 6 + 3 * matrix.nnz
    assert counts.stores == 6
    assert counts.as_dict()["comparisons"] == 0


def test_fresh_results_must_not_be_read() -> None:
    add = function([Store("a", whole(0), ONE, "+")], {"a": ("f64", True)})
    with pytest.raises(InterpreterError, match="before it was written"):
        interpret(add, [np.zeros(1)], (), fresh=["a"])


def test_printed() -> None:
    body = For(X, whole(0), whole(3), If(Binary("<", X, whole(2), Type("bool")), Store("a", X, element("a", X), "min"), Free("w")))
    assert show_statement(body) == "for x: i64 in 0 .. 3:\n  if x < 2:\n    a[x] min= a[x]\n  else:\n    free w"


N = Var("n", I64)
HELD = {"private": (Allocate("w", F64, whole(1)),), "finish": (Free("w"),)}
LOW = Binary("<", N, whole(2), BOOL)


def dealt_out(*body: Step, private: tuple[Step, ...] = (), finish: tuple[Step, ...] = ()) -> For:
    return For(N, whole(0), whole(4), Steps(body), Parallel(), private=private, finish=finish)


MEETING: list[tuple[str, list[Step]]] = [
    ("element of array a", [dealt_out(Store("a", whole(1), ONE, "+"))]),
    ("element of array a", [dealt_out(Store("a", whole(1), ONE))]),
    ("element of array a", [dealt_out(Store("a", N, element("a", Binary("/", N, whole(2), I64))))]),
    ("element of array a", [dealt_out(If(LOW, Store("a", whole(0), ONE, "+", True), Store("a", whole(0), ONE, "+")))]),
    ("variable x is assigned in a parallel loop", [Declare(X, whole(0)), dealt_out(SetVar(X, N))]),
]  # fmt: skip


@pytest.mark.parametrize(("message", "statements"), MEETING)
def test_iterations_of_a_parallel_loop_that_meet(message: str, statements: list[Step]) -> None:
    with pytest.raises(InterpreterError, match=message):
        run(*statements)
    array = np.arange(4.0)
    interpret(function(statements, ARRAYS), [array, np.array([0, 2, 5], np.int32)], (), races=True)


APART: list[list[Step]] = [
    [dealt_out(Store("a", N, element("a", N), "+"))],
    [dealt_out(Store("a", whole(1), ONE, "+", True))],
    [dealt_out(Store("a", N, element("crd", whole(1))))],
    [dealt_out(Store("a", N, ONE)), dealt_out(Store("a", Binary("-", whole(3), N, I64), ONE, "+"))],
    [dealt_out(Store("w", whole(0), ONE), Store("a", N, element("w", whole(0))), **HELD)],
    [dealt_out(Declare(X, whole(0)), SetVar(X, N), Store("a", X, ONE))],
]  # fmt: skip


@pytest.mark.parametrize("statements", APART)
def test_iterations_of_a_parallel_loop_that_do_not_meet(statements: list[Step]) -> None:
    run(*statements)
