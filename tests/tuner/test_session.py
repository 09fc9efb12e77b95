"""Campaigns: default first, nothing twice, failures survived, taken up after a kill, decided by finals, recorded."""

from __future__ import annotations

import math
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from sparsetune.compiler.deadline import TimeOver
from sparsetune.compiler.errors import ScheduleError, TuningError
from sparsetune.compiler.schedule.schedule import Schedule
from sparsetune.compiler.storage.construct import tensor
from sparsetune.tuner import beginning, decision, session
from sparsetune.tuner.commands.tune import as_json
from sparsetune.tuner.database import open_database
from sparsetune.tuner.database.interchange import write_json_lines
from sparsetune.tuner.lookup import NOTHING, Match, lookup_problem
from sparsetune.tuner.measure.finals import Comparison, Verdict, play
from sparsetune.tuner.measure.outcomes import Built
from sparsetune.tuner.measure.policy import Policy
from sparsetune.tuner.measure.runner import Runner
from sparsetune.tuner.measure.worker_process import Worker
from sparsetune.tuner.problem import make_problem
from sparsetune.tuner.records import SAMPLE, Status
from sparsetune.tuner.session import check_schedules, check_seed, make_budget
from sparsetune.tuner.trials import Trial
from tuner_campaigns import ALL, FAKE, GOOD, SETTINGS, campaign, spmv

CAMPAIGNS = Path(__file__).parents[1] / "tuner_campaigns.py"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "schedules.sqlite"


def test_the_fastest_wins(database: Path) -> None:
    result = campaign(database)
    assert str(result.best) == "unroll(j, 2)"
    assert result.speedup == pytest.approx(4, rel=0.02)
    assert result.default_time == pytest.approx(0.004, rel=0.01)
    assert result.failed_trials == 0


def test_default_comes_first(database: Path) -> None:
    assert campaign(database).measured[0].schedule == ""


def test_given_schedules_come_next(database: Path) -> None:
    problem = spmv()
    given = check_schedules(problem, ["unroll(j, 7)", Schedule("unroll(j, 1)"), "unroll(j, 7)", ""])
    assert (given[2], len(given)) == ("", 3)
    result = campaign(database, problem, given=given)
    assert [trial.canonical for trial in result.measured][:3] == ["", *given[:2]]
    assert campaign(database, problem, given=given).measured == result.measured


@pytest.mark.parametrize(
    ("schedules", "expected"),
    [
        (["", "unroll(q, 2)"], "schedule 2 of those given: directive 1, unroll(q, 2): there is no loop q"),
        (["unrol(j, 2)"], "did you mean unroll"),
        ("unroll(j, 2)", "put it in brackets"),
        (3, "put it in brackets"),
    ],
)
def test_given_schedules_are_checked(schedules: object, expected: str) -> None:
    with pytest.raises(ScheduleError, match=re.escape(expected)):
        check_schedules(spmv(), schedules)  # type: ignore[arg-type]  # the point of the test


def test_failures_are_counted_and_survived(database: Path) -> None:
    result = campaign(database, codes=ALL)
    statuses = {trial.schedule: trial.status for trial in result.measured}
    assert statuses["unroll(j, 3)"] is Status.CRASH
    assert statuses["unroll(j, 4)"] is Status.WRONG
    assert statuses["unroll(j, 5)"] is Status.ILLEGAL
    assert statuses["unroll(j, 6)"] is Status.COMPILE
    assert result.failed_trials == 4
    assert str(result.best) == "unroll(j, 2)"
    assert list(result.trials["status"]).count("ok") == len(result.measured) - 4


def test_equal_code_is_measured_once(database: Path) -> None:
    result = campaign(database)
    first, second = (next(trial for trial in result.measured if trial.schedule == f"unroll(j, {code})") for code in (1, 7))
    assert second.same_as == first.number
    assert second.samples == 0
    assert second.seconds == first.seconds


def test_the_table_of_trials(database: Path) -> None:
    problem = spmv()
    result = campaign(database, problem, codes=ALL, given=check_schedules(problem, ["unroll(j, 1)"]))
    table = result.trials
    contract = ["number", "schedule", "status", "seconds", "low", "high", "samples", "build_seconds", "disturbed", "origin"]
    assert list(table.columns) == [*contract, "factor"]
    assert list(table["origin"][:2]) == ["default", "given"]
    assert set(table["origin"][2:]) == {"search"}
    assert dict(zip(table["schedule"][2:], table["factor"][2:], strict=True)) == {
        f"unroll(j, {code})": code for code in ALL if code != 1
    }
    ran = table[table["status"] == "ok"]
    assert ((ran["low"] <= ran["seconds"]) & (ran["seconds"] <= ran["high"])).all()
    assert not ran["disturbed"].any()
    assert (ran["samples"][ran["schedule"] != "unroll(j, 7)"] >= 3).all()
    assert campaign(database, problem, codes=ALL).trials.equals(table), "what is read from the database is what was measured"


