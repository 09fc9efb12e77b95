"""Expressions with functions in the whole space: sums that arguments take are workspaces, parts of arguments may be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sparsetune.compiler.concrete.check import formats_of
from sparsetune.compiler.concrete.evaluate import evaluate
from sparsetune.compiler.evaluate import evaluate as computed
from sparsetune.compiler.notation.inner_sums import with_sums
from sparsetune.compiler.notation.nodes import accesses
from sparsetune.compiler.notation.parser import parse
from sparsetune.compiler.notation.printer import show
from sparsetune.compiler.schedule.apply import apply_schedule
from sparsetune.compiler.schedule.schedule import Schedule
from sparsetune.compiler.space.finding import found_in
from sparsetune.compiler.space.full import FullSpace
from sparsetune.compiler.space.options import Options
from sparsetune.compiler.space.whole import WholeSpace
from sparsetune.compiler.space.writing import written
from sparsetune.compiler.storage.construct import tensor

Arrays = dict[str, np.ndarray]

CASES: dict[str, tuple[str, dict[str, str], Callable[[Arrays], np.ndarray]]] = {
    "layer": (
        "Y(i,k) = relu(A(i,j) * X(j,k) - b(k)) * C(i,k)",
        {"A": "csr"},
        lambda given: np.maximum(given["A"] @ given["X"] - given["b"], 0) * given["C"],
    ),
    "summed over": (
        "y(i) = A(i,j) * relu(B(j,k) * c(k) - b(j))",
        {"A": "csr", "B": "csr"},
        lambda given: given["A"] @ np.maximum(given["B"] @ given["c"] - given["b"], 0),
    ),
    "softmax": (
        "P(i,j) = exp(X(i,j)) / sum(k, exp(X(i,k)))",
        {},
        lambda given: np.exp(given["X"]) / np.exp(given["X"]).sum(1, keepdims=True),
    ),
    "something of nothing": (
        "C(i,j) = exp(A(i,j)) + B(i,j)",
        {"A": "csr", "B": "csr"},
        lambda given: np.exp(given["A"]) + given["B"],
    ),
    "union": (
        "C(i,j) = relu(A(i,j) - B(i,j)) * X(i,j)",
        {"A": "csr", "B": "csr", "C": "csr"},
        lambda given: np.maximum(given["A"] - given["B"], 0) * given["X"],
    ),
}


def arrays_of(name: str) -> Arrays:
    """Return the operands of a case, with zeros where they are stored sparsely."""
    expression, formats, _ = CASES[name]
    source, read = np.random.default_rng(5), dict.fromkeys(accesses(parse(expression).value))
    shapes = {access.tensor: (4,) * len(access.subscripts) for access in read}
    given = {operand: source.integers(1, 4, shape).astype(float) for operand, shape in shapes.items()}
    return {operand: array * (source.random(array.shape) < 0.6) if operand in formats else array for operand, array in given.items()}


def space_of(name: str, options: Options) -> WholeSpace:
    expression, formats, _ = CASES[name]
    assignment = parse(expression)
    return WholeSpace(assignment, formats_of(assignment, formats), options=options)


@pytest.mark.parametrize("name", CASES)
def test_draws_compute_the_expression_and_are_found_again(name: str) -> None:
    space, arrays = space_of(name, Options()), arrays_of(name)
    default, expected = space.default, CASES[name][2](arrays)
    full = FullSpace(space)
    assert "" in full
    drawn = full.sample(12, seed=1)
    assert len(set(drawn)) > 1
    for schedule in drawn:
        found = found_in(schedule, space)
        assert found is not None
        assert space.rank(*found) is not None
        assert written(found[0], space) == Schedule(str(schedule)) == schedule
        program = apply_schedule(default.program, schedule, default.formats)
        (result,) = evaluate(program, arrays, default.formats).values()
        np.testing.assert_allclose(result, expected, err_msg=str(schedule))


@pytest.mark.parametrize("name", ["layer", "something of nothing", "union"])
def test_draws_with_workspaces_and_units_make_kernels_that_are_right(name: str) -> None:
    options = Options(units=("cpu_thread", "cpu_vector"), kinds=("list", "dense"), fitting=True, in_order=True, outermost=True)
    expression, formats, meaning = CASES[name]
    arrays = arrays_of(name)
    operands: dict[str, Any] = {one: tensor(array, formats[one]) if one in formats else array for one, array in arrays.items()}
    target = parse(expression).target.tensor
    (schedule,) = FullSpace(space_of(name, options)).sample(1, seed=3)
    result = computed(expression, operands, formats.get(target), schedule)
    np.testing.assert_allclose(result if isinstance(result, np.ndarray) else result.to_numpy(), meaning(arrays), err_msg=str(schedule))


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("y(i) = relu(A(i,j) * x(j) + B(i,k) * z(k))", "relu(sum(j, A(i,j) * x(j)) + sum(k, B(i,k) * z(k)))"),
        ("y(i) = relu(b(i)) * x(j)", "relu(b(i)) * x(j)"),
        ("y(i) = relu(A(i,j) * relu(B(j,k)))", "relu(sum(j, A(i,j) * relu(sum(k, B(j,k)))))"),
    ],
)
def test_sums_that_arguments_take_are_written(expression: str, text: str) -> None:
    assignment = parse(expression)
    assert show(with_sums(assignment.value, assignment.target.indices)) == text
