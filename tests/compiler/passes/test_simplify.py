"""What simplification removes, and what it must leave; values are covered by the random expressions of the C tests."""

from __future__ import annotations

import math

import pytest
from loop_runs import function
from short_nodes import whole
from sparsetune.compiler.codegen.c import print_c
from sparsetune.compiler.ir.nodes import (
    BOOL,
    F64,
    I32,
    I64,
    Binary,
    Call,
    Cast,
    Const,
    Declare,
    For,
    If,
    Load,
    Parallel,
    SetVar,
    Step,
    Steps,
    Store,
    Unary,
    Value,
    Var,
    While,
)
from sparsetune.compiler.ir.printer import show_expression, show_statement
from sparsetune.compiler.passes.folding import simplify_expression
from sparsetune.compiler.passes.simplify import simplify

X, Y, F = Var("x", I64), Var("y", I64), Var("f", F64)
TRUE, FALSE = Const(True, BOOL), Const(False, BOOL)


def number(value: float) -> Const:
    return Const(value, F64)


def op(symbol: str, left: Value, right: Value) -> Binary:
    return Binary(symbol, left, right, F64 if F64 in (left.type, right.type) else I64)


@pytest.mark.parametrize(
    ("expr", "shown"),
    [
        (op("+", X, whole(0)), "x"),
        (op("+", whole(3), X), "x + 3"),
        (op("-", op("+", X, whole(3)), whole(5)), "x - 2"),
        (op("+", op("-", X, whole(3)), whole(3)), "x"),
        (op("*", whole(1), X), "x"),
        (op("*", X, whole(0)), "0"),
        (op("-", X, X), "0"),
        (op("/", X, whole(1)), "x"),
        (op("%", X, whole(1)), "0"),
        (op("/", whole(-7), whole(2)), "-3"),
        (op("%", whole(-7), whole(2)), "-1"),
        (op("/", whole(7), whole(0)), "7 / 0"),
        (op("min", X, X), "x"),
        (op("*", F, number(1)), "f"),
        (op("*", F, number(0)), "f * 0.0"),
        (op("+", F, number(0)), "f + 0.0"),
        (op("-", F, number(0)), "f"),
        (op("-", F, number(-0.0)), "f - -0.0"),
        (op("-", F, F), "f - f"),
        (op("*", number(math.inf), number(0)), "+nan"),
        (Cast(X, I64), "x"),
        (Cast(whole(3), F64), "3.0"),
        (Unary("not", Unary("not", Binary("<", X, Y, BOOL), BOOL), BOOL), "x < y"),
        (Binary("and", TRUE, Binary("<", X, Y, BOOL), BOOL), "x < y"),
        (Binary("or", Binary("<", X, Y, BOOL), TRUE, BOOL), "True"),
        (Cast(Const(2**40, I64), I32), "i32(1099511627776)"),
    ],
)
def test_expressions(expr: Value, shown: str) -> None:
    assert show_expression(simplify_expression(expr)) == shown


STORE = Store("a", X, number(1))
INSERT = Call("map_insert", (X,), I64)


@pytest.mark.parametrize(
    ("statements", "shown"),
    [
        ([If(TRUE, STORE, Store("a", Y, number(2)))], "a[x] = 1.0"),
        ([If(FALSE, STORE)], ""),
        ([If(Binary("<", X, Y, BOOL), Steps(()), STORE)], "if not (x < y):\n  a[x] = 1.0"),
        ([If(Binary("<", X, Y, BOOL), Steps(()))], ""),
        ([While(FALSE, STORE)], ""),
        ([For(X, whole(3), whole(3), STORE)], ""),
        ([For(X, whole(3), whole(4), STORE)], "a[3] = 1.0"),
        ([For(X, whole(3), whole(4), STORE, Parallel())], "parallel for x: i64 in 3 .. 4:\n  a[x] = 1.0"),
        ([For(X, Y, op("+", Y, whole(1)), STORE)], "a[y] = 1.0"),
        (
            [For(X, Y, op("+", Y, whole(1)), Steps((SetVar(Y, whole(5)), STORE)))],
            "for x: i64 in y .. y + 1:\n  y = 5\n  a[x] = 1.0",
        ),
        ([For(X, whole(0), whole(9), Steps(()))], ""),
        ([Declare(Y, whole(2)), SetVar(Y, op("+", Y, whole(1))), STORE], "a[x] = 1.0"),
        ([Declare(Y, whole(2)), Store("a", Y, number(1))], "y: i64 = 2\na[y] = 1.0"),
        ([Declare(Y, INSERT)], "y: i64 = map_insert(x)"),
        ([For(X, whole(0), whole(1), Steps((Declare(X, whole(5)), STORE)))], "x: i64 = 5\na[x] = 1.0"),
    ],
)
def test_statements(statements: list[Step], shown: str) -> None:
    assert show_statement(simplify(function(statements, {"a": ("f64", True)})).body) == shown


def test_single_iterations_keep_their_names_apart() -> None:
    """The body of a loop that runs once hides a name of the block around it, and must go on to do so."""
    body = Steps((Declare(Y, whole(7)), Store("a", Y, Load("a", X, F64))))
    statements = [Declare(Y, whole(1)), For(X, whole(2), whole(3), body), Store("a", Y, number(0))]
    lines = [line.strip() for line in print_c(simplify(function(statements, {"a": ("f64", True)}))).splitlines()]
    assert lines[lines.index("int64_t y = 7;") - 1] == "{"
