"""A contest of the report on forests: which contestants run, which of them only once, and the times of those that run in turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import click

from ...compiler.errors import SparsetuneError
from ...compiler.schedule.apply import apply_schedule
from ...compiler.schedule.schedule import Schedule
from ...compiler.space.forests.choice import MOST_ELEMENTS
from ..costs import operations
from ..limits import workspace_elements
from ..measure.sampling import least_of
from ..problem import Problem
from .forest_cases import Case
from .forests_page import Point
from .one_memory import OneMemory
from .race import Pace, race

HOPELESS, QUICK = 4.0, 0.5
"""Contestants of more than so many times the least time of those that are not choices of ours are timed once and not raced; those below so
many seconds are first timed again."""

ENDLESS = 60.0
"""Contestants that are expected to take more than so many times as long as the cheapest do not run at all."""

ALWAYS = ("chosen", "by sizes", "of these")
"""The choices of ours: contestants that run and are raced however slow they are."""


def contest(part: str, case: Case, schedules: Mapping[str, Schedule], problem: Problem, others: Mapping[str, Callable[[], Any]],
            pace: Pace) -> list[Point]:  # fmt: skip
    """Run schedules and other functions in turn; hopeless ones run once. Schedules that convert operands do so in every call. Contestants
    of one schedule run as one, and have one time."""
    runs, memory, texts = dict(others), OneMemory(problem), dict[str, str]()
    for who, schedule in hopeful(case, problem, schedules).items():
        try:
            text = str(schedule)
            if text not in runs:
                runs[text] = memory.call(schedule)
            texts[who] = text
        except SparsetuneError as error:
            click.echo(f"{case.name}: {who} is left out: {error}", err=True)
    texts |= {who: who for who in others}
    seconds = {text: _once(run) for text, run in runs.items()}
    near = HOPELESS * min((seconds[text] for who, text in texts.items() if not _is_choice(who)), default=0.0)
    kept = {text for who, text in texts.items() if seconds[text] <= near or who == "default" or _is_choice(who)}
    seconds |= {text: series.median for text, series in race({text: runs[text] for text in runs if text in kept}, pace).items()}
    return [Point(part, case.name, who, seconds[text], 0, 0, str(schedules.get(who, ""))) for who, text in texts.items()]


def hopeful(case: Case, problem: Problem, schedules: Mapping[str, Schedule]) -> dict[str, Schedule]:
    """Return the schedules that can run: without those that take far too long, or far too much memory."""
    default, costs = problem.concretized(), expected(problem, schedules)
    most, kept = ENDLESS * min(costs.values()), dict[str, Schedule]()
    for who, schedule in schedules.items():
        program = apply_schedule(default.program, schedule, default.formats, problem.constants)
        if _is_choice(who) or (costs[who] <= most and workspace_elements(program, problem) <= MOST_ELEMENTS):
            kept[who] = schedule
        else:
            click.echo(f"{case.name}: {who} is left out, at {costs[who] / min(costs.values()):.0f} times the least operations", err=True)
    return kept


def expected(problem: Problem, schedules: Mapping[str, Schedule]) -> dict[str, float]:
    """Return the operations that the static model expects of schedules."""
    default = problem.concretized()
    programs = {who: apply_schedule(default.program, schedule, default.formats, problem.constants) for who, schedule in schedules.items()}
    return {who: operations(problem, program, default.sources) for who, program in programs.items()}


def _is_choice(who: str) -> bool:
    return who.partition(" (")[0] in ALWAYS


def _once(run: Callable[[], Any]) -> float:
    """Return the seconds of a run, of a short one with warm caches."""
    seconds = least_of(run, 1, 1)
    return seconds if seconds >= QUICK else least_of(run, 1, 2)
