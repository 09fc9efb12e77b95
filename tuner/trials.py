"""The trials of one campaign: every candidate is measured once, whatever proposes it, and recorded before anything else happens."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from ..compiler.errors import TuningError
from .database import Database
from .environment import code_version, describe_environment, load_per_core
from .measure.runner import Built, Measured, Rival, Runner
from .problem import Problem
from .records import Measurement, Status, digest

DEFAULT = ""
"""The text of the default schedule."""

_MOST_MESSAGE = 2000
"""Letters of what is recorded of a failure."""


@dataclass(frozen=True)
class Trial:
    """One candidate and how it ended.

    Attributes:
        number: in the order of measuring, from 0 (the default schedule).
        schedule: text in the user's names.
        canonical: the same in canonical names, equal for equal schedules.
        status: ok, illegal, compile, crash, timeout, wrong.
        seconds: of the fastest run; None unless ok.
        runs: how often it was timed; 0 where an equal program was measured before.
        same_as: number of the trial with the same generated source, whose time this is; None for most.
        build_seconds: of code generation and C compilation.
        source: digest of the generated source.
        message: why it failed, or why timing stopped.
    """

    number: int
    schedule: str
    canonical: str
    status: Status
    seconds: float | None
    runs: int
    same_as: int | None
    build_seconds: float | None
    source: str
    message: str


class Campaign:
    """What a campaign writes into the database, and what earlier runs of it have written.

    It is the same campaign as long as workload, input, seed, compilers and code are the same; running it again goes on where it was.
    """

    def __init__(self, problem: Problem, store: Database, seed: int, settings: dict[str, str]) -> None:
        self.problem = problem
        self.store = store
        self.environment = describe_environment(settings)
        compilers = self.environment["compilers"]
        self.key = digest(problem.workload.key, problem.input.key, seed, code_version(), compilers, settings)

    def recorded(self) -> Iterable[Measurement]:
        """Yield the trials of earlier runs, oldest first."""
        for measurement in self.store.measurements(campaign=self.key):
            if measurement.role != "final":
                yield measurement

    def user_text(self, canonical: str) -> str:
        """Return a schedule in the names of the expression as it was given."""
        return str(self.problem.from_canonical(canonical))

    def record(self, role: str, canonical: str, status: Status, **fields: Any) -> None:
        """Write one measurement of a schedule in canonical names; it lasts whatever happens next."""
        self.store.add(
            Measurement(
                workload=self.problem.workload,
                input=self.problem.input,
                campaign=self.key,
                role=role,
                schedule=canonical,
                status=status,
                environment=self.environment,
                load=load_per_core(),
                code=code_version(),
                **fields,
            )
        )


class Trials:
    """Measures candidates, each schedule and each generated source once; knows what earlier runs of the campaign measured.

    Schedules are texts in canonical names.
    """

    def __init__(self, campaign: Campaign) -> None:
        self._campaign = campaign
        self._by_schedule: dict[str, Trial] = {}
        self._by_source: dict[str, Trial] = {}
        for measurement in campaign.recorded():
            self._take_up(measurement)
        self.resumed = len(self._by_schedule)

    def __len__(self) -> int:
        return len(self._by_schedule)

    def __iter__(self):
        return iter(self._by_schedule.values())

    def __contains__(self, schedule: str) -> bool:
        return schedule in self._by_schedule

    @property
    def failed(self) -> int:
        return sum(trial.status is not Status.OK for trial in self)

    @property
    def best(self) -> Trial | None:
        """The fastest so far."""
        return min((trial for trial in self if trial.seconds is not None), key=_seconds, default=None)

    @property
    def default(self) -> Trial | None:
        return self._by_schedule.get(DEFAULT)

    def fastest(self, count: int, margin: float) -> list[Trial]:
        """Return up to ``count`` distinct programs within ``margin`` times the fastest, fastest first."""
        best = self.best
        assert best is not None
        distinct = [trial for trial in self if trial.seconds is not None and trial.same_as is None]
        close = [trial for trial in sorted(distinct, key=_seconds) if _seconds(trial) <= margin * _seconds(best)]
        return close[:count]

    def run(self, schedule: str, runner: Runner) -> Trial:
        """Measure a candidate, or return what is known of it."""
        known = self._by_schedule.get(schedule)
        if known is not None:
            return known
        text = self._campaign.user_text(schedule)
        built = runner.build(text, self._by_source)
        if built.status is not Status.OK:
            return self._note(schedule, built, Measured(built.status, message=built.message))
        twin = self._by_source.get(built.source)
        if twin is not None:
            return self._note(schedule, built, Measured(twin.status, twin.seconds, message=f"same code as trial {twin.number}"))
        best = self.best
        rival = None if best is None else Rival(best.schedule, _seconds(best))
        return self._note(schedule, built, runner.measure(text, rival))

    def _note(self, schedule: str, built: Built, measured: Measured) -> Trial:
        message = (measured.message or measured.stopped)[:_MOST_MESSAGE]
        self._campaign.record(
            "default" if schedule == DEFAULT else "trial",
            schedule,
            measured.status,
            seconds=measured.seconds,
            times=measured.times,
            policy=measured.policy,
            message=message,
            source=built.source,
            build_seconds=built.seconds,
        )
        return self._keep(schedule, measured.status, measured.seconds, len(measured.times), built.seconds, built.source, message)

    def _take_up(self, measurement: Measurement) -> None:
        if measurement.schedule not in self._by_schedule:
            self._keep(
                measurement.schedule,
                measurement.status,
                measurement.seconds,
                len(measurement.times),
                measurement.build_seconds,
                measurement.source,
                measurement.message,
            )

    def _keep(
        self, canonical: str, status: Status, seconds: float | None, runs: int, build_seconds: float | None, source: str, message: str
    ) -> Trial:
        twin = self._by_source.get(source) if source else None
        same_as = None if twin is None else twin.number
        text = self._campaign.user_text(canonical)
        trial = Trial(len(self), text, canonical, status, seconds, runs, same_as, build_seconds, source, message)
        self._by_schedule[canonical] = trial
        if source:
            self._by_source.setdefault(source, trial)
        return trial


def require_default(trials: Trials, runner: Runner) -> Trial:
    """Measure the default schedule, which everything is compared with.

    Raises:
        TuningError: it fails.
    """
    trial = trials.run(DEFAULT, runner)
    if trial.seconds is None:
        raise TuningError(f"the default schedule of '{runner.problem.expression}' fails ({trial.status}): {trial.message}")
    return trial


def as_rows(trials: Iterable[Trial]) -> list[dict[str, Any]]:
    """Return one row a trial, for a table."""
    return [{**asdict(trial), "status": str(trial.status)} for trial in trials]


def _seconds(trial: Trial) -> float:
    assert trial.seconds is not None
    return trial.seconds
