"""Who plays in the finals of a campaign, and who is chosen: by finals, or by trials where these have no verdict."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from sparsetune.compiler.deadline import TimeOver
from sparsetune.compiler.errors import TuningError
from sparsetune.tuner import decision, session
from sparsetune.tuner.database import open_database
from sparsetune.tuner.lookup import NOTHING, Match, lookup_problem
from sparsetune.tuner.measure.company import Company
from sparsetune.tuner.measure.finals import Burst, Comparison, Verdict, play
from sparsetune.tuner.measure.outcomes import Measured
from sparsetune.tuner.measure.policy import Policy
from sparsetune.tuner.measure.runner import Runner
from sparsetune.tuner.measure.sampling import Sample
from sparsetune.tuner.records import Status
from sparsetune.tuner.session import check_schedules
from sparsetune.tuner.trials import Trial
from tuner_campaigns import SETTINGS, campaign, spmv


def test_a_long_default_that_is_hopeless_is_not_raced(database: Path) -> None:
    policy = replace(SETTINGS.policy, long_seconds=0.003)
    result = campaign(database, codes=(1, 2), policy=policy)
    assert str(result.best) == "unroll(j, 2)"
    with open_database(database) as store:
        finals = {found.schedule: found for found in store.measurements(role="final")}
    assert len(finals[""].samples) == 1
    assert len(finals["unroll(i1, 2)"].samples) == policy.final_rounds


def no_time(*_given: object, **_named: object) -> None:
    """As where the time is over before a round has ended, or a process that was stopped for minutes is taken for one that hangs."""


def only_disturbed(*given: Any, **named: Any) -> Verdict:
    verdict = play(*given, **named)
    assert verdict is not None
    return replace(verdict, winner="", against_default=Comparison(1.0, 1.0, 1.0), disturbed=True)


@pytest.mark.parametrize("finals", [no_time, only_disturbed])
def test_finals_without_a_verdict_of_their_own_leave_the_decision_to_the_trials(
    database: Path, monkeypatch: pytest.MonkeyPatch, finals: Callable[..., Verdict | None]
) -> None:
    monkeypatch.setattr("sparsetune.tuner.decision.play", finals)
    result = campaign(database)
    fastest = min(result.measured, key=lambda trial: trial.seconds or math.inf)
    assert str(result.best) == fastest.schedule != ""
    assert result.best_time == fastest.seconds
    assert 1 < result.speedup_low <= result.speedup <= result.speedup_high


def test_what_is_far_faster_needs_no_finals(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time was over before them, and one slow sample of five is as long as the default's fastest: the default was chosen."""
    monkeypatch.setattr("sparsetune.tuner.decision.play", no_time)
    monkeypatch.setattr("sparsetune.tuner.decision._compared", lambda *_trials: Comparison(4.0, 0.9, 5.0))
    assert str(campaign(database).best) != ""
    monkeypatch.setattr("sparsetune.tuner.decision._FAR", 10.0)
    assert str(campaign(database.with_name("other.sqlite")).best) == ""


