"""The report on samplers, on a small table written by hand."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from sparsetune.tuner.reports.samplers import TRIALS, Curves, curves, main


def small_table(path: Path, points: int = 90) -> Path:
    """Write a table whose best point is the last: the time falls with the number in the schedule."""
    rows = [{"schedule": "", "seconds": 1.0}, *({"schedule": f"unroll(j, {n})", "seconds": 1.0 / n} for n in range(2, points + 1))]
    path.write_text(json.dumps({"expression": "y(i) = A(i,j) * x(j)", "points": rows}))
    return path


def test_curves_stand_over_the_best_of_the_table(tmp_path: Path) -> None:
    found = curves(small_table(tmp_path / "small.json"), "local", 2)
    assert found.ratios.shape == (2, TRIALS)
    assert (found.ratios[:, 0] == 90).all()  # the default is the first trial of all
    assert (np.diff(found.ratios) <= 0).all()
    assert found.median(TRIALS) < 1.05


def test_area_and_median() -> None:
    found = Curves("tpe", "small", np.array([[np.e, 1.0], [np.e, 2.0], [np.e, 3.0]]))
    assert found.median(2) == 2.0
    assert found.area == pytest.approx((3 + np.log(6)) / 6)


def test_page(tmp_path: Path) -> None:
    small_table(tmp_path / "small.json", 20)
    arguments = ["--tables", str(tmp_path), "--results", str(tmp_path), "--seeds", "2", "--sampler", "local", "--sampler", "random"]
    done = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    shown = (tmp_path / "samplers.md").read_text()
    assert re.search(r"\| local \| [01] \| 1 \| 1 \| [0-9.]+ \| 1\.000 \|", shown)  # all of a small table is tried
    assert "| small | 20 | 5.00% | " in shown
