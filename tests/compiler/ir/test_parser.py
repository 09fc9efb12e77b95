"""The text of the loop IR read back: over golden files, random kernels after every pass, and what is special in it."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest
from differential.cases import random_case
from differential.scheduled import random_scheduled
from loop_runs import function
from sparsetune.compiler.codegen.c import print_c
from sparsetune.compiler.ir.interpret import interpret
from sparsetune.compiler.ir.nodes import (
    BOOL,
    F32,
    F64,
    I64,
    Binary,
    Const,
    Declare,
    For,
    Function,
    If,
    Load,
    Node,
    Prefetch,
    SetVar,
    Simd,
    Step,
    Steps,
    Store,
    Type,
    Unary,
    Value,
    Var,
    Vector,
)
from sparsetune.compiler.ir.parser import UnreadableProgram, parse_function
from sparsetune.compiler.ir.printer import show_function
from sparsetune.compiler.ir.rewrite import transform
from sparsetune.compiler.passes.cpu import CPU
from sparsetune.compiler.passes.manager import VectorUnit
from sparsetune.compiler.pipeline import compile_kernel

GOLDEN = sorted((Path(__file__).parents[1] / "codegen" / "golden").glob("*.loops"))
UNIT = VectorUnit(64, True, 24, 32)


def comparable(made: Function) -> str:
    """Return the C of a function without what the text leaves out: origins, and blocks around what stands in them alone."""

    def alone(node: Node) -> Node:
        match node:
            case If(condition, then, Steps((If() as inner,))):
                return If(condition, then, inner)
        return node

    return re.sub(r"  // .*$", "", print_c(Function(made.name, made.arrays, made.sizes, transform(made.body, alone))), flags=re.MULTILINE)


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_golden_programs_are_read_back(path: Path) -> None:
    text = path.read_text().rstrip()
    assert show_function(parse_function(text)) == text


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize("kind", ["default", "scheduled"])
def test_random_kernels_are_read_back_after_every_pass(kind: str, seed: int) -> None:
    if kind == "scheduled":
        made = random_scheduled(seed).compiled()
    else:
        case = random_case(seed)
        made = compile_kernel(case.text, case.formats, case.constants, dtype=case.dtype, semiring=case.semiring)
    lowered = made.default_kernel.spec.function
    seen = set()
    for kernel in (lowered, *(after for _, after in CPU.stages(lowered, UNIT))):
        text = show_function(kernel)
        if text not in seen:
            read = parse_function(text)
            assert show_function(read) == text
            assert comparable(read) == comparable(kernel)
        seen.add(text)


def test_what_is_read_back_runs() -> None:
    kernel = compile_kernel("y(i) = A(i,j) * x(j)", {"A": "csr"}).default_kernel.spec.function
    rows, columns = np.array([0, 2, 2, 3], np.int32), np.array([0, 2, 1], np.int32)
    given = {"A2_pos": rows, "A2_crd": columns, "A_vals": np.array([1.0, 2.0, 3.0]), "x_vals": np.array([1.0, 10.0, 100.0])}
    read = parse_function(show_function(kernel))
    y = np.zeros(3)
    interpret(read, [given.get(parameter.name, y) for parameter in read.arrays], [3] * len(read.sizes))
    assert y.tolist() == [201.0, 0.0, 30.0]


def test_names_that_are_words_of_the_text() -> None:
    kernel = compile_kernel("for(if) = not(if,min) * max(min)", {"not": "csr"}).default_kernel.spec.function
    text = show_function(kernel)
    assert "for `if`: i64 in" in text
    assert show_function(parse_function(text)) == text


N, T, X = Var("n", I64), Var("t", F64), Load("x", Const(0, I64), F64)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (Const(-3.0, F64), "-3.0"),
        (Unary("-", Const(3.0, F64), F64), "-(3.0)"),
        (Unary("-", X, F64), "-x[0]"),
        (Const(math.inf, F64), "+inf"),
        (Const(-math.inf, F64), "-inf"),
        (Const(1e-9, F64), "1e-09"),
        (Binary("-", X, Const(-1.0, F64), F64), "x[0] - -1.0"),
        (Binary("-", X, Binary("-", X, X, F64), F64), "x[0] - (x[0] - x[0])"),
        (Binary("max", X, Const(-math.inf, F64), F64), "max(x[0], -inf)"),
        (Binary("+", X, Const(math.inf, F64), F64), "x[0] + +inf"),
    ],
)
def test_values(value: Value, shown: str) -> None:
    kernel = function([Declare(T, value), Store("y", Const(0, I64), T)], {"x": ("f64", False), "y": ("f64", True)})
    text = show_function(kernel)
    assert f"t: f64 = {shown}\n" in text
    assert parse_function(text) == kernel


@pytest.mark.parametrize(
    "step",
    [
        Declare(Var("s", F32), Const(0.5, F32)),
        Declare(Var("s", Type("u16")), Const(3, Type("u16"))),
        Declare(Var("b", BOOL), Const(True, BOOL)),
        For(Var("i", I64), Const(0, I64), N, Steps((Store("y", Var("i", I64), X),)), Vector(2, 16), step=4),
        For(Var("i", I64), Const(0, I64), N, Steps((Store("y", Var("i", I64), X),)), Simd()),
        For(Var("i", I64), Const(0, I64), N, Steps(()), Simd((("*", ("q",)), ("+", ("for", "t"))))),
        Steps((Declare(T, X), Steps((Declare(T, Const(1.0, F64)), Store("y", Const(0, I64), T))), SetVar(T, X, "min"))),
        If(Unary("not", Binary("<", N, Const(3, I64), BOOL), BOOL), Steps(()), Steps((Store("y", N, X, "max"),))),
        Steps((Prefetch("x", N), Prefetch("x", N, 8), Prefetch("x", N, cache=2), Prefetch("x", N, 8, 2))),
    ],
    ids=["f32", "u16", "truth", "vector", "simd", "reductions", "hidden name", "nothing then", "prefetches"],
)
def test_statements(step: Step) -> None:
    kernel = function(step.statements if isinstance(step, Steps) else [step], {"x": ("f64", False), "y": ("f64", True)}, ["n"])
    assert parse_function(show_function(kernel)) == kernel


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("t = 1", "line 4: variable t is not declared"),
        ("y[0] = z", "line 4: there is no array and no variable z"),
        ("y[0] =", "'the end of the line' stands where more is wanted, in: y[0] ="),
        ("y[0] = 1 2", "'2' stands where the end of the line is wanted"),
        ("y[0] = (1", "'the end of the line' stands where ')' is wanted"),
        ("y[0] = $", "line 4: '$' is no part of a program"),
        ("for i: 3 in 0 .. 4:", "'3' stands where a type is wanted"),
        ("free 3", "'3' stands where a name is wanted"),
    ],
)
def test_mistakes_are_named(body: str, message: str) -> None:
    text = f"kernel st_kernel\n  writes y: f64[] = y values\n  size n = index n\n  {body}"
    with pytest.raises(UnreadableProgram, match=re.escape(message)):
        parse_function(text)


def test_a_program_begins_with_its_name() -> None:
    with pytest.raises(UnreadableProgram, match="line 1: a program begins with 'kernel' and its name"):
        parse_function("y[0] = 1")
