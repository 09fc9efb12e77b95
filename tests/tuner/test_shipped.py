"""The file of the schedules that ship."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from sparsetune.compiler.errors import DatabaseError
from sparsetune.compiler.schedule.schedule import Schedule
from sparsetune.tuner import reason, shipped
from sparsetune.tuner.problem import Problem
from sparsetune.tuner.resolve import make_problem
from sparsetune.tuner.urls import SHIPPED


def problem() -> Problem:
    return make_problem("y(i) = A(i,j) * x(j)", {"A": scipy.sparse.eye_array(40, format="csr"), "x": np.ones(40)})


def test_a_file_that_is_named_and_missing_is_no_empty_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SHIPPED, str(tmp_path / "mistyped.jsonl"))
    with pytest.raises(DatabaseError, match=r"SPARSETUNE_SHIPPED names .*mistyped.jsonl, which is no file; set it to ''"):
        shipped.shipped_decisions(problem().workload)
    monkeypatch.setenv(SHIPPED, "")
    assert shipped.shipped_decisions(problem().workload) == ()


@pytest.mark.parametrize(("expected", "shown"), [(1.234, "1.23"), (0.0032, "0.003")])
def test_a_small_expectation_is_not_rounded_to_nothing(monkeypatch: pytest.MonkeyPatch, expected: float, shown: str) -> None:
    monkeypatch.setattr(reason, "_expected", lambda _problem, _winner: expected)
    assert f"expected {shown} times the default's speed" in reason.reason(problem(), Schedule("unroll(j, 4)"), 1.5)
