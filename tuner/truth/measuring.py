"""Measuring a truth table: points drawn from a space, each distinct program once, in turn with the best so far, as trials are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

from ...compiler.errors import TuningError
from ...compiler.native.machine import this_machine
from ...compiler.space.instances import Instances
from ...compiler.space.library import schedules_for
from ..campaign import DEFAULT, Campaign
from ..database import Database
from ..environment import code_version, commit
from ..legality import is_legal
from ..measure.runner import Runner
from ..measure.service import AHEAD
from ..measure.worker_process import Worker
from ..model import expected_cost
from ..problem import Problem
from ..prune import surviving_space
from ..records import Measurement, Status, now
from ..settings import Settings
from ..trials import Trials, require_default
from .table import TablePoint, Tell, TruthTable, write_table

_DRAWS = 20  # after so many draws for each wanted point the space counts as exhausted
_SAVED = 100  # the file is written each time so many points were added


def measure_table(
    problem: Problem,
    store: Database,
    worker: Worker,
    path: Path,
    points: int,
    settings: Settings,
    seed: int = 0,
    tell: Tell = lambda done, planned: None,
) -> TruthTable:
    """Measure the default schedule, those of the library, and points that the space of the search draws, and write the table.

    Points of distinct code count; a schedule that generates the code of another one is in the table too, with its time. Each point
    is recorded in the database as soon as it is measured: measuring again goes on where it was.

    Args:
        problem: kernel and input.
        store: the database.
        worker: measures.
        path: the file, written now and then, and at the end.
        points: how many points of distinct code, with those of the default and the library; fewer where the space has fewer.
        settings: of the trials.
        seed: of the draws.
        tell: called after each point.

    Raises:
        TuningError: the default schedule fails; ``points`` is below 1.
        DataError: the file cannot be written.
    """
    if points < 1:
        raise TuningError(f"points is {points}: a whole number from 1 on is expected")
    campaign = Campaign(problem, store, seed, {**worker.settings, "truth": "table"}, settings.policy)
    trials = Trials(campaign)
    space, stages = surviving_space(problem, settings.skip, also=settings.also, seed=seed)
    drawn = Instances(space.templates, stages)

    def table() -> TruthTable:
        return _table(campaign, seed, drawn.count())

    with Runner(problem, worker, settings.policy) as runner:
        runner.prepare()
        require_default(trials, runner)
        origins = _schedules(problem, drawn, points, seed)
        while (missing := points - trials.distinct) > 0:
            ahead = dict(islice(((schedule, origin) for origin, schedule in origins if schedule not in trials), min(AHEAD, missing)))
            if not ahead:
                break
            for schedule, built in zip(ahead, trials.build(list(ahead), runner), strict=True):
                trials.run(schedule, runner, ahead[schedule], built=built)
                tell(trials.distinct, points)
                if len(trials) % _SAVED == 0:
                    write_table(path, table())
    found = table()
    write_table(path, found)
    return found


def _schedules(problem: Problem, drawn: Instances, points: int, seed: int) -> Iterator[tuple[str, str]]:
    """Yield origins and schedules in canonical names: those of the library, then draws, or every schedule of a small space in order."""
    for _, schedule in schedules_for(problem.assignment, problem.target):
        if problem.threads > 1 and is_legal(problem, schedule):  # they are parallel; the search too tries them with several threads only
            yield "library", problem.to_canonical(schedule)
    if drawn.count() <= points:
        yield from (("space", problem.to_canonical(schedule)) for schedule in drawn)
        return
    for schedule in drawn.sample(_DRAWS * points, seed):
        yield "space", problem.to_canonical(schedule)


def _table(campaign: Campaign, seed: int, size: int) -> TruthTable:
    problem = campaign.problem
    records = {record.schedule: record for record in campaign.recorded()}
    first = {record.source: record for record in reversed(records.values()) if record.source}
    policy = next((dict(record.policy) for record in records.values() if record.policy), {})
    return TruthTable(
        expression=problem.expression,
        points=tuple(_point(campaign, record, first.get(record.source, record)) for record in records.values()),
        input=problem.name,
        formats=problem.workload.formats,
        dtype=problem.workload.dtype,
        target=problem.target,
        threads=problem.threads,
        semiring=problem.workload.semiring,
        machine=problem.workload.machine,
        processor=this_machine().model,
        commit=commit(),
        generator=code_version(),
        created=now(),
        seed=seed,
        space=size,
        policy=policy,
    )


def _point(campaign: Campaign, record: Measurement, measured: Measurement) -> TablePoint:
    """Return the point of a record, with the times of the one that has measured its code."""
    found = TablePoint(
        schedule=campaign.user_text(record.schedule),
        seconds=_seconds(record.seconds),
        status=Status(record.status),
        low=_seconds(record.low),
        high=_seconds(record.high),
        samples=tuple(tuple(_rounded(figure, 2 if place else 4) for place, figure in enumerate(sample)) for sample in measured.samples),
        disturbed=measured.disturbed,
        origin=record.origin or "space",
        source=record.source,
        build_seconds=_seconds(record.build_seconds),
        expected=_seconds(_expected(campaign.problem, record)),
    )
    return replace(found, origin="default") if record.schedule == DEFAULT else found


def _expected(problem: Problem, record: Measurement) -> float | None:
    """Return what the static model says of a schedule; None of one that is not legal."""
    if record.status == Status.ILLEGAL:
        return None
    return expected_cost(problem, problem.from_canonical(record.schedule))


def _seconds(found: float | None) -> float | None:
    """Return a time rounded to as many digits as tell two points apart."""
    return None if found is None else _rounded(found, 4)


def _rounded(figure: float, digits: int) -> float:
    return float(f"{figure:.{digits}g}")
