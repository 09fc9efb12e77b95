"""The schedule that is the fastest once its operands are converted, where converting them in every call costs more than it gains.

``best`` is the fastest of calls that stand alone, each of which converts. A bound kernel converts once, so for one that is called often
another schedule may be the best: which, how much faster it is, and after how many calls it has paid.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields
from typing import Any, Self

from ..compiler.deadline import TimeOver
from ..compiler.frozen import frozen
from ..compiler.schedule.schedule import Schedule
from .measure.finals import Burst, compare, play
from .measure.order_statistics import median
from .measure.policy import Policy
from .measure.runner import Runner
from .payoff import calls_to_pay, conversion_seconds
from .trials import Trial, Trials

CONVERTED = "converted"
"""Key of a decision's environment under which it is stored."""

_RACED = 3  # schedules at most that are raced with the winner
_ROUGHLY = 1.25  # a trial of a few runs may be wrong by this factor; one that other programs disturbed, by ``hopeless``


@frozen
class Converted:
    """A schedule for a kernel that is bound once and called often.

    Attributes:
        schedule: in the user's names in results, in canonical ones in records.
        time: seconds of a call that converts nothing.
        conversion_time: seconds that converting the operands takes.
        speedup, low, high: how many times as fast as the best schedule a call is then, whose conversions are done too; 95% interval.
        pays_after: calls after which the conversion has paid for itself, beside the best schedule.
    """

    schedule: Schedule
    time: float
    conversion_time: float
    speedup: float
    low: float
    high: float
    pays_after: int

    @classmethod
    def of(cls, environment: Mapping[str, Any]) -> Self | None:
        """Return what a decision's environment holds; None where it holds none, or not what it should."""
        found = environment.get(CONVERTED)
        with suppress(KeyError, TypeError, ValueError):
            if isinstance(found, Mapping):
                numbers = {name: float(found[name]) for name in ("time", "conversion_time", "speedup", "low", "high")}
                return cls(schedule=Schedule(found["schedule"]), pays_after=int(found["pays_after"]), **numbers)
        return None

    def __str__(self) -> str:
        """Return what it gains, in one line."""
        times = f"{self.speedup:.2f} times as fast ({self.low:.2f} to {self.high:.2f}), pays after {self.pays_after} calls"
        return f"once operands are converted, {self.schedule} is {times}"

    def as_dict(self) -> dict[str, Any]:
        """Return what a decision's environment holds."""
        return {field.name: getattr(self, field.name) for field in fields(self)} | {"schedule": str(self.schedule)}


def once_converted(trials: Trials, runner: Runner, policy: Policy, winner: str, seconds: float) -> Converted | None:
    """Race the winner with the trials that would be the fastest without their conversions, for at most so many seconds.

    Returns:
        The fastest, with its schedule in canonical names; None where none is surely faster than the winner.
    """
    chosen = {trial.canonical: trial for trial in _rivals(trials, trials[winner], policy)}
    if not chosen:
        return None
    chosen[winner] = trials[winner]

    def run(schedule: str) -> Burst | None:
        found = runner.burst(chosen[schedule].schedule, policy.burst_seconds, _once(trials[winner]), converted=True)
        return None if found is None else found[1]

    verdict = None
    with suppress(TimeOver):
        verdict = play(list(chosen), run, winner, policy.final_rounds, seconds=min(policy.final_seconds, seconds))
    if verdict is None or verdict.winner == winner:
        return None
    times, fastest = verdict.times, chosen[verdict.winner]
    against, time = compare(times[winner], times[verdict.winner]), median(times[verdict.winner])
    conversion = min(fastest.conversion, conversion_seconds(runner.problem, Schedule(fastest.schedule)))  # the first one may load helpers
    calls = calls_to_pay(conversion - trials[winner].conversion, median(times[winner]) - time)
    if calls is None:
        return None
    return Converted(Schedule(fastest.canonical), time, conversion, against.ratio, against.low, against.high, calls)


def _rivals(trials: Trials, winner: Trial, policy: Policy) -> list[Trial]:
    """Return the few trials that convert and may be faster than the winner without that, fastest first."""

    def may_win(trial: Trial) -> bool:
        margin = policy.hopeless if trial.disturbed or winner.disturbed else _ROUGHLY
        return trial.canonical != winner.canonical and _once(trial) <= margin * _once(winner)

    converting = [trial for trial in trials if trial.seconds is not None and trial.same_as is None and trial.conversion > 0]
    return sorted(filter(may_win, converting), key=_once)[:_RACED]


def _once(trial: Trial) -> float:
    """Return the seconds of a call once operands are converted."""
    return math.inf if trial.once_converted is None else trial.once_converted
