"""Halves of symmetric operands among what is searched: offered where they hold the whole, counted, refused elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
import sparsetune as st
from sparsetune.compiler.format import Format
from sparsetune.compiler.schedule.apply import apply_schedule
from sparsetune.tuner.costs import operations
from sparsetune.tuner.halves import half_schedules
from sparsetune.tuner.legality import is_legal
from sparsetune.tuner.problem import Problem, make_problem

HALF = 'convert(A, "dense, symmetric")'


def drawn(extent: int = 40) -> scipy.sparse.csr_array:
    return scipy.sparse.random_array((extent, extent), density=0.2, rng=np.random.default_rng(0), format="csr")


def problem(matrix: Any, expression: str = "y(i) = A(i,j) * x(j)", **options: Any) -> Problem:
    operands = {"A": matrix, "x": np.ones(matrix.shape[0])}
    return make_problem(expression, {name: data for name, data in operands.items() if f"{name}(" in expression}, threads=1, **options)


def test_halves_are_offered_of_what_is_symmetric() -> None:
    matrix = drawn()
    assert list(map(str, half_schedules(problem(matrix + matrix.T)))) == [HALF]
    assert half_schedules(problem(matrix)) == []
    assert half_schedules(problem(matrix + matrix.T, "C(i,j) = A(i,k) * A(k,j)", output_format="csr")) == []


def test_schedules_that_want_halves_of_other_matrices_are_not_used() -> None:
    matrix = drawn()
    assert is_legal(problem(matrix + matrix.T), st.Schedule(HALF))
    assert not is_legal(problem(matrix), st.Schedule(HALF))


def test_the_model_counts_half_of_the_entries_and_the_conversion() -> None:
    matrix = drawn() + drawn().T
    whole, half = problem(matrix), problem(st.tensor(matrix, "dense, symmetric"))
    default = whole.concretized()
    converted = operations(whole, apply_schedule(default.program, HALF, default.formats), default.sources)
    stored = operations(half, half.concretized().program, half.concretized().sources)
    assert stored < converted
    assert stored < 2 * operations(whole, default.program, default.sources)


def test_what_is_no_product_is_tuned_on_the_whole_matrix() -> None:
    matrix = drawn() + drawn().T
    found = problem(st.tensor(matrix, "dense, symmetric"), "C(i,j) = A(i,k) * A(k,j)", output_format="csr")
    assert found.formats["A"] == Format("csr")
    assert np.array_equal(found.operands["A"].to_numpy(), matrix.toarray())


def test_halves_are_tuned() -> None:
    matrix = drawn(60) + drawn(60).T
    for data, schedules in ((st.tensor(matrix, "dense, symmetric"), []), (matrix, [HALF])):
        found = st.tune("y(i) = A(i,j) * x(j)", {"A": data, "x": np.ones(60)}, trials=2, threads=1, schedules=schedules)
        assert set(found.trials.status) == {"ok"}
