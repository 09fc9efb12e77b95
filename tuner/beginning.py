"""The beginning of a campaign: the default schedule, which everything is compared with, or what stands in for one that takes too long."""

from __future__ import annotations

import time

from ..compiler.deadline import TimeOver
from ..compiler.errors import TuningError
from ..compiler.frozen import frozen
from ..compiler.schedule.schedule import Schedule
from .campaign import DEFAULT
from .measure.outcomes import Rival
from .measure.runner import Runner
from .records import Status
from .trials import Trials, require_default

_LEAST_RUN = 3.0
"""Seconds that the first runs of the default schedule may take whatever the budget."""

_SHARE = 0.4
"""Share of a time budget that the default schedule may take if another schedule has made the reference result."""


@frozen
class StandIn:
    """The schedule that others are compared with if the default one did not end in time.

    Attributes:
        canonical: the schedule, in canonical names; it was measured.
        stopped: seconds after which the default one was ended.
    """

    canonical: str
    stopped: float


def begun(trials: Trials, runner: Runner, quickest: str, start: float, allowed: float, last: float) -> StandIn | None:
    """Make the reference result and measure the default schedule; return what stands in for it where that takes too long.

    Args:
        trials: of the campaign.
        runner: measures.
        quickest: the schedule that makes the reference result, checked on a sample against the definition (``Runner.prepare``).
        start: of the budget, on the monotonic clock.
        allowed: seconds of the budget.
        last: when whatever runs is ended, on the monotonic clock.

    Raises:
        TuningError: nothing ran within the budget.
    """
    runner.build(DEFAULT)  # has no time limit, nor has handing over the operands
    begin = time.monotonic()
    last = max(last, begin + _LEAST_RUN)
    try:
        rival = _prepared(runner, quickest, begin, last)
        if rival is None:
            runner.end = last
            require_default(trials, runner)
            return None
        runner.end = min(last, max(start + _SHARE * allowed, time.monotonic() + _LEAST_RUN))
        stopped = _stopped(trials, runner, rival)
        if stopped is None:
            return None
        runner.end = max(last, time.monotonic() + _LEAST_RUN + 3 * rival.seconds)
        return StandIn(_measured(trials, runner, rival), max(stopped, rival.seconds))
    except TimeOver:
        raise TuningError(f"no schedule of '{runner.problem.expression}' runs within the time budget of {allowed:g} s; give more") from None


def _stopped(trials: Trials, runner: Runner, rival: Rival) -> float | None:
    """Measure the default schedule; return the seconds after which it was ended, None where it has ended by itself.

    Raises:
        TuningError: it fails.
    """
    try:
        if trials.run(DEFAULT, runner, rival=rival).status is not Status.TIMEOUT:
            require_default(trials, runner)
            return None
        return time.monotonic() - runner.asked
    except TimeOver:
        stopped = time.monotonic() - runner.asked
        trials.give_up(DEFAULT, stopped)
        return stopped


def _prepared(runner: Runner, quickest: str, begin: float, last: float) -> Rival | None:
    """Have a schedule make the reference result; if it does not end within half of the time, have the default one make it."""
    if quickest == DEFAULT:
        runner.end = last
        return runner.prepare()
    runner.end = (begin + last) / 2
    try:
        return runner.prepare(quickest)
    except TimeOver:
        runner.end = last
        return runner.prepare()


def _measured(trials: Trials, runner: Runner, rival: Rival) -> str:
    """Measure the schedule that stands in for the default one. Raises ``TuningError``: it fails."""
    trial = trials.run(runner.problem.to_canonical(Schedule(rival.schedule)), runner, "search")
    if trial.seconds is None:
        raise TuningError(f"neither the default schedule of '{runner.problem.expression}' nor '{trial.schedule}' runs: {trial.message}")
    return trial.canonical
