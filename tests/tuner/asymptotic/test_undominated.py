"""What the tuner takes over from the asymptotic frontier: legal, few, simple, and right."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from sparsetune.compiler.concrete.check import formats_of
from sparsetune.compiler.deadline import Deadline
from sparsetune.compiler.notation.parser import parse
from sparsetune.compiler.pipeline import compile_kernel
from sparsetune.compiler.schedule import directives as d
from sparsetune.compiler.schedule.schedule import Schedule
from sparsetune.tuner.asymptotic.undominated import MOST_COSTS, MOST_OF_A_COST, undominated_schedules
from sparsetune.tuner.problem import Problem
from sparsetune.tuner.prune import surviving_space
from sparsetune.tuner.resolve import make_problem

RNG = np.random.default_rng(2)
CASES = (
    ("y(i) = b(i) - A(i,j) * x(j)", {"A": "csr"}),
    ("y(i) += A(i,j) * x(j)", {"A": "csr"}),
    ("Z(i,j) = A(i,k) * B(k,j) + C(i,j)", {"A": "csr", "B": "csr", "C": "csr", "Z": "csr"}),
    ("a(i) = B(i,j) * C(j,k) * d(k)", {"B": "csr", "C": "csr"}),
    ("Z(i,l) = B(i,j) * C(i,k) * D(j,k) * E(j,l)", {"B": "csr"}),
)


def found(expression: str, formats: dict[str, str], deadline: Deadline | None = None) -> list[Schedule]:
    assignment = parse(expression)
    return undominated_schedules(assignment, formats_of(assignment, formats), deadline or Deadline(20))


@pytest.mark.parametrize(("expression", "formats"), CASES)
def test_every_one_compiles_and_nothing_is_computed_again(expression: str, formats: dict[str, str]) -> None:
    schedules = found(expression, formats)
    assert 0 < len(schedules) <= MOST_COSTS * MOST_OF_A_COST
    assert len(set(schedules)) == len(schedules)
    for schedule in schedules:
        assert not any(isinstance(one, d.Recompute) for one in schedule)
        assert compile_kernel(expression, formats, schedule=schedule).source


def test_what_converts_nothing_and_says_least_comes_first() -> None:
    (first, *_) = found(*CASES[3])
    assert str(first) == "precompute(C(j,k) * d(k), j, j, w)"
    assert str(found(*CASES[0])[0]) == "addends(b(i), -(A(i,j) * x(j)))"


def test_without_time_there_are_none() -> None:
    assert found(*CASES[3], deadline=Deadline(0)) == []


def residual() -> Problem:
    matrix = scipy.sparse.random_array((3000, 3000), density=0.01, rng=RNG, format="csr")
    return make_problem("y(i) = b(i) - A(i,j) * x(j)", {"A": matrix, "x": np.ones(3000), "b": np.ones(3000)}, threads=2)


def test_the_tuner_searches_around_them() -> None:
    """A residual has one structure by the rules: the default program with its workspace."""
    texts = [template.text for template in surviving_space(residual())[0].templates]
    assert any(text.startswith("addends(b(i), -(A(i,j) * x(j))); join(i, [0], [1]); parallelize(i") for text in texts)
    apart = "addends(b(i), -(A(i,j) * x(j))); parallelize([0], i, cpu_thread, no_races, {chunking}); parallelize([1], i, cpu_thread"
    assert any(text.startswith(apart) for text in texts)


def test_row_by_row_is_not_given_up_for_a_converted_operand() -> None:
    """Columns of a converted matrix need no workspace, but a copy of the matrix."""
    stored = {name: scipy.sparse.random_array((2000, 2000), density=0.01, rng=RNG, format="csr") for name in "BC"}
    problem = make_problem("a(i) = B(i,j) * C(j,k) * d(k)", {**stored, "d": np.ones(2000)}, threads=2)
    texts = [template.text for template in surviving_space(problem)[0].templates]
    assert any(text.startswith("precompute(C(j,k) * d(k), j, j, w") for text in texts)
    assert any(text.startswith("convert(B(i,j)") for text in texts)
