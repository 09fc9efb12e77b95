"""Operands in fewer bytes among what is searched, halves of symmetric ones and narrow coordinates: offered where they hold what is there,
counted, refused elsewhere."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse
import sparsetune as st
from sparsetune.compiler.format import Format
from sparsetune.compiler.schedule.apply import apply_schedule
from sparsetune.tuner.costs import operations
from sparsetune.tuner.encodings import encoded_schedules, foremost_encoded
from sparsetune.tuner.legality import is_legal
from sparsetune.tuner.model import problem_candidates
from sparsetune.tuner.problem import Problem
from sparsetune.tuner.prune import surviving_space
from sparsetune.tuner.resolve import make_problem

HALF, NARROW, SLICED, PATTERNED = (f'convert(A, "dense, {kind}")' for kind in ("symmetric", "narrow", "sliced", "patterned"))


def drawn(extent: int = 40) -> scipy.sparse.csr_array:
    return scipy.sparse.random_array((extent, extent), density=0.2, rng=np.random.default_rng(0), format="csr")


def problem(matrix: Any, expression: str = "y(i) = A(i,j) * x(j)", **options: Any) -> Problem:
    operands = {"A": matrix, "x": np.ones(matrix.shape[0])}
    return make_problem(expression, {name: data for name, data in operands.items() if f"{name}(" in expression}, threads=1, **options)


def offered(found: Problem) -> list[str]:
    return list(map(str, encoded_schedules(found)))


def test_halves_are_offered_of_what_is_symmetric() -> None:
    matrix = drawn()
    assert HALF in offered(problem(matrix + matrix.T))
    assert HALF not in offered(problem(matrix))
    assert HALF not in offered(problem(matrix + matrix.T, "C(i,j) = A(i,k) * A(k,j)", output_format="csr"))


def test_narrow_coordinates_are_offered_of_rows_that_reach_over_few_columns() -> None:
    """And whose rows have enough entries: each has a base of its own."""
    near, far = drawn(), scipy.sparse.csr_array(([1.0, 1, 1, 1], ([0, 0, 0, 0], [0, 1, 2, 2**17])), shape=(2, 2**17 + 1))
    few = scipy.sparse.csr_array(np.eye(40))
    assert offered(problem(near)) == [NARROW, SLICED]
    assert NARROW not in offered(problem(few))
    wide = make_problem("y(i) = A(i,j) * x(j)", {"A": far, "x": np.ones(2**17 + 1)}, threads=1)
    assert NARROW not in offered(wide)
    assert is_legal(problem(near), st.Schedule(NARROW))
    assert not is_legal(wide, st.Schedule(NARROW))


def test_short_rows_are_offered_side_by_side() -> None:
    """Where each is a sum of its own, and those of one length nearly."""
    matrix = drawn()
    assert SLICED in offered(problem(matrix))
    assert SLICED not in offered(problem(matrix, "y(j) = A(i,j) * x(i)"))
    assert SLICED not in offered(problem(matrix, "R(i,j) = A(i,j) * x(j)", output_format="csr"))
    for columns, beside in ((1, True), (4, False)):
        found = make_problem("Y(i,k) = A(i,j) * X(j,k)", {"A": matrix, "X": np.ones((40, columns))}, threads=1)
        assert (SLICED in offered(found)) == beside
    long = scipy.sparse.csr_array(np.ones((40, 40)))
    skewed = scipy.sparse.csr_array(np.where(np.arange(40)[:, None] % 4 == 0, np.arange(40) < 20, np.arange(40) < 1))
    assert SLICED not in [*offered(problem(long)), *offered(problem(skewed * 1.0))]
    assert is_legal(problem(matrix), st.Schedule(SLICED))


def test_patterns_are_offered_of_rows_that_look_alike_however_far_they_reach() -> None:
    band = scipy.sparse.diags_array(np.ones((4, 2**18)), offsets=[-(2**17), -1, 0, 2**17], shape=(2**18, 2**18), format="csr")
    assert PATTERNED in offered(problem(band))
    assert NARROW not in offered(problem(band))
    assert PATTERNED not in offered(problem(drawn()))
    found = problem(band)
    default = found.concretized()
    stored = problem(st.tensor(band, "dense, patterned"))
    converted = operations(found, apply_schedule(default.program, PATTERNED, default.formats), default.sources)
    assert operations(stored, stored.concretized().program, stored.concretized().sources) < converted


def test_narrow_coordinates_of_tensors_are_offered_for_their_last_mode() -> None:
    rng = np.random.default_rng(0)
    cube = st.tensor(np.where(rng.random((20, 30, 40)) < 0.2, 1.0, 0.0), "csf")
    found = make_problem("y(i,j) = T(i,j,k) * x(k)", {"T": cube, "x": np.ones(40)}, threads=1)
    assert offered(found) == ['convert(T, "compressed, compressed, narrow")']


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


def test_encodings_are_tried_before_the_search_though_every_call_pays_for_them() -> None:
    """The model counts conversions in every call, and leaves schedules that have any to the end."""
    made = make_problem("y(i) = A(i,j) * x(j)", {"A": drawn(), "x": np.ones(40)}, threads=1)
    templates = surviving_space(made)[0].templates
    found = [str(schedule) for schedule in foremost_encoded(made, templates, 5)]
    assert [text.split("; ")[0] for text in found] == [NARROW, SLICED]
    assert [str(schedule) for schedule in foremost_encoded(made, templates, 1)] == found[:1]
    result = st.tune("y(i) = A(i,j) * x(j)", {"A": drawn(), "x": np.ones(40)}, trials=20, threads=1)
    assert set(found) <= set(result.trials.schedule[: 2 + len(found)])


def test_what_conversion_takes_is_told_of_what_is_tuned() -> None:
    matrix = drawn(400)
    found = st.tune("y(i) = A(i,j) * x(j)", {"A": matrix, "x": np.ones(400)}, trials=3, threads=1, schedules=[NARROW])
    (row,) = found.trials[found.trials.schedule == NARROW].to_dict("records")
    assert row["status"] == "ok"
    assert replace(found, best=st.Schedule(NARROW)).conversion_time > 0


def test_halves_are_tuned() -> None:
    matrix = drawn(60) + drawn(60).T
    for data, schedules in ((st.tensor(matrix, "dense, symmetric"), []), (matrix, [HALF])):
        found = st.tune("y(i) = A(i,j) * x(j)", {"A": data, "x": np.ones(60)}, trials=2, threads=1, schedules=schedules)
        assert set(found.trials.status) == {"ok"}


def test_encodings_of_a_result_that_a_sum_goes_on_from_can_hold_it() -> None:
    form = "hashed, bitmap, patterned"
    result, operand = st.tensor(np.ones((5, 3, 0)), form), np.ones((2, 3, 5))
    problem = make_problem("A(j,k,i) += B(l,k,j)", {"A": result, "B": operand}, form, threads=2)
    found = [one.template.fill() for one in problem_candidates(problem) if one.template]
    assert found
    assert all(is_legal(problem, schedule) for schedule in found)
