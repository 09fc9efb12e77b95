"""The report on choices in company: its cases can be tuned, and what it counts is right."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from sparsetune.compiler.native.toolchain import available_compilers
from sparsetune.tuner.reports import choices
from sparsetune.tuner.reports.choices import Case, Choice, agreeing, measured, page
from sparsetune.tuner.reports.partial import Partial


def choice(kernel: str, company: float, number: int, against: float) -> Choice:
    interval = 0.9 * against, 1.1 * against
    return Choice(kernel, company, number, "", 15.0, 1e-3, 2e-3, against, *interval, machine="test", date="2026-01-01", commit="abc")


def test_what_is_counted(tmp_path: Path) -> None:
    made = [
        choice("SpMV", 0.0, 0, 1.0), choice("SpMV", 0.0, 1, 0.98), choice("SpMV", 0.5, 0, 0.9), choice("SpMV", 0.5, 1, 1.0),
        choice("SDDMM 64", 0.0, 0, 1.0), choice("SDDMM 64", 0.0, 1, 0.9), choice("SDDMM 64", 0.5, 0, 0.95),
    ]  # fmt: skip
    assert agreeing(made) == (1, 2)  # campaigns of two kernels are no pair
    kept = Partial(tmp_path / "choices.csv", Choice)
    kept.add(made)
    shown = page(Partial(tmp_path / "choices.csv", Choice).rows)
    in_one_line = " ".join(shown.split())
    assert "by geometric mean 0.949 of 3, at least 0.900" in in_one_line
    assert "Of 2 pairs of campaigns in a row on the quiet machine 1 differ by less than 5%" in in_one_line
    assert "- test, 2026-01-01, commit abc: 7 rows" in shown
    assert "| SpMV | random:uniform:300000x300000:nnz=3e6, csr | 2.00 | 0.980 (0.882 to 1.078) | 2 | 0.949 | 0.900 | 15 |" in shown


@pytest.mark.skipif(not available_compilers(), reason="needs a C compiler")
def test_a_small_case(monkeypatch: pytest.MonkeyPatch) -> None:
    small = Case(choices.CASES["SpMM 32"].kernel, "random:uniform:300x200:nnz=900", "csr")
    monkeypatch.setattr(choices, "CASES", {"SpMM 32": small})
    monkeypatch.setattr(choices, "_PACE", choices.Pace(seconds=0.1))
    monkeypatch.setattr(choices, "_PROCESSES", 2)
    found = measured("SpMM 32", 600.0, 4, 1, 1)  # ends by its trials: how many seconds four of them take depends on the machine's load
    assert [(one.company, one.number) for one in found] == [(0.0, 0), (0.5, 0)]
    assert found[0].against == 1.0
    assert all(one.seconds > 0 and one.default > 0 and one.against > 0 for one in found)
    again = choices.raced_again(found)
    assert [(one.company, one.number, one.schedule, one.campaign) for one in again] == [
        (one.company, one.number, one.schedule, one.campaign) for one in found
    ]
    assert all(one.seconds > 0 and one.default > 0 and one.against > 0 for one in again)


def test_kernels_that_are_named_are_measured_anew_and_the_others_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [choice("SpMV", 0.0, 0, 1.0), choice("SpMV", 0.5, 0, 0.8), choice("SDDMM 64", 0.0, 0, 1.0), choice("SDDMM 64", 0.5, 0, 0.9)]
    Partial(tmp_path / "choices.csv", Choice).add(rows)
    monkeypatch.setattr(choices, "measured", lambda name, *_options: [choice(name, 0.0, 0, 1.0), choice(name, 0.5, 0, 0.97)])
    done = CliRunner().invoke(choices.main, ["--results", str(tmp_path), "--kernel", "SpMV"])
    assert done.exit_code == 0
    found = Partial(tmp_path / "choices.csv", Choice).rows
    assert sorted((one.kernel, one.against) for one in found) == [("SDDMM 64", 0.9), ("SDDMM 64", 1.0), ("SpMV", 0.97), ("SpMV", 1.0)]


@pytest.mark.parametrize("option", ["--quiet", "--disturbed"])
def test_no_campaigns_of_a_kind_are_refused_before_anything_is_measured(option: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(choices.main, ["--results", str(tmp_path), option, "0"])
    assert done.exit_code == 2
    assert "0 is not in the range x>=1" in done.output
