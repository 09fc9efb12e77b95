"""The end of a campaign: the finals between the fastest trials and the default schedule, and the decision that is recorded."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ..compiler.schedule.schedule import Schedule
from .account import FIELD, account_of
from .beginning import StandIn
from .campaign import DEFAULT, Campaign
from .converted import CONVERTED, Converted
from .environment import code_version
from .kernels import default_keeps_bound
from .measure.finals import MIN_ROUNDS, Burst, Comparison, Verdict, play
from .measure.order_statistics import median, median_interval_ranks
from .measure.policy import Policy
from .measure.runner import Runner
from .measure.sampling import burst_size
from .model import nothing_within
from .records import STOPPED, Decision, Status
from .trials import Trial, Trials

Samples = Mapping[str, Sequence[tuple[float, ...]]]
"""The fastest sample of every round of the finals, by schedule."""

_FAR = 1.25  # a time of so many times the best is far longer
_BESIDE = 4e-6  # seconds of the call from Python, which a run takes besides its kernel


def played(
    trials: Trials, runner: Runner, policy: Policy, seconds: float, untuned: str = DEFAULT, stand_in: StandIn | None = None
) -> tuple[Verdict, Samples]:
    """Measure in turn the fastest trials, the default (or its stand-in) and the schedule used before tuning, as many as there is time for.

    If the time is over before a round has ended, or the default fails now, the times of trials decide.
    """
    seconds = min(policy.final_seconds, seconds)
    base = DEFAULT if stand_in is None else stand_in.canonical
    is_eligible = stand_in is not None or default_keeps_bound(runner.problem)
    chosen = _finalists(trials, policy, untuned, base)
    if not is_eligible and len(chosen) == 1:
        others = [trial for trial in trials if trial.seconds is not None and trial.canonical != base]
        if not others:
            raise nothing_within(runner.problem)
        chosen |= {trial.canonical: trial for trial in sorted(others, key=_expected)[:1]}
    default, others = chosen[base], [trial for name, trial in chosen.items() if name != base]
    once = {schedule: [(_expected(trial),)] for schedule, trial in chosen.items()}
    if not others:
        return Verdict.uncontested(base, _expected(default)), once
    beaten = _is_beaten(chosen, policy, base)
    chosen = _in_time(chosen, trials.measured(untuned), beaten, policy, seconds, base)
    samples: dict[str, list[tuple[float, ...]]] = {schedule: [] for schedule in chosen}

    def run(schedule: str) -> Burst | None:
        if beaten and schedule == base:  # a hopeless one is timed once
            samples[base] = once[base]
            return Burst(_expected(default))
        found = runner.burst(chosen[schedule].schedule, policy.burst_seconds, _expected(chosen[schedule]))
        if found is None:
            return None
        row, burst = found
        samples[schedule].append(row)
        return burst

    verdict = play(
        list(chosen), run, base, policy.final_rounds, complexity=_complexity, seconds=seconds, is_eligible=is_eligible,
        move=runner.move, places=policy.final_places,
    )  # fmt: skip
    best = _surest(default, others)
    if verdict is None:  # no time is left, or the default failed in the finals: it hung, or memory ran out
        return _by_trials(default, best, is_eligible), once
    if verdict.disturbed and not default.disturbed and not best.disturbed:
        told = _by_trials(default, best, is_eligible)  # the trials, at least, were not disturbed
        is_sure = told.against_default.low > 1 and best is min(others, key=_expected)
        if is_sure or verdict.winner == base:  # a trial's few samples may leave open what many rounds decide
            return told, once
    return verdict, samples


def _finalists(trials: Trials, policy: Policy, untuned: str, base: str) -> dict[str, Trial]:
    """Return the default, the fastest, and the schedule used before tuning, so that tuning never decides for a slower one than that."""
    default, rival = trials[base], trials.measured(untuned)
    found = [default, *trials.fastest(policy.finalists, policy.final_margin)]
    best = min(found, key=_expected)
    if rival is not None and _expected(rival) <= policy.hopeless * _expected(best):
        found.append(rival)
    return {trial.canonical: trial for trial in found}


def _is_beaten(chosen: Mapping[str, Trial], policy: Policy, base: str) -> bool:
    """Whether the default is so long and so much slower than the best that it is not raced."""
    default = _expected(chosen[base])
    return default >= policy.long_seconds and default > policy.hopeless * min(map(_expected, chosen.values()))


def _in_time(
    chosen: Mapping[str, Trial], untuned: Trial | None, beaten: bool, policy: Policy, seconds: float, base: str
) -> dict[str, Trial]:
    """Drop the slowest finalists until there is time for enough rounds. The default, the fastest, the fastest undisturbed one and the
    schedule used before tuning stay."""
    left = dict(chosen)
    others = sorted((trial for name, trial in left.items() if name != base), key=_expected)
    leaders = [*others[:1], *[trial for trial in others if not trial.disturbed][:1]]
    kept = {base, *(trial.canonical for trial in leaders), *([] if untuned is None else [untuned.canonical])}

    def needed() -> float:
        return sum(_round_seconds(policy, _expected(trial)) for name, trial in left.items() if name != base or not beaten)

    while MIN_ROUNDS * needed() > seconds and (rest := [trial for name, trial in left.items() if name not in kept]):
        del left[max(rest, key=_expected).canonical]
    return left


def _expected(trial: Trial) -> float:
    """Return the time of a trial; infinity if it failed."""
    return trial.seconds or math.inf


def _surest(default: Trial, others: Sequence[Trial]) -> Trial:
    """Return the fastest that is surely faster than the default by undisturbed trials of both; if there is none, the fastest.

    A time that was taken in company may be too short, and its interval is wide: that trial would lead, and decide nothing.
    """
    sure = [trial for trial in others if not (trial.disturbed or default.disturbed) and _compared(default, trial).low > 1]
    return min(sure or others, key=_expected)


def _by_trials(default: Trial, best: Trial, is_eligible: bool) -> Verdict:
    """Return the verdict by the times of trials: the default where its interval meets that of the best, unless it took far longer
    (``_FAR``), of which one slow sample among few leaves no doubt."""
    assert default.seconds is not None
    assert best.seconds is not None
    found = _compared(default, best)
    if is_eligible and found.low <= 1 and default.seconds <= _FAR * best.seconds:
        return Verdict.uncontested(default.canonical, default.seconds)
    return Verdict(best.canonical, {default.canonical: (default.seconds,), best.canonical: (best.seconds,)}, found)


def _round_seconds(policy: Policy, expected: float) -> float:
    """Return how long a finalist runs each round: once to warm up, then a burst."""
    batch, batches = burst_size(policy.burst_seconds, expected, policy.is_cold)
    return (batch * batches + 1) * (expected + _BESIDE)


def _compared(slower: Trial, faster: Trial) -> Comparison:
    """Return how many times faster one trial was than another; the interval holds all ratios that their intervals allow."""
    assert slower.seconds is not None
    assert faster.seconds is not None
    low = (slower.low or slower.seconds) / (faster.high or faster.seconds)
    return Comparison(slower.seconds / faster.seconds, low, (slower.high or slower.seconds) / (faster.low or faster.seconds))


def _complexity(schedule: str) -> int:
    return len(Schedule(schedule))


def decided(
    campaign: Campaign, trials: Trials, stages: list[dict[str, Any]], verdict: Verdict, samples: Samples, policy: Policy,
    stand_in: StandIn | None = None, converted: Converted | None = None,
) -> Decision:  # fmt: skip
    """Record the finals and the decision. For a default schedule that was ended, its time until then is recorded, a lower bound."""
    rules = policy.as_dict() | campaign.problem.limits.given
    for schedule, times in verdict.times.items():
        ordered, (low, high) = sorted(times), median_interval_ranks(len(times))
        final = {"seconds": median(times), "low": ordered[low], "high": ordered[high], "samples": tuple(samples[schedule])}
        campaign.record("final", schedule, Status.OK, policy=rules, **final)
    problem, winner, seconds = campaign.problem, trials[verdict.winner], median(verdict.times[verdict.winner])
    account = account_of(problem, stages, problem.from_canonical(verdict.winner))
    over, more = verdict.against_default, {} if converted is None else {CONVERTED: converted.as_dict()}
    default_seconds = median(verdict.times[DEFAULT]) if stand_in is None else max(stand_in.stopped, seconds)
    if stand_in is not None:
        over, more = Comparison(*3 * [default_seconds / seconds]), more | {STOPPED: default_seconds}
    decision = Decision(
        workload=problem.workload,
        input=problem.input,
        campaign=campaign.key,
        schedule=verdict.winner,
        seconds=seconds,
        default_seconds=default_seconds,
        speedup_low=over.low,
        speedup_high=over.high,
        ties=verdict.ties,
        policy=rules,
        compiler=winner.compiler,
        flags=winner.flags,
        environment=campaign.environment | {FIELD: account.as_dict()} | more,
        code=code_version(),
    )
    campaign.store.add(decision)
    return decision
