"""Random legal schedules, every candidate of the tuner and the library: they compile and are right, with one and several threads."""

from __future__ import annotations

import re
from itertools import count, islice

import numpy as np
import pytest
from sparsetune.compiler.concrete.nodes import Stmt
from sparsetune.compiler.concrete.printer import loop_nest
from sparsetune.compiler.notation.nodes import accesses
from sparsetune.compiler.notation.parser import parse
from sparsetune.compiler.pipeline import compile_kernel
from sparsetune.compiler.schedule.schedule import Schedule

from differential import scheduled, scheduled_cases, tuned_cases, tuner_candidates
from differential.again import datasets
from differential.batch import SANITIZERS
from differential.runner import run_isolated

pytestmark = [pytest.mark.cc, pytest.mark.slow]
CASES = 120


def test_random_legal_schedules_lower_and_are_right() -> None:
    """What the rules allow is never refused later, and computes what the expression says."""
    found = run_isolated(range(CASES), chunk=20, work=scheduled.run_random, describe=scheduled.random_scheduled)
    assert not found, "\n".join(map(str, found))


def test_random_schedules_of_random_expressions_are_right() -> None:
    found = run_isolated(range(CASES), chunk=20, work=scheduled_cases.run_scheduled, describe=scheduled_cases.scheduled_case)
    assert not found, "\n".join(map(str, found))


def test_random_schedules_of_symmetric_matrices_are_right() -> None:
    """Few of all cases read one, so some more are run."""
    seeds = list(islice((seed for seed in count() if scheduled.random_scheduled(seed).halves), 20))
    found = run_isolated(seeds, chunk=10, work=scheduled.run_random, describe=scheduled.random_scheduled)
    assert not found, "\n".join(map(str, found))


@pytest.mark.parametrize("seed", [8104000355])
def test_other_data_has_no_values_that_the_schedule_was_not_drawn_for(seed: int) -> None:
    """A dense operand that is converted to csr has no zeros, which times NaN are NaN."""
    case = scheduled_cases.scheduled_case(seed)
    assert "convert" in case.schedule
    assert all(np.isfinite(operand.values).all() for data in datasets(case) for operand in data.operands.values())
    assert not scheduled_cases.run_scheduled([seed], ())


