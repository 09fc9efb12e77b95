"""What campaigns answer beside the best schedule: the space, costs and gains, conversions that pay."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from sparsetune.compiler.schedule.schedule import Schedule
from sparsetune.compiler.storage.construct import tensor
from sparsetune.tuner import converted
from sparsetune.tuner.commands.tune import as_json
from sparsetune.tuner.converted import CONVERTED, Converted
from sparsetune.tuner.database import open_database
from sparsetune.tuner.measure.outcomes import Built
from sparsetune.tuner.measure.runner import Runner
from sparsetune.tuner.report.material import read_material
from sparsetune.tuner.resolve import make_problem
from sparsetune.tuner.session import check_schedules
from tuner_campaigns import ALL, campaign, spmv


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


def test_what_pays_once_operands_are_converted_stands_beside_the_best(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A conversion of 20 ms in every call makes the fastest kernel the slowest; a bound one does it once."""
    monkeypatch.setattr(converted, "conversion_seconds", lambda *_given: 1.0)  # fakes convert in the measuring process alone
    result = campaign(database, codes=(2, 10))
    assert str(result.best) == "unroll(j, 2)"
    found = result.converted
    assert found is not None
    assert str(found.schedule) == "unroll(j, 10)"
    assert found.speedup == pytest.approx(2, rel=0.02)
    assert found.low <= found.speedup <= found.high
    assert found.conversion_time > 0.02
    assert found.pays_after == pytest.approx(found.conversion_time / (result.best_time - found.time), rel=0.1)
    told = f"unroll(j, 10) is {found.speedup:.2f} times as fast"
    assert told in result.reason
    assert told in result._repr_html_()
    with open_database(database) as store:
        (shown,) = read_material(store).results
        assert told in str(shown.converted)
    assert as_json(result)["converted"] == {**found.as_dict(), "schedule": "unroll(j, 10)"}
    assert campaign(database, codes=(2, 10)).converted == found  # from its records
    with open_database(database) as store:
        (told,) = (trial for trial in store.measurements(role="trial") if "10" in trial.schedule)
        assert told.seconds > told.conversion > 0.02


def test_what_is_no_faster_once_converted_is_not_told(database: Path) -> None:
    assert campaign(database, codes=(2, 11)).converted is None
    environment = {CONVERTED: {"schedule": "unroll(j, 2)", "time": 1.0, "speedup": "fast"}}
    assert Converted.of({}) is Converted.of(environment) is Converted.of({CONVERTED: 3}) is None


def test_a_search_builds_its_candidates_some_at_a_time(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    together: list[int] = []
    build = Runner.build_together

    def counted(runner: Runner, schedules: Sequence[str], known: Iterable[str] = ()) -> list[Built]:
        together.append(len(schedules))
        return build(runner, schedules, known)

    monkeypatch.setattr(Runner, "build_together", counted)
    assert len(campaign(database, codes=ALL).measured) == len(ALL) + 1
    assert max(together) > 1
