"""The report on sparse convolutions: what it runs agrees, orders end where the paper's do, and what is there is kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from sparsetune.tuner.reports import convolution
from sparsetune.tuner.reports.convolution import contests, main, orders_of, page, points
from sparsetune.tuner.reports.race import Pace

KNOWN: convolution.Known = frozenset()


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convolution, "SHAPES", {1: (60,), 2: (12, 12)})
    monkeypatch.setattr(convolution, "SPARSITIES", (0.9,))
    monkeypatch.setattr(convolution, "INPUTS", ("random:stencil5:4x4",))


def test_orders_are_those_of_the_paper() -> None:
    assert orders_of(1) == ("i,p", "p,i")
    assert len(orders_of(2)) == len(orders_of(3)) == 6
    assert sum(order[-1] in "ijk" for order in orders_of(3)) == 3


@pytest.mark.cc
@pytest.mark.parametrize("part", ["orders", "patterns"])
def test_all_that_runs_in_one_contest_computes_the_same(part: str) -> None:
    for contest in contests(part, KNOWN):
        results = [np.asarray(run()) for run in contest.runs.values()]
        assert all(np.allclose(result, results[0]) for result in results)
        assert set(contest.visited) <= set(contest.runs)
        assert all(contest.visited.values())


@pytest.mark.cc
def test_what_was_counted_is_on_the_page_and_not_counted_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = CliRunner().invoke(main, ["--results", str(tmp_path), "--part", "patterns", "--counts"], catch_exceptions=False)
    assert run.exit_code == 0
    first = (tmp_path / "convolutions.md").read_text()
    assert "## patterns: random:stencil5:4x4" in first
    monkeypatch.setattr(convolution, "points", None)
    CliRunner().invoke(main, ["--results", str(tmp_path), "--part", "patterns", "--counts"], catch_exceptions=False)
    assert (tmp_path / "convolutions.md").read_text() == first


@pytest.mark.cc
def test_times_stand_beside_what_is_visited() -> None:
    contest = next(iter(contests("orders", KNOWN)))
    found = points("orders", contest, Pace(0.01, 1, 1))
    assert {one.who for one in found} == set(contest.runs)
    assert all(one.seconds > 0 for one in found)
    assert f"({contest.visited['sparse p,i']})" in page(found)
