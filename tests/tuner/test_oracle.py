"""The dense meaning of expressions, against numpy written out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sparsetune.compiler.concrete.check import tensor_names
from sparsetune.compiler.notation.parser import parse
from sparsetune.compiler.notation.printer import show_assignment
from sparsetune.tuner.measure.oracle import absolute, evaluate_dense

RNG = np.random.default_rng(0)
ROWS, COLUMNS, WIDTH = 4, 5, 3
A = RNG.standard_normal((ROWS, COLUMNS))
B = RNG.standard_normal((COLUMNS, WIDTH))
S = RNG.standard_normal((COLUMNS, COLUMNS))
b = RNG.standard_normal(ROWS)
x = RNG.standard_normal(COLUMNS)
ARRAYS = {"A": A, "B": B, "S": S, "b": b, "x": x, "s": np.array(2.5)}
EXTENTS = {"i": ROWS, "j": COLUMNS, "k": WIDTH}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("y(i) = A(i,j) * x(j)", A @ x),
        ("C(i,k) = A(i,j) * B(j,k)", A @ B),
        ("C(k,i) = A(i,j) * B(j,k)", (A @ B).T),
        ("a = b(i) * s", b.sum() * 2.5),
        ("a = b(i) * s + 1", b.sum() * 2.5 + 1),
        ("D(i,j) = b(i) + A(i,j)", b[:, None] + A),
        ("y(i) = A(i,j) * (x(j) - b(i))", (A * (x[None, :] - b[:, None])).sum(1)),
        ("y(i) = A(i,j) * x(j) + b(i)", A @ x + b),
        ("y(j) = S(j,j)", np.diag(S)),
        ("a = S(j,j)", np.trace(S)),
        ("D(i,j) = -A(i,j) / s - 3", -A / 2.5 - 3),
        ("b(i) += A(i,j) * x(j)", b + A @ x),
    ],
)
def test_meaning(expression: str, expected: np.ndarray) -> None:
    assignment = parse(expression)
    operands = {name: ARRAYS[name] for name in tensor_names(assignment)}
    found = evaluate_dense(assignment, operands, EXTENTS)
    np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_division_by_zero_is_ieee() -> None:
    zeros = {"a": np.zeros(2), "b": np.array([0.0, 1.0])}
    found = evaluate_dense(parse("c(i) = b(i) / a(i)"), zeros, {"i": 2})
    assert np.isnan(found[0])
    assert np.isinf(found[1])


def test_absolute() -> None:
    assert show_assignment(absolute(parse("y(i) = -A(i,j) * (x(j) - 2) / s"))) == "y(i) = A(i,j) * (x(j) + 2) / s"
