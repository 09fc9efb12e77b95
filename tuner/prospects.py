"""What can be expected of the schedules that could be used for an input, from campaigns on inputs near it and from the static model.

A lookup imports this module only where an input near its own is known.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from ..compiler.frozen import frozen
from ..compiler.schedule.schedule import Schedule
from .environment import code_version
from .legality import usable
from .match import Match
from .model import Choice
from .problem import Problem
from .records import Decision, Measurement, Status

LEAST_GAIN = 1.03
"""A schedule must be expected to be this many times as fast as the default to be preferred to it on similar inputs."""

DOUBT = 0.12
"""By how much the log of an expected gain may be off for an input at distance 1."""

MODEL_TRUST, MODEL_DOUBT, SLIGHT_DOUBT = 0.7, 0.3, 0.05
"""Which part of the log gain that the static model expects is believed, and by how much it may be off: less where no loop changes."""


class Evidence(Protocol):
    """A source of records: a database, or part of one."""

    def decisions(self, **filters: Any) -> Iterable[Decision]:
        """Return the decisions that match all filters (``database.sql.FILTERS``)."""
        ...

    def measurements(self, **filters: Any) -> Iterable[Measurement]:
        """Return the measurements that match all filters (``database.sql.FILTERS``)."""
        ...


@frozen
class Prospect:
    """A schedule that could be used, with the log of its expected speed-up over the default, and the error that this may have."""

    match: Match
    gain: float
    doubt: float

    @property
    def least(self) -> float:
        return self.gain - self.doubt


def most_promising(
    problem: Problem, store: Evidence, near: list[tuple[float, Decision]], strange: float, choice: Choice | None, note: str
) -> Match:
    """Return what is expected to gain most, doubts taken off: a winner on near inputs, the model's choice, or the default.

    Args:
        problem: gives the input.
        store: where measurements on near inputs are.
        near: at least one known input with its distance, the nearest first.
        strange: by how much more all of these count as distant, as what other machines measured does.
        choice: of the model; None where it has none, or was not asked.
        note: on that choice.
    """
    found = list(_similar(problem, store, near, strange))
    chosen = None if choice is None else foretold(choice, note)
    expected = 0.0  # of the model's choice, where no campaign has measured it
    if chosen is not None and chosen.match.schedule:
        measured = _expected_gain(store, near, problem.to_canonical(chosen.match.schedule))
        expected = weighed(chosen, *near[0], strange) if measured is None else 0.0
        found.append(chosen if measured is None else Prospect(chosen.match, measured, _doubt(near[0][0], strange)))
    best = max(found, key=lambda one: one.least, default=None)
    if best is not None and best.least > 0 and best.gain >= math.log(LEAST_GAIN):
        return best.match
    if chosen is not None and expected >= math.log(LEAST_GAIN):
        return chosen.match
    away, decision = near[0]
    return Match(Schedule(), "similar", decision.default_seconds, away, _shipped_note(strange, decision))


def foretold(choice: Choice, note: str) -> Prospect:
    """Return what the model's choice can be expected to gain where nothing was measured."""
    doubt = SLIGHT_DOUBT if choice.is_slight else MODEL_DOUBT
    return Prospect(Match(choice.schedule, "model", note=note), MODEL_TRUST * math.log(choice.gain), doubt)


def weighed(chosen: Prospect, away: float, decision: Decision, strange: float) -> float:
    """Return the log gain to expect of the model's choice beside a campaign that did not measure it: what the model foretells and what the
    campaign's winner gained, each the less the less sure it is."""
    low, high = (math.log(decision.speedup_low), math.log(decision.speedup_high)) if decision.schedule else (0.0, 0.0)
    measured, spread = (low + high) / 2, (high - low) / 2 + _doubt(away, strange)
    odds = (spread / chosen.doubt) ** 2  # of the forecast, by squares of errors
    return measured + odds / (1 + odds) * (chosen.gain - measured)


def _similar(problem: Problem, store: Evidence, near: list[tuple[float, Decision]], strange: float) -> Iterator[Prospect]:
    """Yield the winners on near inputs that can be used."""
    for text in dict.fromkeys(decision.schedule for _, decision in near):
        gain = _expected_gain(store, near, text) if text else None
        if gain is not None and gain >= math.log(LEAST_GAIN) and (schedule := usable(problem, text)) is not None:
            away, decision = next(pair for pair in near if pair[1].schedule == text)
            match = Match(schedule, "similar", decision.seconds, away, _shipped_note(strange, decision))
            yield Prospect(match, gain, _doubt(away, strange))


def _doubt(away: float, strange: float) -> float:
    return DOUBT * (away + strange)


def _shipped_note(strange: float, decision: Decision) -> str:
    """Return the note on evidence that ships with the package: where it was tuned, and by which version, if by another one."""
    if not strange:
        return ""
    where = decision.environment.get("processor", "another machine")
    version = "" if decision.code == code_version() else f" by version {decision.code or 'unknown'}"
    return f"tuned on {where}{version}, as published with the package"


def _expected_gain(store: Evidence, near: list[tuple[float, Decision]], schedule: str) -> float | None:
    """Return the log speed-up over the default that a schedule had on near inputs, weighted by nearness; None where it never ran."""
    total = weights = 0.0
    for away, decision in near:
        if (gain := _measured_gain(store, decision, schedule)) is not None:
            weight = 1.0 / (0.1 + away) ** 2
            total += weight * gain
            weights += weight
    return total / weights if weights else None


def _measured_gain(store: Evidence, decision: Decision, schedule: str) -> float | None:
    """Return the log speed-up of a schedule on a known input: cautiously where it won, from single trials where it did not."""
    if decision.schedule == schedule:
        return math.log(decision.speedup_low) if schedule else 0.0
    filters = {"workload": decision.workload.key, "input": decision.input.key, "schedule": schedule, "status": Status.OK.value}
    times = [found.seconds for found in store.measurements(**filters) if found.seconds and found.role != "night"]
    return math.log(decision.default_seconds / min(times)) if times else None
