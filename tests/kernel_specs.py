"""Specifications of small kernels, made by hand around loop IR."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import loop_kernels
from sparsetune.compiler.format import Format, dense_format
from sparsetune.compiler.ir.nodes import (
    F64,
    I32,
    I64,
    SHARE_NUMBER,
    Allocate,
    ArrayParameter,
    Binary,
    Call,
    Cast,
    Const,
    Declare,
    For,
    Function,
    Load,
    Parallel,
    Publish,
    SetVar,
    SizeParameter,
    Steps,
    Store,
    Var,
)
from sparsetune.compiler.lowering.kernel_spec import KernelSpec, OperandSpec, ResultSpec

CSR, CSC = Format("dense, compressed"), Format("dense, compressed", (1, 0))
ZERO, ONE = Const(0, I64), Const(1, I64)


def operand(name: str, form: Format, indices: str, dtype: str = "float64") -> OperandSpec:
    return OperandSpec(name, name, form, form, tuple(indices), dtype, (32,) * len(form))


def result(name: str, form: Format, indices: str, **changes: Any) -> ResultSpec:
    plain = ResultSpec(name, form, form, tuple(indices), "float64", 0.0, None, "any", (32,) * len(form))
    return replace(plain, **changes)


def spec(function: Function, operands: tuple[OperandSpec, ...], made: ResultSpec, expression: str, **changes: Any) -> KernelSpec:
    indices = tuple(dict.fromkeys("".join("".join(entry.indices) for entry in operands)))  # type: ignore[arg-type]  # plain indices
    return replace(KernelSpec(function, operands, made, (), indices, (None, None), expression, "", "a loop nest"), **changes)


A, X = operand("A", CSR, "ij"), operand("x", dense_format(1), "j")
SPMV = spec(loop_kernels.spmv(4), (A, X), result("y", dense_format(1), "i"), "y(i) = A(i,j) * x(j)")
SDDMM = spec(
    loop_kernels.sddmm(8, 2, 4),
    (A, operand("U", dense_format(2), "ik"), operand("V", dense_format(2), "jk")),
    result("O", CSR, "ij", shares="A"),
    "O(i,j) = A(i,j) * U(i,k) * V(j,k)",
    extents=(("k", 8),),
)


def copying() -> KernelSpec:
    """Assemble c(j) = x(j) in a compressed level."""
    i, n = Var("i", I64), Var("n", I64)
    values = Store("vals", i, Load("x", i, F64))
    statements = (
        Allocate("pos", I32, Const(2, I64), zero=True),
        Store("pos", ONE, n),
        Allocate("crd", I32, n),
        Allocate("vals", F64, n),
        For(i, ZERO, n, Steps((Store("crd", i, i), values))),
        Publish("pos_out", "pos", Const(2, I64)),
        Publish("crd_out", "crd", n),
        Publish("vals_out", "vals", n),
    )
    arrays = (
        ArrayParameter("pos_out", I32, ("c", "pos", 0), True, True),
        ArrayParameter("crd_out", I32, ("c", "crd", 0), True, True),
        ArrayParameter("vals_out", F64, ("c", "values"), True, True),
        ArrayParameter("x", F64, ("x", "values")),
    )
    function = Function("st_kernel", arrays, (SizeParameter("n", ("index", "j")),), Steps(statements))
    return spec(function, (X,), result("c", Format("compressed"), "j"), "c(j) = x(j)")


def dot() -> KernelSpec:
    """s = x(j) * x(j)."""
    i, total = Var("i", I64), Var("total", F64)
    body = SetVar(total, Binary("*", Load("x", i, F64), Load("x", i, F64), F64), "+")
    statements = (Declare(total, Const(0.0, F64)), For(i, ZERO, Var("n", I64), body), Store("s", ZERO, total))
    arrays = (ArrayParameter("s", F64, ("s", "values"), True), ArrayParameter("x", F64, ("x", "values")))
    function = Function("st_kernel", arrays, (SizeParameter("n", ("index", "j")),), Steps(statements))
    return spec(function, (X,), result("s", Format(), ""), "s = x(j) * x(j)")


def counting_shares() -> KernelSpec:
    """s = into how many shares the work was cut."""
    i = Var("i", I64)
    body = Store("s", ZERO, Cast(Binary("+", Call(SHARE_NUMBER, (), I64), Const(1, I64), I64), F64), "max", atomic=True)
    loop = For(i, ZERO, Const(100, I64), body, Parallel())
    function = replace(dot().function, body=Steps((Store("s", ZERO, Const(0.0, F64)), loop)))
    return replace(dot(), function=function)
