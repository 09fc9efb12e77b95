"""The picture at the head of the README, and the page behind it."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from sparsetune.compiler.errors import TuningError
from sparsetune.datasets.generate import generate
from sparsetune.tuner.reports import overview
from sparsetune.tuner.reports.overview import Point, outside_ratios, page, picture, untuned
from sparsetune.tuner.reports.partial import read_rows
from sparsetune.tuner.reports.scheduling_page import Outside


def point(library: str, ratio: float, name: str = "copter2", kernel: str = "SpMV") -> Point:
    return Point(kernel, name, 2, library, 0.001 * ratio, ratio, ratio - 0.1, ratio + 0.1, "", 0.5, "Some CPU", "2026-01-01", "abc")


def outside(peer: str, ratio: float, name: str = "copter2", threads: int = 2) -> Outside:
    return Outside("SpMV", name, threads, peer, "flags", ratio, 1.0, "in turn")


POINTS = [
    point("sparsetune", 1.0), point("sparsetune default", 1.5), point("sparsetune static", 1.25), point("scipy", 3.0), point("mkl", 0.75),
    point("sparsetune", 1.0, "cnr-2000"), point("sparsetune default", 2.0, "cnr-2000"), point("scipy", 6.0, "cnr-2000"),
]  # fmt: skip


def test_untuned_is_the_static_choice_else_the_default() -> None:
    assert [(one.input, one.ratio) for one in untuned(POINTS)] == [("copter2", 1.25), ("cnr-2000", 2.0)]


def test_programs_that_ran_elsewhere_stand_beside_the_same_inputs_and_threads() -> None:
    rows = [outside("TACO", 1.5), outside("TACO", 9.0, threads=1), outside("TACO", 9.0, "uni200k"), outside("SPLATT", 2.5)]
    assert outside_ratios(rows, POINTS, "TACO") == {"SpMV": [1.5]}
    assert outside_ratios(rows, POINTS, "SPLATT") == {"SpMV": [2.5]}


def test_page_and_picture_say_what_was_measured_where() -> None:
    text = page(POINTS, [outside("TACO", 1.5)])
    assert "Some CPU, 2026-01-01, commit abc. 2 threads, SciPy one" in text
    assert "| SpMV | 2 | 1.58 (1.25) | 4.24 (3.00) | 0.75 (0.75) | 1.50 (1.50) |  |" in text
    assert "| SpMV | copter2 | mkl | 0.75 | 0.75 [0.65, 0.85] |  |" in text
    assert picture(POINTS, [outside("TACO", 1.5)]).startswith("<?xml")


@pytest.mark.cc
def test_rows_are_measured_and_a_stopped_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overview, "LIBRARIES", {"scipy": overview.LIBRARIES["scipy"]})
    monkeypatch.setattr(overview, "load_input", lambda name: generate("random:uniform:60x60:nnz=300") if name == "copter2" else None)
    monkeypatch.setattr(overview, "CASES", (overview.CASES[0], overview.SPGEMM))
    (tmp_path / "scheduling_peers.csv").write_text("kernel,input,threads,peer,flags,peer_ms,ours_ms,source\nSpMV,copter2,1,TACO,f,2,1,s\n")
    measured = overview.measured

    def stops(case: overview.KernelCase, *given: object) -> list[Point]:
        if case.name == "SpGEMM":
            raise KeyboardInterrupt
        return measured(case, *given)  # type: ignore[arg-type]

    def fails(*_given: object) -> list[Point]:
        raise TuningError("it takes too long\nand more")

    arguments = ["--results", str(tmp_path), "--time-budget", "1", "--threads", "1"]
    monkeypatch.setattr(overview, "measured", stops)
    assert CliRunner().invoke(overview.main, arguments).exit_code == 1
    monkeypatch.setattr(overview, "measured", fails)
    result = CliRunner().invoke(overview.main, arguments)
    assert (result.exit_code, "SpGEMM, copter2: left out: it takes too long\n" in result.stderr) == (0, True)
    points = read_rows(tmp_path / "overview.csv", Point)
    assert {one.kernel for one in points} == {"SpMV"}
    assert {"sparsetune", "sparsetune default", "scipy"} <= {one.library for one in points}
    assert not (tmp_path / "overview.partial.csv").exists()
    assert "TACO" in (tmp_path / "overview.md").read_text()
    assert (tmp_path / "overview.svg").exists()
