"""The report on samplers, on a small table written by hand."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from sparsetune.tuner.reports.samplers import TRIALS, Curves, curves, main
from sparsetune.tuner.truth.foreign import STRATEGIES, foreign_search
from sparsetune.tuner.truth.table import read_table


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


class Backwards(ModuleType):
    """What Kernel Tuner is asked for: a strategy that tries what is allowed in its cache from behind, twice each."""

    def tune_kernel(self, *arguments: Any, cache: str, restrictions: Any, strategy_options: Any, **options: Any) -> tuple[Any, Any]:
        (*_, parameters), (allowed,) = arguments, restrictions
        found = list(json.loads(Path(cache).read_text())["cache"].values())[::-1]
        assert options["simulation_mode"]
        assert all(allowed(**{name: one[name] for name in parameters}) for one in found)
        assert all(allowed(*(one[name] for name in parameters)) for one in found)
        assert not allowed(*[-1] * len(parameters))
        return [one for one in found[: strategy_options["max_fevals"]] for _ in range(2)], {}


def test_strategies_of_others_see_the_points_of_a_table_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kernel_tuner", Backwards("kernel_tuner"))
    path = small_table(tmp_path / "small.json", 20)
    rows = json.loads(path.read_text())
    rows["points"] += [{"schedule": "reorder(j, i)", "seconds": 3.0}, {"schedule": "unroll(i, 2)", "seconds": None, "status": "crash"}]
    path.write_text(json.dumps(rows))
    table = read_table(path)
    tried = foreign_search(table, "any", 5, 0)
    assert len(tried) == 5
    assert tried[0] == table.default
    assert len(set(tried)) == 5
    whole = foreign_search(table, "any", 60, 0)
    assert {point.schedule for point in whole} == {point.schedule for point in table.points}
    assert curves(path, f"Kernel Tuner: {STRATEGIES[0]}", 2).ratios[0, -1] == 1.0


def test_what_is_not_installed_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparsetune.tuner.reports.samplers.version", lambda: None)
    small_table(tmp_path / "small.json", 20)
    done = CliRunner().invoke(main, ["--tables", str(tmp_path), "--results", str(tmp_path), "--kernel-tuner"])
    assert done.exit_code == 1
    assert "pip install kernel_tuner" in done.output