def test_samples_their_company_and_the_policy_are_stored(database: Path) -> None:
    campaign(database)
    with open_database(database) as store:
        for record in store.measurements():
            assert record.policy == SETTINGS.policy.as_dict() or record.message.startswith("same code")
            assert all(len(sample) == len(SAMPLE) for sample in record.samples)
            assert (record.compiler, record.flags) == ("gcc: 1.0", "-O3") or record.role == "final"
        (decision,) = store.decisions()
        assert (decision.policy, decision.compiler) == (SETTINGS.policy.as_dict(), "gcc: 1.0")


def test_cold_trials_are_another_campaign(database: Path) -> None:
    warm = campaign(database, trials=1)
    cold = campaign(database, trials=1, policy=replace(SETTINGS.policy, cache="cold"))
    with open_database(database) as store:
        assert [record.policy["cache"] for record in store.measurements(role="default")] == ["warm", "cold"]
    assert len(warm.measured) == len(cold.measured) == 1


def test_everything_is_recorded(database: Path) -> None:
    result = campaign(database, codes=ALL)
    with open_database(database) as store:
        trials = [record for record in store.measurements() if record.role != "final"]
        assert len(trials) == len(result.measured)
        assert {record.schedule for record in trials} == {trial.canonical for trial in result.measured}
        (decision,) = store.decisions()
        assert decision.schedule == "unroll(i1, 2)"
        assert decision.speedup_low > 1
        assert decision.environment["settings"] == {"SPARSETUNE_THREADS": "1"}
        assert store.check() == []


def test_finished_campaign_is_not_run_again(database: Path) -> None:
    before = campaign(database)
    worker = Worker(1, FAKE)
    after = campaign(database, worker=worker)
    assert worker.starts == 0
    assert after.best == before.best
    assert after.best_time == before.best_time
    assert len(after.measured) == len(before.measured)


def test_more_trials_go_on(database: Path) -> None:
    first = campaign(database, trials=2)
    assert len(first.measured) == 2
    second = campaign(database, trials=20)
    assert [trial.canonical for trial in second.measured[:2]] == [trial.canonical for trial in first.measured]
    with open_database(database) as store:
        schedules = [record.schedule for record in store.measurements() if record.role != "final"]
    assert len(schedules) == len(set(schedules)) == len(GOOD) + 1


def test_another_seed_is_another_campaign(database: Path) -> None:
    campaign(database, trials=1)
    worker = Worker(1, FAKE)
    campaign(database, trials=1, worker=worker, seed=1)
    assert worker.starts == 1


def test_what_won_on_a_similar_input_is_tried_after_the_default(database: Path) -> None:
    campaign(database)
    result = campaign(database, spmv(rows=40))
    assert [trial.schedule for trial in result.measured[:2]] == ["", "unroll(j, 2)"]


def test_what_won_on_another_machine_is_tried_too(database: Path, tmp_path: Path, shipped: Path) -> None:
    campaign(tmp_path / "theirs.sqlite")
    with open_database(tmp_path / "theirs.sqlite") as store, shipped.open("w") as stream:
        theirs = (replace(found, workload=replace(found.workload, machine="theirs")) for found in store.decisions())
        write_json_lines(theirs, stream)
    result = campaign(database, trials=2)
    assert [trial.schedule for trial in result.measured] == ["", "unroll(j, 2)"]


def test_other_names_share_what_was_learned(database: Path) -> None:
    campaign(database)
    worker = Worker(1, FAKE)
    result = campaign(database, spmv(names="oMvrc"), worker=worker)
    assert str(result.best) == "unroll(c, 2)"
    assert worker.starts == 0


def test_one_trial_is_the_default(database: Path) -> None:
    result = campaign(database, trials=1)
    assert str(result.best) == ""
    assert result.speedup == 1.0


def test_the_shortest_time_budget_leaves_a_choice(database: Path) -> None:
    result = campaign(database, codes=ALL, seconds=1e-6)
    assert len(result.trials) == 4, "the default and three others"


HANGS = (*FAKE, "hang")
"""A worker whose default schedule does not end."""


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_LEAST_SECONDS", 1.0)
    monkeypatch.setattr(beginning, "_LEAST_RUN", 0.5)
    monkeypatch.setattr(beginning, "_SHARE", 0.01)


