"""How writes of threads to the same elements are kept apart: what the model expects of it, and that it chooses what is fast."""

from __future__ import annotations

import numpy as np
import pytest
from sparsetune.compiler.concrete.nodes import Assign, Program
from sparsetune.compiler.schedule.addresses import Address, enclosing_loops, leaves
from sparsetune.compiler.schedule.apply import apply_schedule
from sparsetune.compiler.schedule.dependence import graph_of
from sparsetune.compiler.schedule.schedule import Schedule
from sparsetune.compiler.space.candidates import Candidate
from sparsetune.compiler.space.decorations import RACE
from sparsetune.compiler.space.races import by_race, meets_everywhere
from sparsetune.compiler.storage.positions import stored_prefixes
from sparsetune.datasets.generate import generate
from sparsetune.tuner.costs import operations
from sparsetune.tuner.iterations import Iterations
from sparsetune.tuner.model import model_choice, problem_candidates
from sparsetune.tuner.problem import Problem
from sparsetune.tuner.resolve import make_problem

pytestmark = pytest.mark.usefixtures("usual_constants")

ENTRIES = "collapse(i, j, f1); collapse(f1, k, f2); pos(f2, p, T); split_up(p, p0, p1, 2); parallelize(p0, cpu_thread, {}, static)"


def second_mode(extents: str = "400x300x200", entries: int = 30_000) -> Problem:
    stored = generate(f"random:uniform:{extents}:nnz={entries}", "csf")
    factors = {"B": np.ones((stored.shape[0], 32)), "C": np.ones((stored.shape[2], 32))}
    return make_problem("A(j,r) = T(i,j,k) * B(i,r) * C(k,r)", {"T": stored, **factors}, threads=2)


def program_of(problem: Problem, schedule: str) -> tuple[Program, Address, Assign]:
    """Return what a schedule makes, and the assignment that adds to the result."""
    found = problem.concretized()
    program = apply_schedule(found.program, Schedule(schedule), found.formats, problem.constants)
    target = problem.assignment.target.tensor
    return program, *next((address, leaf) for address, leaf in leaves(program.statement) if leaf.target.tensor == target)


def _outermost(candidate: Candidate) -> str:
    """Return the original index that threads go through first."""
    graph = graph_of(candidate.program.relations)
    return graph.originals(enclosing_loops(candidate.program.statement, next(leaves(candidate.program.statement))[0])[0])[0]


def cost(problem: Problem, schedule: str) -> float:
    found = problem.concretized()
    return operations(problem, apply_schedule(found.program, Schedule(schedule), found.formats, problem.constants), found.sources)


def test_candidates_for_each_race_are_what_their_schedules_make() -> None:
    problem = second_mode()
    found, default = by_race(problem_candidates(problem)), problem.concretized()
    assert not any(RACE in one.template.holes for one in found)
    own = [one for one in found if "temporary" in str(one.template.fill())]
    assert own
    assert len(own) == sum("atomics" in str(one.template.fill()) for one in found)
    for one in own:
        assert one.program == apply_schedule(default.program, one.template.fill(), default.formats, problem.constants)


def test_threads_meet_everywhere_where_the_result_lacks_what_they_share_out() -> None:
    """Shares of a matrix's entries meet in the rows alone that they cut."""
    able = [one for one in problem_candidates(second_mode()) if RACE in one.template.holes]
    met = [one for one in able if meets_everywhere(one)]
    assert met
    first = {meets: {_outermost(one) for one in able if (one in met) is meets} for meets in (True, False)}
    assert "j" not in first[True]
    assert first[False] <= {"j"}  # of a tensor in another order
    matrix = generate("random:uniform:3000x3000:nnz=30000", "csr")
    rows = make_problem("Y(i,k) = A(i,j) * X(j,k)", {"A": matrix, "X": np.ones((3000, 32))}, threads=2)
    cut = [one for one in problem_candidates(rows) if RACE in one.template.holes]
    assert cut
    assert not any(map(meets_everywhere, cut))


def test_threads_add_to_results_of_their_own_where_all_add_to_the_same_rows() -> None:
    """Equal shares of entries write most rows of a result whose rows are not those of the outermost loop from several threads."""
    chosen = str(model_choice(second_mode()))
    assert "temporary" in chosen
    assert "atomics" not in chosen


def test_atomic_additions_are_counted_for_every_row_that_other_threads_add_to() -> None:
    problem, matrix = second_mode(), generate("random:uniform:3000x3000:nnz=30000", "csr")
    rows = make_problem("Y(i,k) = A(i,j) * X(j,k)", {"A": matrix, "X": np.ones((3000, 32))}, threads=2)
    assert cost(problem, ENTRIES.format("atomics")) > 4 * cost(problem, "")
    cut = "collapse(i, j, f); pos(f, p, A); split_up(p, p0, p1, 2); parallelize(p0, cpu_thread, atomics, static)"
    assert cost(rows, cut) < 0.6 * cost(rows, "")  # only the row that two shares have in common


def test_results_of_their_own_do_not_pay_where_these_are_larger_than_the_work() -> None:
    large = second_mode("50x40000x30", 5_000)
    assert cost(large, "parallelize(i, cpu_thread, temporary, static)") > cost(large, "")
    assert "temporary" not in str(model_choice(large) or "")


def test_a_loop_through_positions_counts_only_where_it_is_outside() -> None:
    """A loop around it runs as often as it says, although what is below reads a workspace."""
    problem = second_mode()
    schedule = f"precompute(T(i,j,k) * B(i,r), r, r, w); {ENTRIES.replace('collapse(f1, k, f2); pos(f2', 'pos(f1').format('temporary')}"
    program, address, leaf = program_of(problem, schedule)
    iterations = Iterations(problem, program, problem.concretized().sources)
    stored = problem.operands["T"]
    assert iterations._points(set(), address, leaf) == 1
    assert iterations._points({"i", "j"}, address, leaf) == stored_prefixes(stored)[1]
