"""Random expressions computed as the tuner may say: as the static model chooses, by one of its candidates, or by one of the whole space."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from random import Random
from typing import Any

from sparsetune.compiler.deadline import Deadline, Steps, TimeOver
from sparsetune.compiler.format import Format
from sparsetune.compiler.schedule.schedule import Schedule
from sparsetune.compiler.space.candidates import candidates
from sparsetune.tuner.asking import choose
from sparsetune.tuner.problem import Problem
from sparsetune.tuner.resolve import make_problem
from sparsetune.tuner.whole_space import whole_space

from .cases import Case, random_case
from .runner import Failure, run_given
from .scheduled_cases import is_plain, keeps_pattern

NO_DATABASE = "sqlite:////nonexistent/sparsetune.db"
THREADS = (1, 2, 3)
STEPS = 20_000
"""After which lists and draws of schedules end: spaces of many operands are large."""


def tuned_case(seed: int) -> Case:
    """Return the case of a seed with a schedule of the tuner's, and the constants that ``evaluate`` compiles in."""
    case = random_case(seed)
    with case.limited():
        given = {name: operand.given for name, operand in case.operands.items()}
        request = Request(case.text, given, case.result_format, case.given or None, None if case.semiring == ("+", "*") else case.semiring)
        problem = request.problem
        schedule = request.schedule(Random(f"tuned {seed}"))
    plain = is_plain(case)
    kept = schedule if all(keeps_pattern(case, plain, str(directive)) for directive in schedule.directives) else Schedule()
    threads = THREADS if "cpu_thread" in str(kept) else (1,)
    manner = replace(case.manner, special=case.manner.special and not plain)
    return replace(case, schedule=str(kept), constants=dict(problem.constants), threads=threads, manner=manner)


@dataclass(frozen=True)
class Request:
    """What ``evaluate`` and ``tune`` are asked."""

    expression: str
    operands: Mapping[str, Any]
    output_format: Format
    shape: Mapping[str, int] | None
    semiring: tuple[str, str] | None

    @cached_property
    def problem(self) -> Problem:
        return make_problem(self.expression, self.operands, self.output_format, "cpu", 2, shape=self.shape, semiring=self.semiring)

    def schedule(self, rng: Random) -> Schedule:
        """Return what the static model chooses, a candidate with drawn numbers, or a schedule of the whole space."""
        problem, draw = self.problem, rng.random()
        if draw < 0.2:
            return choose(
                self.expression, self.operands, self.output_format, threads=2, database=NO_DATABASE, semiring=self.semiring,
                shape=self.shape,
            )  # fmt: skip
        if draw < 0.7:
            found = candidates(problem.assignment, problem.formats, problem.constants, 2, _counted(), semiring=problem.semiring)
            listed = rng.choice(found)
            return listed.template.fill({hole.name: rng.choice(hole.choices) for hole in listed.template.holes})
        with suppress(TimeOver):
            return next(iter(whole_space(problem, _counted()).filtered().drawn(1, rng.randrange(2**32))), Schedule())
        return Schedule()


def _counted() -> Deadline:
    """Return a deadline after so many steps, so that a seed always gives the same schedule."""
    return Deadline(STEPS, Steps(1.0, slack=math.inf))


def run_tuned(seeds: Sequence[int], flags: Sequence[str]) -> list[Failure]:
    return run_given([tuned_case(seed) for seed in seeds], flags)


def facts(seeds: Iterable[int]) -> list[str]:
    """Return lines on the schedules of some seeds."""
    found = [Schedule(tuned_case(seed).schedule).directives for seed in seeds]
    kinds = Counter(type(directive).keyword for schedule in found for directive in schedule)
    distinct = len({str(schedule) for schedule in found})
    return [
        f"{len(found)} schedules, {distinct} of them distinct; {sum(not schedule for schedule in found)} are empty",
        f"directives: {', '.join(f'{name} {count}' for name, count in kinds.most_common())}",
    ]
