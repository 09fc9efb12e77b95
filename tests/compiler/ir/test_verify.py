"""The verifier: what is refused, by whom it was made, and that it looks between all passes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from loop_runs import function
from sparsetune.compiler.ir.nodes import (
    BOOL,
    F64,
    I32,
    I64,
    MAP,
    SHARE_NUMBER,
    Allocate,
    ArrayParameter,
    ArrayRef,
    Binary,
    Call,
    Cast,
    Const,
    Declare,
    Fill,
    For,
    Free,
    Function,
    If,
    Load,
    Parallel,
    Publish,
    Run,
    Select,
    SetVar,
    Step,
    Steps,
    Store,
    Unary,
    Value,
    Var,
    While,
)
from sparsetune.compiler.ir.verify import IllFormed, verify
from sparsetune.compiler.passes.cpu import CPU
from sparsetune.compiler.passes.manager import Pass, PassList, Property, VectorUnit
from sparsetune.compiler.pipeline import compile_kernel

N, AT, K, T = Var("n", I64), Var("i", I64), Var("k", I64), Var("t", F64)
ZERO, ONE, HALF = Const(0, I64), Const(1, I64), Const(0.5, F64)
X = Load("x", ZERO, F64)
HELD = Allocate("h", F64, N)


def program(*steps: Step) -> Function:
    return function(steps, {"x": ("f64", False), "pos": ("i32", False), "y": ("f64", True)}, ["n"])


def put(value: Value) -> Store:
    return Store("y", ZERO, value)


def loop(*body: Step, tag: Parallel | None = None, **rest: tuple[Step, ...]) -> For:
    return For(AT, ZERO, N, Steps(body), tag, **rest)


WELL_FORMED = {
    "nothing": [],
    "a copy": [put(X)],
    "a local": [Declare(T, X), SetVar(T, HALF, "*"), put(T)],
    "a declaration in a block of a block": [Steps((Declare(T, X),)), put(T)],
    "a loop": [loop(put(Load("x", AT, F64)))],
    "threads": [loop(Store("y", AT, X, "+", atomic=True), tag=Parallel())],
    "what threads have": [loop(SetVar(T, X, "+"), tag=Parallel(), private=(Declare(T, HALF),), finish=(put(T),))],
    "a name of threads that hides one": [Declare(T, X), loop(Declare(T, HALF), SetVar(T, X, "+"), put(T), tag=Parallel())],
    "an array": [HELD, Fill("h", ZERO, N, X), put(Load("h", ZERO, F64)), Free("h")],
    "narrower places": [put(Load("x", Load("pos", ZERO, I32), F64))],
    "a vector": [Declare(Var("v", F64.vector(4)), Load("x", ZERO, F64.vector(4))), Store("y", ZERO, Var("v", F64.vector(4)))],
    "the larger truth value": [Declare(Var("b", BOOL), Binary("max", Const(True, BOOL), Const(False, BOOL), BOOL))],
    "an array of one branch": [If(Binary("<", ZERO, N, BOOL), HELD), If(Binary("<", ZERO, N, BOOL), put(Load("h", ZERO, F64))), Free("h")],
    "a map": [Allocate("m", MAP, N), Declare(K, Call("map_insert", (ArrayRef("m", MAP), ZERO), I64)), Free("m")],
}


@pytest.mark.parametrize("name", WELL_FORMED)
def test_well_formed_programs_pass(name: str) -> None:
    verify(program(*WELL_FORMED[name]), "lowering")


ILL_FORMED: dict[str, tuple[list[Step], str]] = {
    "undeclared": ([put(T)], "variable t is used where it is not declared"),
    "declared later": ([put(T), Declare(T, X)], "variable t is used where it is not declared"),
    "declared in a branch": ([If(Binary("<", ZERO, N, BOOL), Declare(T, X)), put(T)], "variable t is used where it is not declared"),
    "declared in a loop": ([loop(Declare(T, X)), put(T)], "variable t is used where it is not declared"),
    "of itself": ([Declare(T, Binary("+", T, X, F64))], "variable t is used where it is not declared"),
    "other type": ([Declare(T, X), put(Var("t", Var("t", F64.vector(2)).type))], "variable t is declared as f64 and used as f64x2"),
    "assigned before": ([SetVar(T, X)], "variable t is used where it is not declared"),
    "no array": ([put(Load("z", ZERO, F64))], "array z is used where there is none"),
    "a kernel's own array before": ([put(Load("h", ZERO, F64)), HELD], "array h is used where there is none"),
    "registers of a loop": (
        [loop(Allocate("r", F64, ONE, "registers"), Store("r", ZERO, X)), put(Load("r", ZERO, F64))],
        "array r is used where there is none",
    ),
    "length of registers": ([Allocate("r", F64, N, "registers")], "array r is to live in registers and has no constant length"),
    "two types": ([HELD, Free("h"), Allocate("h", I64, N)], "array h is allocated as f64 and as i64"),
    "element": ([put(Load("x", ZERO, I64))], "array x of f64 is read as i64"),
    "place": ([put(Load("x", HALF, F64))], "0.5 is no place of x"),
    "written place": ([Store("y", HALF, X)], "0.5 is no whole number"),
    "only read": ([Store("x", ZERO, X)], "array x is only read"),
    "fraction": ([Declare(K, X)], "a value of type f64 is kept as i64"),
    "lanes": ([Declare(T, Load("x", ZERO, F64.vector(4)))], "a value of type f64x4 is kept as f64"),
    "lanes of operands": (
        [put(Binary("+", Load("x", ZERO, F64.vector(4)), X, F64))],
        r"f64x4 \+ f64 is said to be f64",
    ),
    "condition": ([If(X, put(X))], "is no truth value"),
    "endless": ([While(ONE, put(X))], "condition 1 is no truth value"),
    "comparison": ([put(Binary("<", X, X, F64))], "f64 < f64 is said to be f64"),
    "logic": ([If(Binary("and", ONE, ONE, BOOL), put(X))], "i64 and i64 is said to be bool"),
    "operator": ([put(Binary("^", X, X, F64))], "f64 .* f64 is said to be f64"),
    "negation": ([If(Unary("not", ONE, BOOL), put(X))], "not makes bool of i64"),
    "choice": ([put(Select(X, X, X, F64))], "is no truth value"),
    "cast": ([put(Cast(Load("x", ZERO, F64.vector(4)), F64))], "f64x4 is converted to f64"),
    "bound": ([For(AT, ZERO, HALF, put(X))], "0.5 is no whole number"),
    "counter": ([For(T, ZERO, N, put(X))], "a loop counts upwards in whole numbers"),
    "step": ([For(AT, ZERO, N, put(X), step=0)], "a loop counts upwards in whole numbers"),
    "private": ([loop(put(X), private=(Declare(T, X),))], "only threads have something private"),
    "race": ([Declare(T, X), loop(SetVar(T, X, "+"), tag=Parallel())], "threads assign t, which is declared outside of their loop"),
    "race behind a hidden name": (
        [Declare(T, X), loop(loop(Declare(T, HALF)), SetVar(T, X, "+"), tag=Parallel())],
        "threads assign t, which is declared outside of their loop",
    ),
    "atomic": ([Store("y", ZERO, X, "+", atomic=True)], "only scalars are updated atomically, and only by threads"),
    "stream": ([Store("y", ZERO, X, streams=True)], "only whole vectors are written past the caches"),
    "update": ([Declare(T, X), SetVar(T, X, "^")], r"nothing is updated by \^"),
    "function": ([Run("shuffle", (ZERO,))], "there is no function shuffle"),
    "share": ([Declare(K, Call(SHARE_NUMBER, (), I64))], "only iterations of parallel loops belong to shares"),
    "argument": ([Run("sort", (ArrayRef("y", I64), N))], "array y of f64 is handed over as i64"),
    "insertion": (
        [Allocate("m", MAP, N), put(Cast(Call("map_insert", (ArrayRef("m", MAP), ZERO), I64), F64))],
        "map_insert may find no memory, so that it stands only as the whole value of a variable",
    ),
    "output": ([HELD, Publish("y", "h", N)], "y is no array that the caller receives"),
    "twice": ([Declare(T, X), Declare(T, HALF), put(T)], "t is declared twice"),
    "registers twice": ([Allocate("r", F64, ONE, "registers")] * 2, "r is declared twice"),
    "counter that is set": ([loop(SetVar(AT, ONE, "+"))], "i is assigned, with which a loop counts"),
    "hidden counter": ([loop(Declare(AT, ONE))], "i is declared, with which a loop counts"),
    "no whole constant": ([Declare(K, Const(0.5, I64))], "0.5 is said to be i64"),
    "sum of conditions": ([Declare(Var("b", BOOL), Binary("+", Const(True, BOOL), Const(True, BOOL), BOOL))], r"bool \+ bool is said"),
    "too few arguments": ([Declare(K, Call("gallop_stride", (N,), I64))], "gallop_stride does not take 1 arguments"),
    "no lanes": ([put(Call("sum_lanes", (), F64))], "sum_lanes does not take 0 arguments"),
    "nothing to change": ([Run("sort", (N, N))], "sort changes no array"),
    "released twice": ([HELD, Free("h"), Free("h")], "array h is used where it is not there"),
    "used afterwards": ([HELD, Free("h"), put(Load("h", ZERO, F64))], "array h is used where it is not there"),
    "made twice": ([HELD, HELD, Free("h")], "array h is made where it is there already"),
    "made perhaps twice": ([HELD, If(Binary("<", ZERO, N, BOOL), HELD), Free("h")], "array h is made where it is there already"),
    "made in a loop": ([loop(HELD), Free("h")], "array h is made or released again and again"),
    "made by threads": ([loop(put(X), tag=Parallel(), private=(HELD,)), Free("h")], "array h is made or released again and again"),
}


@pytest.mark.parametrize("name", ILL_FORMED)
def test_ill_formed_programs_are_refused(name: str) -> None:
    steps, fault = ILL_FORMED[name]
    with pytest.raises(IllFormed, match=rf"^lowering made an ill-formed program: .*{fault}.*, in: "):
        verify(program(*steps), "lowering")


def test_arrays_are_released_or_handed_over_as_what_they_are() -> None:
    with pytest.raises(IllFormed, match=r"array h is never released$"):
        verify(program(HELD), "lowering")
    made = ArrayParameter("out", F64, ("y", "values"), writable=True, assembled=True)
    handing = replace(program(HELD, Publish("out", "h", N)), arrays=(made,))
    verify(handing, "lowering")
    with pytest.raises(IllFormed, match=r"out is never handed over$"):
        verify(replace(handing, body=Steps(())), "lowering")
    with pytest.raises(IllFormed, match="array h of f64 is handed over as i64"):
        verify(replace(handing, arrays=(replace(made, type=I64),)), "lowering")
    again = Steps((HELD, Publish("out", "h", N), HELD, Publish("out", "h", N)))
    with pytest.raises(IllFormed, match="out is handed over twice"):
        verify(replace(handing, body=again), "lowering")


def broken(made: Function, _: object) -> Function:
    """A pass that forgets all declarations."""
    assert isinstance(made.body, Steps)
    return replace(made, body=Steps(tuple(step for step in made.body.statements if not isinstance(step, Declare))))


def test_a_pass_that_breaks_a_program_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    passes = PassList([*CPU.passes[:3], Pass("forget", broken)], CPU.at_first)
    kernel = program(Declare(T, X), SetVar(T, HALF, "+"), put(T))
    fault = r"variable t is used where it is not declared, in: t \+= 0\.5"
    with pytest.raises(IllFormed, match=rf"^pass 'forget' made an ill-formed program: {fault}$"):
        passes.run(kernel, VectorUnit(32))
    monkeypatch.setenv("SPARSETUNE_VERIFY", "0")
    assert passes.run(kernel, VectorUnit(32)) != kernel


def test_what_lowering_made_is_looked_at_first() -> None:
    with pytest.raises(IllFormed, match=r"^lowering made an ill-formed program: variable t"):
        CPU.run(program(put(T)), VectorUnit(32))


def test_a_pass_that_breaks_what_was_given_is_named() -> None:
    unwritten = Property("nothing is written", lambda made: "y is" if made.body.statements else None)
    clear = Pass("clear", lambda made, _: replace(made, body=Steps(())), gives=frozenset({unwritten}))
    write = Pass("write", lambda made, _: replace(made, body=Steps((put(X),))))
    PassList([clear]).run(program(put(X)), VectorUnit(32))
    with pytest.raises(IllFormed, match=r"^pass 'write' made a program of which it is not true that nothing is written: y is$"):
        PassList([clear, write]).run(program(put(X)), VectorUnit(32))


def test_kernels_are_verified_where_the_environment_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    monkeypatch.setattr("sparsetune.compiler.passes.manager.verify", lambda _, maker: seen.append(maker))
    _ = compile_kernel("y(i) = A(i,j) * x(j)", {"A": "csr"}).source
    assert seen == ["lowering", *(f"pass '{each.name}'" for each in CPU.passes)]
    monkeypatch.delenv("SPARSETUNE_VERIFY")
    seen.clear()
    _ = compile_kernel("y(i) = A(i,j) * x(j)", {"A": "csr"}).source
    assert not seen