def test_disturbed_finals_decide_where_the_trials_leave_it_open(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One slow sample of five made a schedule that is twice as fast no faster for sure, and the default was chosen."""

    def disturbed(*given: Any, **named: Any) -> Verdict:
        verdict = play(*given, **named)
        assert verdict is not None
        return replace(verdict, disturbed=True)

    monkeypatch.setattr("sparsetune.tuner.decision.play", disturbed)
    monkeypatch.setattr("sparsetune.tuner.decision._compared", lambda *_trials: Comparison(4.0, 0.9, 5.0))
    result = campaign(database)
    assert str(result.best) != ""
    assert result.speedup > result.speedup_low > 1


@pytest.mark.parametrize(("end", "best"), [(0.030, "unroll(j, 8)"), (0.012, "unroll(j, 2)")])
def test_rounds_that_were_played_before_the_time_was_over_decide(
    database: Path, monkeypatch: pytest.MonkeyPatch, end: float, best: str
) -> None:
    """They were thrown away. On the simulated clock two rounds fit into 30 ms, and less than one into 12; trials say otherwise."""
    now = 0.0

    def burst(_runner: object, schedule: str, *_given: float) -> tuple[tuple[float, ...], Burst]:
        nonlocal now
        seconds = 0.002 if schedule == "unroll(j, 8)" else 0.004
        now += seconds
        if now > end:
            raise TimeOver
        return tuple(Sample(seconds, Company(seconds)).as_row()), Burst(seconds)

    monkeypatch.setattr(Runner, "burst", burst)
    result = campaign(database, policy=replace(SETTINGS.policy, final_margin=100.0))
    assert str(result.best) == best


@pytest.mark.parametrize("finals", [no_time, only_disturbed])
def test_what_undisturbed_trials_confirm_wins_where_company_left_no_finals(
    database: Path, monkeypatch: pytest.MonkeyPatch, finals: Callable[..., Verdict | None]
) -> None:
    """What was lucky in company led, its interval said nothing, and the default was chosen."""
    times = {"": (3.0, 2.9, 3.1), "unroll(j, 1)": (2.0, 1.95, 2.1), "unroll(j, 2)": (1.8, 0.9, 3.6)}

    def measure(_runner: object, schedule: str, _rival: object = None) -> Measured:
        seconds, low, high = times.get(schedule, (4.0, 3.9, 4.1))
        row = tuple(Sample(seconds, Company(seconds)).as_row())
        return Measured(Status.OK, seconds, low, high, (row,), disturbed=schedule == "unroll(j, 2)")

    monkeypatch.setattr(Runner, "measure", measure)
    monkeypatch.setattr("sparsetune.tuner.decision.play", finals)
    result = campaign(database)
    assert str(result.best) == "unroll(j, 1)"
    assert (result.speedup, result.speedup_low) == pytest.approx((3.0 / 2.0, 2.9 / 2.1))


def entered(database: Path, monkeypatch: pytest.MonkeyPatch, **options: Any) -> list[str]:
    """Return who plays in the finals of a campaign."""
    found: list[str] = []

    def enter(names: Sequence[str], *given: Any, **named: Any) -> Verdict | None:
        found.extend(names)
        return play(names, *given, **named)

    monkeypatch.setattr("sparsetune.tuner.decision.play", enter)
    campaign(database, policy=replace(SETTINGS.policy, **options))
    return found


@pytest.mark.parametrize("final_seconds", [8.0, 1e-6])
def test_what_is_used_without_tuning_is_tried_and_plays_in_the_finals(
    database: Path, monkeypatch: pytest.MonkeyPatch, final_seconds: float
) -> None:
    """It is far behind the best trial, and nobody else is let in: a campaign has to know that it decides for nothing slower."""
    problem = spmv()
    (slower,) = check_schedules(problem, ["unroll(j, 1)"])
    (best,) = check_schedules(problem, ["unroll(j, 2)"])
    monkeypatch.setattr(session, "_untuned", lambda problem: slower)
    assert set(entered(database, monkeypatch, final_seconds=final_seconds)) == {"", best, slower}
    with open_database(database) as store:
        assert [record.origin for record in store.measurements(schedule=slower, role="trial")] == ["untuned"]


def test_what_is_used_without_tuning_is_what_evaluate_would_take(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = spmv(3000, 0.5)
    expected = problem.to_canonical(lookup_problem(problem, NOTHING).schedule)
    assert session._untuned(problem) == expected != ""

    def nothing_within(*_given: object) -> Match:
        raise TuningError("no schedule keeps the bound")

    monkeypatch.setattr(session, "lookup_problem", nothing_within)
    assert session._untuned(problem) == ""


def test_a_default_that_is_not_raced_takes_no_time_from_the_others(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    most = 6 * 6 * (0.001 + 0.002 + 0.003) + 0.01
    found = entered(database, monkeypatch, final_margin=100.0, final_seconds=most, long_seconds=0.003)
    assert len(found) == 4


def test_as_many_finalists_as_there_is_time_for(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (entered(database, monkeypatch, final_margin=100.0, final_seconds=seconds) for seconds in (8.0, 1e-6))
    assert len(first) > len(second) == 2


def trials_of(**seconds: float) -> dict[str, Trial]:
    """Return trials that took so many seconds, those called "lucky" in company."""
    named = {name: SimpleNamespace(canonical=name, seconds=one, disturbed=name == "lucky") for name, one in seconds.items()}
    return {name: cast(Trial, one) for name, one in named.items()}


def test_calls_around_tiny_kernels_count_where_finalists_are_chosen() -> None:
    """Six rounds of five finalists of a microsecond took 2.7 s of a budget of three: calls from Python take four times as long."""
    left = decision._in_time(trials_of(d=1e-6, a=8e-7, b=9e-7, c=9e-7), None, False, Policy(), 0.75, "d")
    assert list(left) == ["d", "a"]
    assert len(decision._in_time(trials_of(d=1e-4, a=1e-4, b=1e-4, c=1e-4), None, False, Policy(), 0.75, "d")) == 4


def test_the_fastest_undisturbed_trial_plays_in_the_finals() -> None:
    """What was lucky in company took its place where there was little time."""
    left = decision._in_time(trials_of(d=3e-3, lucky=1.8e-3, sure=2e-3, other=2.1e-3), None, False, Policy(), 1e-6, "d")
    assert list(left) == ["d", "lucky", "sure"]
