"""Short calls beside OpenMP: both run every piece, and the page says what was measured."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from sparsetune.tuner.reports import openmp
from sparsetune.tuner.reports.partial import read_rows

pytestmark = pytest.mark.cc


def test_short_calls_beside_openmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openmp, "ROWS", (100, 300))
    run = CliRunner().invoke(openmp.main, ["--results", str(tmp_path), "--rounds", "7"], catch_exceptions=False)
    assert run.exit_code == 0
    assert (tmp_path / "openmp.md").read_text() in run.output
    found = read_rows(tmp_path / "openmp.csv", openmp.Loop)
    assert [loop.rows for loop in found] == [100, 300]
    for loop in found:
        assert min(loop.serial, loop.team, loop.openmp) > 1e-6
        assert loop.low <= loop.ratio <= loop.high
        assert f"| {loop.rows} | {1e6 * loop.serial:.1f} |" in run.output
