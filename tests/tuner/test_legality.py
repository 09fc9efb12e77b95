"""What the rules take as legal can be lowered: candidates of random expressions, judged by rules and by generating their code."""

from __future__ import annotations

import numpy as np
import pytest
from differential.cases import random_case
from sparsetune.compiler.schedule.schedule import Schedule
from sparsetune.tuner.kernels import legal_candidate
from sparsetune.tuner.legality import is_legal
from sparsetune.tuner.model import problem_candidates
from sparsetune.tuner.problem import Problem
from sparsetune.tuner.resolve import make_problem


def random_problem(seed: int) -> Problem:
    case = random_case(seed)
    operands = {name: operand.given for name, operand in case.operands.items()}
    return make_problem(case.text, operands, case.result_format, threads=1 + seed % 2, semiring=case.semiring, shape=case.given or None)


@pytest.mark.parametrize("seed", range(40))
def test_rules_and_lowering_agree_on_candidates(seed: int) -> None:
    problem = random_problem(seed)
    schedules = [candidate.template.fill() for candidate in problem_candidates(problem)]
    assert schedules
    differing = [str(each) for each in schedules if is_legal(problem, each) != (legal_candidate(problem, each) is not None)]
    assert not differing


@pytest.mark.parametrize("unit", ["gpu_block", "gpu_thread"])
def test_units_of_another_target_are_not_legal(unit: str) -> None:
    problem = make_problem("y(i) = A(i,j) * x(j)", {"A": np.eye(3), "x": np.ones(3)}, threads=1)
    assert not is_legal(problem, Schedule(f"parallelize(i, {unit}, no_races)"))
    assert is_legal(problem, Schedule("parallelize(i, cpu_thread, no_races)"))
