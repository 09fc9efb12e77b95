"""The trials of one campaign: every candidate is measured once, whatever proposes it, and recorded before anything else happens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..compiler.errors import TuningError
from ..compiler.frozen import frozen
from .campaign import DEFAULT, MOST_MESSAGE, Campaign
from .measure.helpers import Question
from .measure.outcomes import Built, Measured, Rival
from .measure.runner import Runner
from .measure.sampling import Sample
from .records import Measurement, Status


@frozen
class Trial:
    """One candidate and how it ended.

    Attributes:
        number: in the order of measuring, from 0 (the default schedule).
        schedule: text in the user's names.
        canonical: the same in canonical names, equal for equal schedules.
        status: ok, illegal, compile, crash, timeout, wrong.
        seconds: of the fastest run; None unless ok.
        low, high: seconds around it, at 95% confidence (``records.Measurement``).
        samples: how many were taken; 0 where an equal program was measured before.
        build_seconds: of code generation and C compilation.
        disturbed: whether nothing was timed without company, so that ``seconds`` come from ratios to what ran beside.
        origin: who proposed it: "default", "given" (by the user), "untuned" (what is used where nothing was tuned), "known" (of similar
            inputs), "search".
        parameters: what the search chose for the open places of a template.
        same_as: number of the trial with the same generated source, whose time this is; None for most.
        source: digest of the generated source.
        message: why it failed, or why timing stopped.
        conversion: the part of ``seconds`` that converting operands takes; a bound kernel does that once.
        once_converted: seconds of the fastest run without that part (an estimate for a disturbed trial); None where nothing ran.
    """

    number: int
    schedule: str
    canonical: str
    status: Status
    seconds: float | None
    low: float | None
    high: float | None
    samples: int
    build_seconds: float | None
    disturbed: bool
    origin: str
    parameters: Mapping[str, Any]
    same_as: int | None
    source: str
    compiler: str
    flags: str
    message: str
    conversion: float = 0.0
    once_converted: float | None = None


def _seconds(trial: Trial) -> float:
    assert trial.seconds is not None
    return trial.seconds


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

    def __getitem__(self, schedule: str) -> Trial:
        return self._by_schedule[schedule]

    def __contains__(self, schedule: str) -> bool:
        return schedule in self._by_schedule

    @property
    def distinct(self) -> int:
        """How many distinct programs there are; a schedule that generated none counts as one."""
        return sum(trial.same_as is None for trial in self)

    @property
    def failed(self) -> int:
        """How many trials ended with another status than OK."""
        return sum(trial.status is not Status.OK for trial in self)

    @property
    def best(self) -> Trial | None:
        """The fastest so far."""
        return min((trial for trial in self if trial.seconds is not None), key=_seconds, default=None)

    @property
    def default(self) -> Trial | None:
        """The trial of the default schedule; None before it was tried."""
        return self._by_schedule.get(DEFAULT)

    def measured(self, schedule: str) -> Trial | None:
        """Return the trial in which a schedule, or its code, ran; None where it was not tried, or failed."""
        found = self._by_schedule.get(schedule)
        if found is None or found.seconds is None:
            return None
        return found if found.same_as is None else self._by_source[found.source]

    def fastest(self, count: int, margin: float) -> list[Trial]:
        """Return up to ``count`` distinct programs within ``margin`` times the fastest, fastest first (``leading``)."""
        return leading((trial for trial in self if trial.seconds is not None and trial.same_as is None), count, margin)

    def run(
        self,
        schedule: str,
        runner: Runner,
        origin: str = "default",
        parameters: Mapping[str, Any] | None = None,
        rival: Rival | None = None,
        built: Built | None = None,
    ) -> Trial:
        """Measure a candidate, or return what is known of it.

        Args:
            schedule: in canonical names.
            runner: measures.
            origin: who proposes it (``Trial``).
            parameters: what the search chose for the open places of its template.
            rival: what it is timed in turn with; None: nothing was measured before.
            built: how it was built, if it was.
        """
        known = self._by_schedule.get(schedule)
        if known is not None:
            return known
        question = self.question(schedule)
        built = built or runner.build(question.schedule, question.known)
        fresh = built.status is Status.OK and built.source not in self._by_source
        measured = runner.measure(question.schedule, question.rival or rival) if fresh else None
        return self.note(schedule, built, measured, origin, parameters)

    def build(self, schedules: Sequence[str], runner: Runner) -> list[Built]:
        """Build candidates that are not known yet together, for ``run``."""
        return runner.build_together([self._campaign.user_text(schedule) for schedule in schedules], self._by_source)

    def question(self, schedule: str) -> Question:
        """Return the request that measures a candidate."""
        best = self.best
        rival = None if best is None else Rival(best.schedule, _seconds(best), best.disturbed)
        return Question(self._campaign.user_text(schedule), tuple(self._by_source), rival)

    def note(
        self, schedule: str, built: Built, measured: Measured | None, origin: str, parameters: Mapping[str, Any] | None = None
    ) -> Trial:
        """Record how a candidate ended; ``measured`` is None for one that was not built, or whose source was measured before."""
        fields: dict[str, Any] = {"origin": origin, "parameters": dict(parameters or {}), "source": built.source}
        fields |= {"build_seconds": built.seconds, "compiler": built.compiler, "flags": built.flags}
        if built.status is not Status.OK:
            return self._note(schedule, Measured(built.status, message=built.message), fields)
        twin = self._by_source.get(built.source)
        if twin is not None:
            same = Measured(twin.status, twin.seconds, twin.low, twin.high, disturbed=twin.disturbed, conversion=twin.conversion)
            return self._note(schedule, replace(same, message=f"same code as trial {twin.number}"), fields)
        assert measured is not None
        return self._note(schedule, measured, fields)

    def give_up(self, schedule: str, seconds: float) -> Trial:
        """Note that a candidate was stopped after so many seconds, so that it is not tried again in this campaign.

        Nothing is recorded: a campaign with more time may try it again.
        """
        message = f"it did not end within {seconds:.3g} s"
        problem, role = self._campaign.problem, "default" if schedule == DEFAULT else "trial"
        ended = Measurement(
            workload=problem.workload,
            input=problem.input,
            campaign=self._campaign.key,
            role=role,
            schedule=schedule,
            status=Status.TIMEOUT,
            message=message,
            origin=role,
        )
        return self._keep(ended)

    def _note(self, schedule: str, measured: Measured, fields: dict[str, Any]) -> Trial:
        """Record a trial and keep it."""
        recorded = self._campaign.record(
            "default" if schedule == DEFAULT else "trial",
            schedule,
            measured.status,
            seconds=measured.seconds,
            low=measured.low,
            high=measured.high,
            samples=measured.samples,
            disturbed=measured.disturbed,
            policy=measured.policy,
            conversion=measured.conversion,
            message=(measured.message or measured.stopped)[:MOST_MESSAGE],
            **fields,
        )
        return self._keep(recorded)

    def _take_up(self, measurement: Measurement) -> None:
        if measurement.schedule not in self._by_schedule:
            self._keep(measurement)

    def _keep(self, found: Measurement) -> Trial:
        twin = self._by_source.get(found.source) if found.source else None
        trial = Trial(
            number=len(self),
            schedule=self._campaign.user_text(found.schedule),
            canonical=found.schedule,
            status=found.status,
            seconds=found.seconds,
            low=found.low,
            high=found.high,
            samples=len(found.samples),
            build_seconds=found.build_seconds,
            disturbed=found.disturbed,
            origin=found.origin,
            parameters=found.parameters,
            same_as=None if twin is None else twin.number,
            source=found.source,
            compiler=found.compiler,
            flags=found.flags,
            message=found.message,
            conversion=found.conversion,
            once_converted=min((Sample.from_row(row).alone - found.conversion for row in found.samples), default=None),
        )
        self._by_schedule[found.schedule] = trial
        if found.source:
            self._by_source.setdefault(found.source, trial)
        return trial


def leading(measured: Iterable[Trial], count: int, margin: float) -> list[Trial]:
    """Return up to ``count`` trials within ``margin`` times the fastest, fastest first.

    Times measured only while other programs ran may be a fifth too long or too short, so the luckiest of them would lead and keep out
    trials whose times are sure. Half of the places are therefore for the fastest undisturbed trials, within the margin of their fastest.
    """
    ordered = sorted(measured, key=_seconds)
    alone = _close([trial for trial in ordered if not trial.disturbed], margin)[: count // 2]
    others = [trial for trial in _close(ordered, margin) if trial not in alone]
    return sorted([*alone, *others[: count - len(alone)]], key=_seconds)


def _close(ordered: Sequence[Trial], margin: float) -> list[Trial]:
    return [trial for trial in ordered if _seconds(trial) <= margin * _seconds(ordered[0])]


def require_default(trials: Trials, runner: Runner, rival: Rival | None = None) -> Trial:
    """Measure the default schedule, which everything is compared with, beside a rival that may be far faster.

    Raises:
        TuningError: it fails.
    """
    trial = trials.run(DEFAULT, runner, rival=rival)
    if trial.seconds is None:
        raise TuningError(f"the default schedule of '{runner.problem.expression}' fails ({trial.status}): {trial.message}")
    return trial


COLUMNS = ("number", "schedule", "status", "seconds", "low", "high", "samples", "build_seconds", "disturbed", "origin")
"""The columns of the table of trials, before one column for each parameter."""


def as_rows(trials: Iterable[Trial]) -> list[dict[str, Any]]:
    """Return one row a trial, for a table: ``COLUMNS``, then every parameter of any trial, None for trials that lack it."""
    chosen = list(trials)
    names = dict.fromkeys(name for trial in chosen for name in trial.parameters)
    return [
        {name: str(trial.status) if name == "status" else getattr(trial, name) for name in COLUMNS}
        | {name: trial.parameters.get(name) for name in names}
        for trial in chosen
    ]
