"""Campaigns with a schedule that does not end within the time there is; where it is the default, another one takes its place."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from sparsetune.compiler.errors import TuningError
from sparsetune.compiler.schedule.schedule import Schedule
from sparsetune.compiler.space.template import Template
from sparsetune.tuner import beginning, session
from sparsetune.tuner.commands.tune import as_json
from sparsetune.tuner.database import open_database
from sparsetune.tuner.measure.worker_process import Worker
from sparsetune.tuner.records import Status
from sparsetune.tuner.resolve import make_problem
from sparsetune.tuner.search.space import Space
from tuner_campaigns import FAKE, campaign

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


def test_what_is_used_untuned_makes_the_reference_where_there_was_no_time_for_pruning() -> None:
    """Only the default was left in the space, and a chain of 20 matrices, which it never ends, had no reference result within 20 s."""
    draw = np.random.default_rng(0)
    factors = [f"A{number}(i{number},i{number + 1})" for number in range(9)]
    matrices = {name[:2]: scipy.sparse.random_array((200, 200), density=0.02, format="csr", rng=draw) for name in factors}
    problem = make_problem("Z(i0,i9) = " + " * ".join(factors), matrices, threads=1)
    untuned, unpruned = session._untuned(problem), Space((Template(),), problem.to_canonical)
    quickest = session._quickest(problem, unpruned, untuned, 20.0)
    assert quickest != ""
    assert problem.to_canonical(Schedule(quickest)) == untuned
    assert session._quickest(problem, unpruned, "", 20.0) == ""


def test_trial_that_outlasts_the_time_budget_is_not_a_failure(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_LEAST_SECONDS", 1.0)
    monkeypatch.setattr(session, "_OVERTIME", 100.0)  # as long as a busy machine may take for the default and the end
    result = campaign(database, codes=[9], seconds=1.0)
    assert [trial.schedule for trial in result.measured] == [""], "a schedule that hangs, cut off by the budget"
    assert (str(result.best), result.speedup) == ("", 1.0)