@pytest.mark.usefixtures("impatient")
def test_nothing_that_ends_within_the_time_budget_is_an_error(database: Path) -> None:
    with pytest.raises(TuningError, match="runs within the time budget of 1 s; give more"):
        campaign(database, seconds=1.0, worker=Worker(1, HANGS))


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(("quickest", "best"), [("unroll(j, 1)", "unroll(j, 2)"), ("unroll(j, 2)", "unroll(j, 2)")])
def test_another_schedule_stands_in_for_a_default_that_does_not_end(
    database: Path, monkeypatch: pytest.MonkeyPatch, quickest: str, best: str
) -> None:
    monkeypatch.setattr(session, "_quickest", lambda *_given: quickest)
    result = campaign(database, seconds=60.0, worker=Worker(1, HANGS))
    assert str(result.best) == best
    assert (result.default_time, result.speedup, result.speedup_low) == (None, None, None)
    assert result.default_stopped is not None
    assert result.default_stopped > 0.3
    assert "did not end within" in result.reason
    assert "default not run" in repr(result)
    assert "not run to its end" in result._repr_html_()
    assert [(trial.schedule, trial.status) for trial in result.measured][:2] == [("", Status.TIMEOUT), (quickest, Status.OK)]
    assert as_json(result)["default_time"] is None
    assert as_json(result)["default_stopped"] == result.default_stopped
    assert result.pays_after["conversion"] == 0
    with open_database(database) as store:
        (decision,) = store.decisions()
        assert store.check() == []
    assert decision.default_stopped
    assert decision.speedup_low == decision.default_seconds / decision.seconds > 1
    assert campaign(database, seconds=60.0, trials=len(result.measured), worker=Worker(1, HANGS)).default_time is None


