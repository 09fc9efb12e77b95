"""Kernels of Ahrens et al., Figure 6, and an evaluator of concrete index notation by plain loops over dense arrays."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import numpy as np
from sparsetune.compiler.concrete.check import formats_of
from sparsetune.compiler.concrete.nodes import Assign, Block, Forall, Program, Stmt, Where, targets
from sparsetune.compiler.format import Format
from sparsetune.compiler.notation.nodes import Access, Add, Assignment, Div, Expr, Literal, Mul, Neg, accesses
from sparsetune.compiler.notation.parser import parse
from sparsetune.compiler.space.space import Rules, ScheduleSpace
from sparsetune.tuner.reports.space_sizes import KERNELS

MIN_DEPTH_COUNTS = {"SpMV": 8, "SpMV2": 144, "SpGEMM": 96, "SpGEMM2": 20736, "SpGEMMH": 102272, "SpMTTKRP": 3631104}

SUMS = (
    "a(i) = b(i) + C(i,j) * d(j)",
    "A(i,j) = B(i,k) * C(k,j) + D(i,j)",
    "A(i) = (B(i,j) + C(i,j)) * d(j)",
    "A(i,j) = B(i,j) / c(i) - D(i,j)",
    "a = 2 * B(i,j) * c(i) * d(j)",
    "A(i,j) = B(i,j) + C(i,j) * D(i,j)",
    "a(i) = B(i,j) + C(i,k) + d(i)",
    "A(i,j) = -B(i,j) * (C(j,i) - 1)",
)


def csf_formats(assignment: Assignment) -> dict[str, Format]:
    """Return (dense, compressed, ...) for matrices and tensors, dense for vectors and scalars."""
    orders = {access.tensor: len(access.subscripts) for access in (assignment.target, *accesses(assignment.value))}
    return formats_of(assignment, {name: "d" + "s" * (order - 1) if order else None for name, order in orders.items()})


def sample_space(expression: str, rules: Rules | None = None) -> ScheduleSpace:
    """Return the space of a kernel, by name or text, in the formats of the paper."""
    assignment = parse(KERNELS.get(expression, expression))
    return ScheduleSpace(assignment, csf_formats(assignment), rules)


def random_operands(assignment: Assignment, extent: int, seed: int = 0) -> dict[str, np.ndarray]:
    source = np.random.default_rng(seed)
    return {
        access.tensor: source.integers(1, 5, size=(extent,) * len(access.subscripts)).astype(float) for access in accesses(assignment.value)
    }


def reference(assignment: Assignment, operands: Mapping[str, np.ndarray], extent: int) -> np.ndarray:
    """Evaluate index notation term by term: every addend of the distributed right-hand side is summed over its own indices."""
    left = assignment.target.indices
    total = np.zeros((extent,) * len(left))
    for term in _distributed(assignment.value):
        names = tuple(dict.fromkeys((*left, *(name for access in accesses(term) for name in access.indices))))
        for values in product(range(extent), repeat=len(names)):
            point = dict(zip(names, values, strict=True))
            total[tuple(point[name] for name in left)] += _value(term, point, operands)
    return total


def _distributed(value: Expr) -> list[Expr]:
    match value:
        case Add(operands):
            return [term for operand in operands for term in _distributed(operand)]
        case Neg(operand):
            return [Neg(term) for term in _distributed(operand)]
        case Div(numerator, denominator):
            return [Div(term, denominator) for term in _distributed(numerator)]
        case Mul(operands):
            return [Mul(factors) for factors in product(*map(_distributed, operands))]
        case _:
            return [value]


def evaluate(program: Program, target: Access, operands: Mapping[str, np.ndarray], extent: int) -> np.ndarray:
    """Run a program; workspaces start at zero whenever their where statement is reached."""
    arrays = dict(operands) | {target.tensor: np.zeros((extent,) * len(target.subscripts))}
    shapes = {workspace.name: (extent,) * len(workspace.indices) for workspace in program.workspaces}
    _run(program.statement, {}, arrays, shapes, extent)
    return arrays[target.tensor]


def _run(statement: Stmt, point: dict[str, int], arrays: dict[str, np.ndarray], shapes: Mapping[str, tuple[int, ...]], extent: int) -> None:
    match statement:
        case Forall(index, body):
            for value in range(extent):
                _run(body, point | {index: value}, arrays, shapes, extent)
        case Where(consumer, producer):
            for name in targets(producer):
                arrays[name] = np.zeros(shapes[name])
            _run(producer, point, arrays, shapes, extent)
            _run(consumer, point, arrays, shapes, extent)
        case Block(statements):
            for inner in statements:
                _run(inner, point, arrays, shapes, extent)
        case Assign(target, operator, value):
            place = tuple(point[name] for name in target.indices)
            arrays[target.tensor][place] = _value(value, point, arrays) + (arrays[target.tensor][place] if operator == "+=" else 0)
        case _:
            raise TypeError(statement)


def _value(value: Expr, point: Mapping[str, int], arrays: Mapping[str, np.ndarray]) -> float:
    match value:
        case Literal(number):
            return float(number)
        case Access(tensor, subscripts):
            return float(arrays[tensor][tuple(point[subscript.index] for subscript in subscripts)])
        case Neg(operand):
            return -_value(operand, point, arrays)
        case Add(operands):
            return sum(_value(operand, point, arrays) for operand in operands)
        case Mul(operands):
            return float(np.prod([_value(operand, point, arrays) for operand in operands]))
        case Div(numerator, denominator):
            return _value(numerator, point, arrays) / _value(denominator, point, arrays)
        case _:
            raise TypeError(value)


CSR = {"A": "csr", "B": "csr", "C": "csr"}
PRODUCT = "A(i,j) = B(i,k) * C(k,j)"
