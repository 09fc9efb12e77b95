"""Campaigns: default first, nothing twice, failures survived, taken up after a kill, recorded."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sparsetune.compiler.errors import ScheduleError, TuningError
from sparsetune.compiler.schedule.schedule import Schedule
from sparsetune.tuner.database import open_database
from sparsetune.tuner.database.interchange import write_json_lines
from sparsetune.tuner.measure.worker_process import Worker
from sparsetune.tuner.records import SAMPLE, Status
from sparsetune.tuner.session import check_schedules, check_seed, make_budget
from tuner_campaigns import ALL, FAKE, GOOD, SETTINGS, campaign, spmv

CAMPAIGNS = Path(__file__).parents[1] / "tuner_campaigns.py"


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
