"""Derivatives of statements against finite differences, everything computed by the definition of index notation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import sparsetune as st
from sparsetune.compiler.errors import ExpressionError
from sparsetune.compiler.notation.derivative import derivatives, statements, text_of
from sparsetune.compiler.notation.nodes import Assignment
from sparsetune.compiler.notation.parser import parse

SHAPES = {"a": (3,), "b": (3,), "c": (4,), "A": (3, 4), "B": (3, 3), "s": ()}
EXPRESSIONS = [
    ("y(i) = A(i,j) * c(j)", "Ac"),
    ("y = a(i) * a(i) * a(i)", "a"),
    ("C(i,j) = B(i,j) * B(j,i)", "B"),
    ("y(i) = (a(i) + c(j)) * b(k) - s", "abcs"),
    ("y(i) = a(i) / (1 + b(i) * b(i))", "ab"),
    ("C(i,j) = a(i) + B(i,j)", "aB"),
    ("y(i) = where(a(i) < b(i), a(i) * b(i), sqrt(a(i)))", "ab"),
    ("y(i) = max(a(i), b(i)) * min(a(i), 0.9) + abs(a(i) - b(i)) + relu(b(i) - 0.8)", "ab"),
    ("y(i) = pow(a(i), 3) + pow(a(i), b(i))", "ab"),
    ("y(i) = tanh(a(i)) * sigmoid(c(j) * a(i)) * c(j) + log(a(i)) + exp(b(i))", "abc"),
]


def fresh() -> Any:
    numbers = iter(range(100))
    return lambda wish: f"{wish}_{next(numbers)}"


def values(seed: int) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    return {name: random.random(shape) + 0.4 for name, shape in SHAPES.items()}


def evaluated(statement: Assignment, given: Mapping[str, Any], shape: dict[str, int] | None = None) -> Any:
    text = text_of(statement)
    return st.evaluate(text, {name: data for name, data in given.items() if f"{name}(" in text or f" {name}" in text}, shape=shape)


def run(lines: list[Assignment], given: Mapping[str, Any]) -> Any:
    known, found = dict(given), None
    for line in lines:
        found = known[line.target.tensor] = evaluated(line, known)
    return found


@pytest.mark.cc
@pytest.mark.parametrize(("text", "names"), EXPRESSIONS, ids=[pair[0] for pair in EXPRESSIONS])
def test_derivatives_are_what_finite_differences_say(text: str, names: str) -> None:
    (statement,) = statements(parse(text), fresh())
    given = {name: data for name, data in values(0).items() if name in names}
    worth = np.random.default_rng(1).random(np.shape(evaluated(statement, given)))
    for name in names:
        direction = np.random.default_rng(2).standard_normal(SHAPES[name])
        steps = [evaluated(statement, {**given, name: given[name] + step * direction}) for step in (1e-6, -1e-6)]
        expected = np.sum(worth * (steps[0] - steps[1])) / 2e-6
        extents = {"i": 3, "j": 4 if "c" in names or "A" in names else 3, "k": 3}
        found = 0.0
        for part in derivatives(statement, name, "g", "d"):
            left = {index: extents[index] for index in part.target.indices}
            found += np.sum(direction * evaluated(part, {**given, "g": worth}, left))
        assert found == pytest.approx(expected, rel=1e-6)


@pytest.mark.cc
def test_sums_inside_functions_come_before() -> None:
    given = {name: data for name, data in values(0).items() if name in "Ac"}
    lines = statements(parse("y(i) = exp(A(i,j) * c(j)) / sum(k, exp(A(i,k)))"), fresh())
    assert len(lines) == 3
    np.testing.assert_allclose(run(lines, given), np.exp(given["A"] @ given["c"]) / np.exp(given["A"]).sum(1))
    (line,) = statements(parse("y(i) = sum(j, exp(A(i,j)))"), fresh())
    assert text_of(line) == "y(i) = sum(j, exp(A(i,j)))"
    (part,) = derivatives(line, "A", "g", "d")
    assert text_of(part) == "d(i,j) = g(i) * exp(A(i,j))"


def test_masks_and_counts() -> None:
    (line,) = statements(parse("y(i) = A(i,j) * A(i,j) * c(j) - A(i,j)"), fresh())
    (part,) = derivatives(line, "A", "g", "d", "m")
    assert text_of(part) == "d(i,j) = 2 * m(i,j) * g(i) * A(i,j) * c(j) + (-1) * m(i,j) * g(i)"
    assert derivatives(line, "x", "g", "d") == []


@pytest.mark.parametrize("text", ["y(i) = A(i,i)", "y(i) = a(2*i)"])
def test_what_has_no_derivative_is_refused(text: str) -> None:
    with pytest.raises(ExpressionError, match="the derivative by"):
        derivatives(parse(text), text[7], "g", "d")
