"""Fibres that meet many others are marked once: the nests that the rule finds, that they are right, and where they are chosen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sparsetune as st
from sparsetune.compiler.schedule.schedule import Schedule
from sparsetune.compiler.space.finding import found_in
from sparsetune.compiler.space.marked import MARKED
from sparsetune.compiler.space.selection import Selection
from sparsetune.tuner.model import expected_cost, model_choice, problem_candidates
from sparsetune.tuner.problem import Problem
from sparsetune.tuner.recorded_problem import recorded
from sparsetune.tuner.recording import Recording, plain
from sparsetune.tuner.replay import Operands, followed, merged
from sparsetune.tuner.resolve import make_problem
from sparsetune.tuner.searched import Searched
from sparsetune.tuner.whole_space import whole_space

MASKED = "C(i,j) = M(i,j) * A(i,k) * B(k,j)"
TRIANGLES = "t = L(i,j) * L(i,k) * L(k,j)"
LOOKED_UP = "precompute(L(i,j), j, j, w1); workspace(w1, list); protocol(w1(j), locate)"


def pattern(rows: int, entries: int, hubs: int = 0) -> sp.csr_array:
    """Return a lower triangle with entries anywhere, and hubs at whose rows and columns every second vertex has one."""
    source = np.random.default_rng(4)
    ends = [source.integers(0, rows, (2, entries))]
    ends += [np.stack([np.arange(0, rows, 2), np.full((rows + 1) // 2, hub)]) for hub in source.integers(0, rows, hubs)]
    first, second = np.concatenate(ends, axis=1)
    matrix = sp.coo_array((np.ones(len(first)), (np.maximum(first, second), np.minimum(first, second))), shape=(rows, rows))
    found = sp.csr_array(sp.tril(matrix.tocsr(), -1))
    found.data[:] = 1.0
    return found


def masked(threads: int = 1) -> Problem:
    source = np.random.default_rng(2)
    operands = {name: sp.random_array((40, 40), density=0.15, format="csr", rng=source) for name in "MAB"}
    return make_problem(MASKED, operands, "csr", threads=threads)


@pytest.mark.cc
@pytest.mark.parametrize("threads", [1, 2])
def test_entries_that_a_mask_has_are_right(threads: int) -> None:
    problem = masked(threads)
    mask, first, second = (problem.operands[name].to_scipy() for name in "MAB")
    wanted = (mask * (first @ second)).toarray()
    found = [one.template.fill() for one in problem_candidates(problem) if one.origin.startswith(MARKED)]
    assert found
    for schedule in found:
        made: Any = st.evaluate(MASKED, problem.operands, output_format="csr", schedule=schedule, threads=threads)
        assert np.allclose(made.to_numpy(), wanted), schedule
        assert made.nnz == np.count_nonzero(wanted)


def test_a_row_is_marked_only_where_a_loop_around_does_not_move_it() -> None:
    """Row k of B is another one in every iteration around; only that of M is the same for all k."""
    found = [str(one.template.fill()) for one in problem_candidates(masked()) if one.origin.startswith(MARKED)]
    assert all(text.startswith("precompute(M(i,j), j, j, w1); workspace(w1, list); protocol(w1(j), locate)") for text in found)
    product = make_problem("C(i,j) = A(i,k) * B(k,j)", {name: pattern(60, 200) for name in "AB"}, "csr")
    assert not [one for one in problem_candidates(product) if one.origin.startswith(MARKED)]
    assert not [one for one in problem_candidates(masked(), selection=Selection(without=(MARKED,))) if one.origin.startswith(MARKED)]


def test_marked_rows_are_searched_though_the_one_space_copies_no_single_factor() -> None:
    problem = masked()
    whole = whole_space(problem)
    schedules = [one.template.fill() for one in problem_candidates(problem) if one.origin.startswith(MARKED)]
    assert schedules
    for schedule in schedules:
        assert found_in(schedule, whole.whole, problem.constants) is None
        assert schedule in Searched(problem, (), schedules, [])


def test_rows_of_like_lengths_are_marked_and_those_of_hubs_are_searched() -> None:
    """A search skips nearly all of a hub's row, which looking up goes through; the choice is the same with a mask and for a sum."""
    even, hubs = pattern(20_000, 160_000), pattern(20_000, 20_000, 12)
    for expression, result in ((TRIANGLES, None), (TRIANGLES.replace("t =", "C(i,j) ="), "csr")):
        assert str(model_choice(make_problem(expression, {"L": even}, result))).startswith(LOOKED_UP)
        assert LOOKED_UP not in str(model_choice(make_problem(expression, {"L": hubs}, result)))


def test_a_recorded_cost_asks_other_operands_how_their_rows_meet() -> None:
    """Followed for other operands, a recording gives the cost that the model gives them."""
    costs, runs = [], list[Any]()
    for matrix in (pattern(3000, 20_000), pattern(3000, 10_000)):
        problem, made = make_problem(TRIANGLES, {"L": matrix}), Recording()
        cost: Any = expected_cost(recorded(problem, made), Schedule())
        assert any(step[:2] == ["ask", "joined.steps"] for step in made.steps)
        runs = runs or merged([], [*made.steps, ["end", "", None, made.place(cost)]])
        values: list[Any] = []
        end = followed(runs, Operands({"L": matrix}).answer, values)
        assert end is not None
        costs.append(expected_cost(problem, Schedule()))
        assert values[end[3]] == plain(cost) == costs[-1]
    assert costs[0] != costs[1]
