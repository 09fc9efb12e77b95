"""The report on nights: its edits are of the code as it is, and what it counts is right."""

from __future__ import annotations

import compileall
import re
from pathlib import Path

import pytest
from sparsetune.tuner.reports.nights import PLANTED, WITHOUT_EFFECT, Night, _row, copies, page


@pytest.mark.parametrize("name", ["nothing", *PLANTED])
def test_edits_apply(tmp_path: Path, name: str) -> None:
    older, newer = copies(tmp_path, PLANTED.get(name, ()))
    for edit in (WITHOUT_EFFECT, *PLANTED.get(name, ())):
        assert (older / edit.path).read_text() != (newer / edit.path).read_text()
        assert not edit.path.endswith(".py") or compileall.compile_file(newer / edit.path, quiet=1)


def night(regressions: tuple[str, ...] = (), improvements: int = 0, undecided: int = 0) -> Night:
    return Night(60.0, 4, len(regressions), improvements, undecided, regressions)


@pytest.mark.parametrize(
    ("planted", "nights", "right", "false", "undecided"),
    [
        ("nothing", [night(), night(("spmv",)), night(undecided=2)], 2, 1, 1),
        ("packing", [night(("pack csr",)), night(("pack csf", "spmv")), night()], 2, 1, 0),
        ("generated code", [night(("spmv", "spmm")), night(), night(improvements=1)], 1, 1, 0),
    ],
)
def test_what_is_counted(planted: str, nights: list[Night], right: int, false: int, undecided: int) -> None:
    row = _row(planted, 0.5, nights)
    assert row[2:6] == [str(len(nights)), str(right), str(false), str(undecided)]
    shown = page([row], {"processor": "test", "available_cores": 2}, "quick", 0.1)
    assert re.search(rf"\| {planted} \| half of the time \| 3 \|", shown)
