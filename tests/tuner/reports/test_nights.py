"""The report on nights: its edits are of the code as it is, and what it counts is right."""

from __future__ import annotations

import compileall
import re
from pathlib import Path
from typing import Any

import pytest
from sparsetune.tuner.reports.nights import PLANTED, WITHOUT_EFFECT, Night, _row, copies, page


@pytest.mark.parametrize("name", ["nothing", *PLANTED])
def test_edits_apply(tmp_path: Path, name: str) -> None:
    older, newer = copies(tmp_path, PLANTED.get(name, ()))
    for edit in (WITHOUT_EFFECT, *PLANTED.get(name, ())):
        assert (older / edit.path).read_text() != (newer / edit.path).read_text()
        assert not edit.path.endswith(".py") or compileall.compile_file(newer / edit.path, quiet=1)


def night(planted: str, found: str = "", improvements: int = 0, undecided: int = 0) -> Night:
    count = len(found.split("; ")) if found else 0
    return Night(planted, 0.5, 60.0, 4, count, improvements, undecided, found, machine="test", date="2026-01-01", commit="abc")


@pytest.mark.parametrize(
    ("planted", "nights", "right", "false", "undecided"),
    [
        ("nothing", [{}, {"found": "spmv"}, {"undecided": 2}], 2, 1, 1),
        ("packing", [{"found": "pack csr"}, {"found": "pack csf; spmv"}, {}], 2, 1, 0),
        ("generated code", [{"found": "spmv; spmm"}, {}, {"improvements": 1}], 1, 1, 0),
    ],
)
def test_what_is_counted(planted: str, nights: list[dict[str, Any]], right: int, false: int, undecided: int) -> None:
    found = [night(planted, **given) for given in nights]
    row = _row(found)
    assert row[2:6] == [str(len(nights)), str(right), str(false), str(undecided)]
    shown = page([*found, night("csrc helper")], 0.1)
    assert re.search(rf"\| {planted} \| half of the time \| 3 \|", shown)
    assert "- test, 2026-01-01, commit abc: 4 rows" in shown
    assert "| csrc helper | half of the time | 1 | 0 |" in shown
