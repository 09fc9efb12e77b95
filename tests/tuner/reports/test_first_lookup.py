"""The page of first lookups: processes of their own, in which what is known takes a small part of what is not."""

from __future__ import annotations

from pathlib import Path

import pytest
from sparsetune.tuner.reports.first_lookup import First, measured, page

MOST_ALIKE = 48
"""Modules that a first lookup imports where another process has looked the same up for another matrix."""

MOST_CALLS = 5500
"""Functions of Python that a first lookup calls where another process has looked the same up; some 3,700."""

MOST_CALLS_ALIKE = 8000
"""The same for another matrix; some 6,500."""


def test_what_is_known_takes_a_small_part_of_what_is_not(tmp_path: Path) -> None:
    database = str(tmp_path / "none.sqlite")
    known, new = (measured("SpMV", answers, database, 1) for answers in (str(tmp_path / "answers"), ""))
    assert known.origin == new.origin
    assert known.calls < min(MOST_CALLS, new.calls / 10)
    assert known.modules < new.modules / 5
    assert 0 < known.seconds < new.seconds


@pytest.mark.parametrize("kernel", ["SpMV", "SDDMM", "SpGEMM", "TTV"])
def test_other_operands_of_a_kernel_that_is_known_take_a_small_part_too(tmp_path: Path, kernel: str) -> None:
    alike = measured(kernel, str(tmp_path / "answers"), str(tmp_path / "none.sqlite"), 2, others=True)
    assert alike.modules < MOST_ALIKE
    assert alike.calls < MOST_CALLS_ALIKE


def test_the_page_has_all_three() -> None:
    known, alike, new = First(0.008, 27, 2000, 1e-5, "model"), First(0.01, 40, 4000, 1e-5, "model"), First(0.1, 240, 90000, 1e-5, "model")
    shown = page({"SpMV": (known, alike, new)}, 3)
    assert "| SpMV | model | 8.0 | 27 | 2000 | 10.0 | 40 | 4000 | 100.0 | 240 | 90000 | 10.0 |" in shown