@pytest.mark.usefixtures("impatient")
def test_a_default_that_was_ended_runs_when_there_is_time(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_quickest", lambda *_given: "unroll(j, 1)")
    assert campaign(database, seconds=60.0, worker=Worker(1, HANGS), trials=3).default_time is None
    result = campaign(database, trials=5)
    assert result.speedup == pytest.approx(4, rel=0.02)


@pytest.mark.usefixtures("impatient")
def test_the_default_makes_the_reference_where_what_should_be_quicker_does_not_end(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "_quickest", lambda *_given: "unroll(j, 9)")
    result = campaign(database, seconds=60.0)
    assert str(result.best) == "unroll(j, 2)"
    assert result.speedup == pytest.approx(4, rel=0.05)


def test_trial_that_outlasts_the_time_budget_is_not_a_failure(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_LEAST_SECONDS", 1.0)
    monkeypatch.setattr(session, "_OVERTIME", 100.0)  # as long as a busy machine may take for the default and the end
    result = campaign(database, codes=[9], seconds=1.0)
    assert [trial.schedule for trial in result.measured] == [""], "a schedule that hangs, cut off by the budget"
    assert (str(result.best), result.speedup) == ("", 1.0)


def test_failing_default_is_an_error(database: Path) -> None:
    worker = Worker(1, (sys.executable, "-c", "raise SystemExit(1)"))
    with pytest.raises(TuningError, match="does not start"):
        campaign(database, worker=worker)


def test_killed_campaign_goes_on(database: Path) -> None:
    command = [sys.executable, str(CAMPAIGNS), str(database), "20"]
    tuning = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 600
    count = 0
    while count < 2:
        assert time.monotonic() < deadline
        time.sleep(0.01)
        if database.exists():
            with open_database(database, read_only=True) as store:
                count = store.stats()["measurements"]
    tuning.send_signal(signal.SIGKILL)
    tuning.wait()
    again = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "unroll(j, 2)" in again.stdout
    with open_database(database) as store:
        assert store.check() == []
        schedules = [record.schedule for record in store.measurements() if record.role != "final"]
    assert len(schedules) == len(set(schedules)) == len(GOOD) + 1


def test_two_processes_on_one_database(database: Path) -> None:
    command = [sys.executable, str(CAMPAIGNS), str(database), "20"]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    outputs = [process.communicate(timeout=600)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert all("unroll(j, 2)" in output for output in outputs)
    with open_database(database) as store:
        assert store.check() == []
        assert store.stats()["decisions"] == 2


@pytest.mark.parametrize(
    ("trials", "seconds"), [(0, None), (-1, None), (1.5, None), (True, None), (10, 0), (10, -1.0), (10, float("inf")), (10, "1")]
)
def test_bad_budgets(trials: object, seconds: object) -> None:
    with pytest.raises(TuningError, match="is expected"):
        make_budget(trials, seconds)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", [-1, 2**32, 99999999999999, 10**30, 1.5, "7", None, True, np.float64(3)])
def test_bad_seeds(database: Path, seed: object) -> None:
    with pytest.raises(TuningError, match="seed has to be a whole number from 0 to 4294967295"):
        campaign(database, trials=1, seed=seed)  # type: ignore[arg-type]


def test_numpy_seeds_are_seeds() -> None:
    assert check_seed(np.uint32(2**32 - 1)) == 2**32 - 1


def test_what_was_searched_is_a_space(database: Path) -> None:
    """What was tried besides, since it was given or known, belongs to it."""
    problem = spmv()
    result = campaign(database, problem, given=check_schedules(problem, ["split(i, i0, i1, 4)"]))
    space = result.space
    texts = [str(schedule) for schedule in islice(space, 50)]
    assert len(set(texts)) == 50 < space.count()
    assert all(text in space for text in texts)
    assert all(trial.schedule in space for trial in result.measured)
    assert result.best in space
    assert all(schedule in space for schedule in space.sample(10, seed=3))
    assert space.sample(10, seed=3) == space.sample(10, seed=3)
    assert "parallelize(i, cpu_thread, ignore_races)" not in space
    assert space.stages[:-1] == result.stages
    assert (space.stages[-1]["stage"], space.stages[-1]["kept"]) == ("parameters", space.count())


def test_a_long_default_that_is_hopeless_is_not_raced(database: Path) -> None:
    policy = replace(SETTINGS.policy, long_seconds=0.003)
    result = campaign(database, codes=(1, 2), policy=policy)
    assert str(result.best) == "unroll(j, 2)"
    with open_database(database) as store:
        finals = {found.schedule: found for found in store.measurements(role="final")}
    assert len(finals[""].samples) == 1
    assert len(finals["unroll(i1, 2)"].samples) == policy.final_rounds


def test_what_a_schedule_costs_stands_beside_what_it_gains(database: Path) -> None:
    result = campaign(database)
    assert result.conversion_time == 0.0
    gain = result.default_time - result.best_time
    built = next(trial.build_seconds for trial in result.measured if trial.schedule == str(result.best))
    assert result.pays_after == {
        "conversion": 0, "build": math.ceil(built / gain) if built else 0, "tuning": math.ceil(result.seconds / gain),
    }  # fmt: skip
    stored = make_problem("Y(i,k) = A(i,j) * X(j,k)", {"A": tensor(np.eye(30), "csr"), "X": np.ones((30, 4))}, threads=1)
    converts = replace(result, problem=stored, best=Schedule('convert(A(i,j), "csc"); reorder(k, j, i)'), best_time=3e-3, default_time=1e-3)
    assert converts.conversion_time > 0
    slower = replace(converts, best_time=1.0)
    assert slower.pays_after == {"conversion": None, "build": None, "tuning": None}


def no_time(*_given: object, **_named: object) -> Verdict:
    raise TimeOver


def the_default_is_lost(*_given: object, **_named: object) -> None:
    """As a process that was stopped for minutes is taken for one that hangs."""


def only_disturbed(*given: Any, **named: Any) -> Verdict:
    verdict = play(*given, **named)
    assert verdict is not None
    return replace(verdict, winner="", against_default=Comparison(1.0, 1.0, 1.0), disturbed=True)


@pytest.mark.parametrize("finals", [no_time, only_disturbed, the_default_is_lost])
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


def test_calls_around_tiny_kernels_count_where_finalists_are_chosen() -> None:
    """Six rounds of five finalists of a microsecond took 2.7 s of a budget of three: calls from Python take four times as long."""
    times = 1e-6, 8e-7, 9e-7, 9e-7
    trials = {name: cast(Trial, SimpleNamespace(canonical=name, seconds=seconds)) for name, seconds in zip("dabc", times, strict=True)}
    left = decision._in_time(trials, None, False, Policy(), 0.75, "d")
    assert list(left) == ["d", "a"]
    slower = {name: cast(Trial, SimpleNamespace(canonical=name, seconds=1e-4)) for name in "dabc"}
    assert len(decision._in_time(slower, None, False, Policy(), 0.75, "d")) == 4


def test_a_search_builds_its_candidates_some_at_a_time(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    together: list[int] = []
    build = Runner.build_together

    def counted(runner: Runner, schedules: Sequence[str], known: Iterable[str] = ()) -> list[Built]:
        together.append(len(schedules))
        return build(runner, schedules, known)

    monkeypatch.setattr(Runner, "build_together", counted)
    assert len(campaign(database, codes=ALL).measured) == len(ALL) + 1
    assert max(together) > 1
