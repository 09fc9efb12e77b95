"""The report of dense operands anywhere in memory: all calls compute one result, and the page shows every ratio."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from sparsetune.datasets.generate import generate
from sparsetune.tuner.reports import layouts
from sparsetune.tuner.reports.race import Series
from sparsetune.tuner.reports.records import Races, Row

SMALL = "random:uniform:24x24:nnz=90"


@pytest.mark.cc
def test_all_calls_compute_one_result() -> None:
    found = layouts.runs(generate(SMALL, "csr"), 16, 1)
    copy = found.pop((layouts.COPY, 1))
    expected = found[layouts.ALIGNED, 1]()
    assert {name for name, _ in found} == {layouts.ALIGNED, layouts.ALIGNED_OUT, *layouts.SHOWN} - {layouts.COPY}
    for run in found.values():
        np.testing.assert_allclose(run(), expected)
    assert copy().shape == (24 * 16,)


@pytest.mark.cc
def test_the_command_writes_rows_and_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layouts, "CASES", (("float32", 8),))
    options = ["--results", str(tmp_path), "--input", SMALL, "--input", "no such file", "--seconds", "0.01"]
    assert CliRunner().invoke(layouts.main, options, catch_exceptions=False).exit_code == 0
    text = (tmp_path / "layouts.md").read_text()
    assert f"| `{SMALL}` | float32, 8 columns, rows read 4 times | 1 |" in text
    assert len(Races.read(tmp_path / "layouts.csv").rows) % (2 + len(layouts.SHOWN)) == 0


def test_means_are_by_how_often_rows_are_read() -> None:
    def rows(name: str, reads: int, ratio: float) -> list[Row]:
        label = f"float64, 16 columns, rows read {reads} times"
        times = {name: Series((1.0, 1.0)) for name in (layouts.ALIGNED, layouts.ALIGNED_OUT)}
        times |= {variant: Series((ratio, ratio)) for variant in layouts.SHOWN}
        return [Row(layouts.FIGURE, label, name, variant, 1, 0.5, "", series) for variant, series in times.items()]

    text = layouts.page(Races([*rows("often", 16, 1.25), *rows("oftener", 99, 5.0), *rows("seldom", 15, 3.0)]))
    assert f"| 16 times and more | {' | '.join(['2.50'] * len(layouts.SHOWN))} |" in text
    assert f"| less often | {' | '.join(['3.00'] * len(layouts.SHOWN))} |" in text