def test_schedules_of_the_tuner_are_right() -> None:
    cases = range(CASES // 2)
    found = run_isolated(cases, chunk=20, work=tuned_cases.run_tuned, describe=tuned_cases.tuned_case)
    assert not found, "\n".join(map(str, found))
    schedules = [tuned_cases.tuned_case(seed).schedule for seed in cases]
    assert sum(map(bool, schedules)) > len(cases) // 3
    assert sum("cpu_thread" in schedule for schedule in schedules) > len(cases) // 10


def test_random_legal_schedules_are_right_when_interpreted() -> None:
    seeds = range(CASES, CASES + 20)
    found = run_isolated(seeds, chunk=10, work=scheduled.run_interpreted, describe=scheduled.random_scheduled)
    assert not found, "\n".join(map(str, found))


def test_positions_are_updated_atomically_where_loops_above_stand_inside() -> None:
    schedule = "pos(i, p, A); split(p, a, b, 4); reorder(b, j, a); parallelize(b, cpu_thread, atomics)"
    case = scheduled.Scheduled(0, "y(i) = A(i,j) * x(j)", (("A", "csc"),), schedule)
    assert scheduled.interpreted_fault(case, case.compiled()) is None


@pytest.mark.parametrize("seed", range(0, 200, 5))
def test_texts_of_random_schedules_are_read_back(seed: int) -> None:
    schedule = Schedule(scheduled.random_scheduled(seed).schedule)
    assert Schedule(str(schedule)) == schedule
    assert str(Schedule(str(schedule))) == str(schedule)


@pytest.mark.parametrize("seed", range(0, 200, 5))
def test_random_schedules_apply_to_the_same_expression_with_other_names(seed: int) -> None:
    """Loops over u, v1, ... of tensors T1, T2, ... are those over i, j, ... of A, B, ..., names aside."""
    case = scheduled.random_scheduled(seed)
    assignment = parse(case.expression)
    read = [assignment.target, *accesses(assignment.value)]
    tensors = dict.fromkeys(access.tensor for access in read)
    indices = dict.fromkeys(name for access in read for name in access.indices)
    names = {tensor: f"T{number}" for number, tensor in enumerate(tensors)}
    names |= {index: f"v{number}" for number, index in enumerate(indices, 1)}
    renamed = re.sub(r"[A-Za-z]\w*", lambda found: names[found[0]], case.expression)
    stored = Schedule(case.schedule).rename(names)
    formats = {names[tensor]: form for tensor, form in case.formats}
    extents = {names[index]: extent for index, extent in case.extents}
    own, other = case.compiled(), compile_kernel(renamed, formats, extents, stored)
    assert shape_of(other.concretized.program.statement) == shape_of(own.concretized.program.statement)


def shape_of(statement: Stmt) -> str:
    """Return a statement's text without its names."""
    return re.sub(r"[A-Za-z_]\w*", "x", loop_nest(statement))


@pytest.mark.parametrize("part", [0])
def test_candidates_and_the_library_are_right(part: int) -> None:
    seeds = range(len(tuner_candidates.chosen_candidates(1, False)))[part::8]
    found = run_isolated(seeds, chunk=30, work=tuner_candidates.run_candidates, describe=tuner_candidates.some_candidate)
    assert not found, "\n".join(map(str, found))


@pytest.mark.nightly
def test_all_candidates_are_right() -> None:
    seeds = range(len(tuner_candidates.chosen_candidates(1, False)))
    found = run_isolated(seeds, chunk=40, work=tuner_candidates.run_candidates, describe=tuner_candidates.some_candidate)
    assert not found, "\n".join(map(str, found))


@pytest.mark.nightly
def test_a_campaign_of_random_schedules() -> None:
    found = run_isolated(range(1000, 4000), chunk=20, work=scheduled.run_random, describe=scheduled.random_scheduled)
    assert not found, "\n".join(map(str, found))


@pytest.mark.nightly
def test_a_campaign_of_random_schedules_of_random_expressions() -> None:
    found = run_isolated(range(1000, 4000), chunk=20, work=scheduled_cases.run_scheduled, describe=scheduled_cases.scheduled_case)
    assert not found, "\n".join(map(str, found))


@pytest.mark.nightly
def test_a_campaign_of_schedules_of_the_tuner() -> None:
    found = run_isolated(range(1000, 3000), chunk=20, work=tuned_cases.run_tuned, describe=tuned_cases.tuned_case)
    assert not found, "\n".join(map(str, found))


@pytest.mark.nightly
def test_a_campaign_of_random_schedules_with_sanitizers() -> None:
    found = run_isolated(range(4000, 4500), chunk=20, flags=SANITIZERS, work=scheduled.run_random, describe=scheduled.random_scheduled)
    assert not found, "\n".join(map(str, found))


@pytest.mark.nightly
def test_a_campaign_of_random_schedules_that_are_interpreted() -> None:
    found = run_isolated(range(4500, 5000), chunk=20, work=scheduled.run_interpreted, describe=scheduled.random_scheduled)
    assert not found, "\n".join(map(str, found))


@pytest.mark.nightly
def test_iterations_of_parallel_candidates_do_not_meet() -> None:
    seeds = range(len(tuner_candidates.chosen_candidates(0, True)))
    found = run_isolated(seeds, chunk=20, work=tuner_candidates.run_meeting, describe=tuner_candidates.parallel_candidate)
    assert not found, "\n".join(map(str, found))


@pytest.mark.nightly
def test_parallel_candidates_lose_no_update() -> None:
    """With more threads than cores, many times; whole numbers show a single lost update."""
    seeds = range(len(tuner_candidates.chosen_candidates(0, True)))
    found = run_isolated(seeds, chunk=40, work=tuner_candidates.run_stress, describe=tuner_candidates.parallel_candidate)
    assert not found, "\n".join(map(str, found))
