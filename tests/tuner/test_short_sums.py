"""Sums over short rows take longer for each operation than loops by vectors, so threads gain more from them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sparsetune.compiler.schedule.schedule import Schedule
from sparsetune.tuner import constants as module
from sparsetune.tuner import costs, parameters
from sparsetune.tuner.constants import Constants, machine_constants
from sparsetune.tuner.model import expected_cost
from sparsetune.tuner.problem import Problem
from sparsetune.tuner.resolve import make_problem
from static_choices import spmm, spmv, with_rows

SHORT, LONG = with_rows([5] * 400), with_rows([100] * 40)


def product(form: str) -> Problem:
    """A product of a sparse matrix, stored in a format, and a vector."""
    matrix = SHORT.convert(form)
    return make_problem("y(i) = A(i,j) * x(j)", {"A": matrix, "x": np.ones(matrix.shape[1])})


@pytest.mark.parametrize(
    ("problem", "times"),
    [
        (product("csr"), 3.0),
        (product("csc"), 1.0),  # each entry is added to another element
        (make_problem("y(i) = A(i,j) * x(j)", {"A": LONG, "x": np.ones(100)}), 1.0),  # by vectors that gather
        (spmm(SHORT), 1.0),
        (spmm(SHORT, 1), 2.2),  # the loop over one column is none, but ends of rows around it cost the same
        (make_problem("t = A(i,j) * B(i,j)", {"A": SHORT, "B": with_rows([4] * 399 + [5])}), 1.0),  # what meets has a cost of its own
    ],
    ids=["short rows", "columns", "long rows", "rows of a matrix", "a column", "rows that meet"],
)
def test_sums_over_short_rows_take_longer(problem: Problem, times: float, monkeypatch: pytest.MonkeyPatch) -> None:
    def cost(short_sums: float) -> float:
        monkeypatch.setattr(costs, "machine_constants", lambda: Constants(operation=1e-10, short_sums=short_sums))
        return expected_cost(problem, Schedule())

    assert cost(3e-10) == pytest.approx(times * cost(1e-10), rel=0.03)


@pytest.mark.parametrize(
    ("schedule", "times"),
    [
        ("collapse(i, j, f); pos(f, p, A)", 3.0),
        ("pos(j, p, A(i,j)); split(p, p0, p1, 2)", 3.0),
    ],
)
def test_loops_over_positions_sum_short_rows_too(schedule: str, times: float, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = product("csr")

    def cost(short_sums: float) -> float:
        monkeypatch.setattr(costs, "machine_constants", lambda: Constants(operation=1e-10, short_sums=short_sums))
        return expected_cost(problem, Schedule(schedule))

    assert cost(3e-10) == pytest.approx(times * cost(1e-10), rel=0.01)


@pytest.mark.parametrize(("rows", "short_sums", "shared"), [(900, 2.4e-10, True), (900, 0.8e-10, False), (90, 2.4e-10, False)])
def test_small_sums_are_shared_where_they_take_longer_than_threads_to_begin(
    rows: int, short_sums: float, shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SpMV of pde900 and lp_ship04l was left to one thread, though two take less time."""
    machine = Constants(operation=0.8e-10, short_sums=short_sums, start=6.5e-7)
    for place in (costs, parameters):
        monkeypatch.setattr(place, "machine_constants", lambda: machine)
    assert ("cpu_thread" in spmv(with_rows([5] * rows), threads=2)) == shared


def test_constants_without_short_sums_have_some_in_proportion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "constants.json"
    place.write_text(json.dumps({"operation": 3 * Constants.operation, "start": 1e-6}))
    monkeypatch.setattr(module, "constants_file", lambda: place)
    found = machine_constants.__wrapped__()
    assert found.start == 1e-6
    assert found.short_sums == pytest.approx(3 * Constants.short_sums)


def test_rows_that_threads_take_over_are_not_foreseen(monkeypatch: pytest.MonkeyPatch) -> None:
    """SpMV of email-Enron, the first half of which has most of the work, took longer by two threads one by one than in batches."""
    monkeypatch.setattr(parameters, "machine_constants", lambda: Constants(surprises=7_000.0))
    lengths = np.random.default_rng(1).integers(1, 5, 20_000)  # three of four are not foreseen
    uneven = np.concatenate([lengths[:10_000] + 4, lengths[10_000:]])
    assert "unroll(j, 2)" in spmv(with_rows(lengths.tolist()), threads=2)
    assert "unroll" not in spmv(with_rows(uneven.tolist()), threads=2)


def test_one_thread_remembers_ends_of_rows_whatever_others_could(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Constants(surprises=300.0, start=1.0)  # threads are never worth their start
    for place in (costs, parameters):
        monkeypatch.setattr(place, "machine_constants", lambda: slow)
    lengths = np.random.default_rng(1).integers(1, 9, 700)
    assert "unroll" not in spmv(with_rows(lengths.tolist()), threads=2)
