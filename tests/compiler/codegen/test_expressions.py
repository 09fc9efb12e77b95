"""Printed expressions mean in C what they mean in the IR: random ones, evaluated both ways."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import pytest
from loop_runs import COMPILERS, function, run_both, run_compiled
from sparsetune.compiler.ir.interpret import interpret
from sparsetune.compiler.ir.memory import InterpreterError
from sparsetune.compiler.ir.nodes import (
    BOOL,
    F32,
    F64,
    I32,
    I64,
    Binary,
    Cast,
    Const,
    Function,
    Load,
    Select,
    Step,
    Store,
    Type,
    Unary,
    Value,
)
from sparsetune.compiler.passes.simplify import simplify

COUNT = 40
KINDS = {"f64": F64, "f32": F32, "i32": I32, "i64": I64}
VALUES = {
    "f64": np.array([0.0, -0.0, 1.5, -2.25, np.inf, -np.inf, np.nan, 1e300, 5e-324, 3.0]),
    "f32": np.array([0.0, -0.0, 1.5, -2.25, np.inf, -np.inf, np.nan, 1e30, 1e-45, 0.1], np.float32),
    "i32": np.array([0, 1, -1, 7, -13, 1000, 3, 4, 5, 6], np.int32),
    "i64": np.array([0, 1, -1, 7, -13, 10**12, 3, 4, 5, 6], np.int64),
}


class Generator:
    """Random well-typed expressions over the arrays ``in_<type>``."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def leaf(self, kind: Type) -> Value:
        if self.random.random() < 0.6:
            return Load(f"in_{kind.name}", Const(self.random.randrange(10), I64), kind)
        if kind.is_float:
            value = self.random.choice([0.0, -0.0, 1.0, -1.0, 2.5, math.inf, -math.inf, math.nan, 0.1, 1e30])
            return Const(float(np.float32(value)) if kind == F32 else value, kind)
        return Const(self.random.choice([0, 1, -1, 2, 5, -7, 2**31 - 1, -(2**31)] + [2**40, -(2**40)] * (kind == I64)), kind)

    def value(self, kind: Type, depth: int) -> Value:
        choice = self.random.random()
        if depth == 0 or choice < 0.1:
            return self.leaf(kind)
        if choice < 0.65:
            op = self.random.choice(["+", "-", "*", "/", "min", "max"] if kind.is_float else ["+", "-", "*", "min", "max"])
            return Binary(op, self.value(kind, depth - 1), self.value(kind, depth - 1), kind)
        if choice < 0.75:
            return Unary("-", self.value(kind, depth - 1), kind)
        if choice < 0.85 or kind == I32:  # casts to i32 would overflow
            return Select(self.logic(depth - 1), self.value(kind, depth - 1), self.value(kind, depth - 1), kind)
        others = [found for found in KINDS.values() if found != kind and (kind.is_float or not found.is_float)]
        return Cast(self.value(self.random.choice(others), depth - 1), kind)

    def logic(self, depth: int) -> Value:
        choice = self.random.random()
        if depth <= 0 or choice < 0.4:
            kind = self.random.choice(list(KINDS.values()))
            return Binary(self.random.choice(["==", "!=", "<", "<=", ">", ">="]), self.leaf(kind), self.leaf(kind), BOOL)
        if choice < 0.85:
            return Binary(self.random.choice(["and", "or"]), self.logic(depth - 1), self.logic(depth - 1), BOOL)
        return Unary("not", self.logic(depth - 1), BOOL)

    def kernel(self) -> Function:
        """Return a kernel that stores a number of expressions of every type, none of which overflows."""
        statements: list[Step] = []
        for place in range(COUNT):
            statements += [Store(f"out_{name}", Const(place, I64), self.value(kind, 4)) for name, kind in KINDS.items()]
            statements.append(Store("out_bool", Const(place, I64), self.logic(4)))
        arrays = {f"in_{name}": (name, False) for name in KINDS} | {f"out_{name}": (name, True) for name in [*KINDS, "bool"]}
        return function([statement for statement in statements if has_meaning(function([statement], arrays))], arrays)


def has_meaning(kernel: Function) -> bool:
    try:
        interpret(kernel, buffers(), ())
    except InterpreterError:
        return False
    return True


def buffers() -> list[np.ndarray]:
    outputs = [np.zeros(COUNT, values.dtype) for values in VALUES.values()]
    return [*VALUES.values(), *outputs, np.zeros(COUNT, bool)]


@pytest.mark.cc
@pytest.mark.parametrize("seed", range(6))
def test_random_expressions(seed: int) -> None:
    run_both(Generator(seed).kernel(), buffers(), compiler=COMPILERS[seed % len(COMPILERS)])


@pytest.mark.parametrize("seed", range(100, 120))
def test_simplified_expressions_keep_every_bit(seed: int) -> None:
    kernel, plain, simple = Generator(seed).kernel(), buffers(), buffers()
    interpret(kernel, plain, ())
    interpret(simplify(kernel), simple, ())
    for before, after in zip(plain, simple, strict=True):
        assert_same_bits(before, after)


def assert_same_bits(one: np.ndarray, other: np.ndarray) -> None:
    np.testing.assert_array_equal(one, other)
    if one.dtype.kind == "f":  # NaN's sign is anybody's
        np.testing.assert_array_equal(np.signbit(one[~np.isnan(one)]), np.signbit(other[~np.isnan(other)]))


@pytest.mark.cc
@pytest.mark.parametrize("compiler", COMPILERS)
def test_minimum_and_maximum_pass_nan_on(compiler: str) -> None:
    pairs = [(1.0, np.nan), (np.nan, 1.0), (np.nan, np.nan), (2.0, 3.0), (3.0, 2.0)]
    statements = [
        Store(op, Const(place, I64), Binary(op, Load("a", Const(place, I64), F64), Load("b", Const(place, I64), F64), F64))
        for place in range(len(pairs))
        for op in ("min", "max")
    ]
    kernel = function(statements, {"a": ("f64", False), "b": ("f64", False), "min": ("f64", True), "max": ("f64", True)})
    a, b = (np.array(column) for column in zip(*pairs, strict=True))
    low, high = np.zeros(5), np.zeros(5)
    run_compiled(kernel, [a, b, low, high], compiler=compiler, flags=None)
    np.testing.assert_array_equal(low, np.minimum(a, b))
    np.testing.assert_array_equal(high, np.maximum(a, b))


@pytest.mark.cc
def test_index_products_do_not_overflow() -> None:
    """An index of 32-bit parts beyond 2**31 must reach the address in 64 bits."""
    place = Binary("-", Binary("*", Load("i", Const(0, I64), I32), Const(65536, I32), I32), Load("back", Const(0, I64), I64), I64)
    kernel = function([Store("out", place, Const(7.0, F64))], {"i": ("i32", False), "back": ("i64", False), "out": ("f64", True)})
    out = np.zeros(4)
    run_both(kernel, [np.array([40000], np.int32), np.array([40000 * 65536 - 2]), out])
    assert out.tolist() == [0, 0, 7, 0]
