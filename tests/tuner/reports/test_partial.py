"""Long measurements go on where they were stopped."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from sparsetune.tuner.reports import payoff
from sparsetune.tuner.reports.partial import Partial, read_rows
from sparsetune.tuner.reports.payoff import Point


def point(kernel: str) -> Point:
    return Point(kernel, "dimension", 100, 0.01, 0.1, 0.01, 4)


def test_rows_outlive_the_run(tmp_path: Path) -> None:
    first = Partial(tmp_path / "points.csv", Point)
    first.add([point("SpMV")])
    first.add([point("SpMV2")])
    again = Partial(tmp_path / "points.csv", Point)
    assert again.rows == [point("SpMV"), point("SpMV2")]
    again.done()
    again.done()
    assert Partial(tmp_path / "points.csv", Point).rows == []


def test_a_stopped_run_measures_what_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[str] = []

    def stopped(kernel: str) -> list[Point]:
        if kernel == "SpGEMM" and not measured.count("SpGEMM"):
            measured.append(kernel)
            raise KeyboardInterrupt
        measured.append(kernel)
        return [point(kernel)]

    monkeypatch.setattr(payoff, "measured", stopped)
    words = ["SpMV", "SpGEMM", "--results", str(tmp_path)]
    assert CliRunner().invoke(payoff.main, words).exit_code == 1
    assert CliRunner().invoke(payoff.main, words).exit_code == 0
    assert measured == ["SpMV", "SpGEMM", "SpGEMM"]
    assert read_rows(tmp_path / "payoff.csv", Point) == [point("SpMV"), point("SpGEMM")]
    assert "| SpGEMM | dimension | 100 |" in (tmp_path / "payoff.md").read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["payoff.csv", "payoff.md", "payoff.svg"]
