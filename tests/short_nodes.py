"""Loop IR in short."""

from __future__ import annotations

from sparsetune.compiler.ir.nodes import (
    BOOL,
    I64,
    Binary,
    Const,
    Value,
    Var,
)

I, K, N = Var("i", I64), Var("k", I64), Var("n", I64)  # noqa: E741 the field's name for a row


def whole(value: int) -> Const:
    return Const(value, I64)


def plus(left: Value, right: Value) -> Value:
    return Binary("+", left, right, I64)


def less(left: Value, right: Value) -> Value:
    return Binary("<", left, right, BOOL)
