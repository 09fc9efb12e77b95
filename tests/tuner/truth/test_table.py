"""Truth tables: files written by hand and by measuring, and those that are none."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sparsetune.compiler.errors import DataError
from sparsetune.tuner.records import Status
from sparsetune.tuner.truth.table import TablePoint, TruthTable, read_table, write_table

BY_HAND = """
{"expression": "y(i) = A(i,j) * x(j)",
 "points": [{"schedule": "", "seconds": 4e-3},
            {"schedule": "unroll(j,2)", "seconds": 2e-3},
            {"schedule": "unroll(j, 4)", "status": "crash"}]}
"""


def test_a_table_written_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "hand.json"
    path.write_text(BY_HAND)
    table = read_table(path)
    assert [point.schedule for point in table.points] == ["", "unroll(j, 2)", "unroll(j, 4)"]
    assert (table.default.seconds, table.best.seconds, table.points[2].status) == (4e-3, 2e-3, Status.CRASH)
    assert table.share_within(1.05) == pytest.approx(1 / 3)
    write_table(tmp_path / "again.json", table)
    assert read_table(tmp_path / "again.json") == table


def test_what_is_written_is_read(tmp_path: Path) -> None:
    sample = (0.002, 0.002, 0.0, 0.0, 0.0, -0.004, 1.0)
    points = (
        TablePoint(schedule="", seconds=0.002, low=0.002, high=0.003, samples=(sample,), origin="default", source="a", build_seconds=0.1),
        TablePoint(schedule="unroll(j, 2)", seconds=0.002, source="a", disturbed=True),
        TablePoint(schedule="unroll(j, 4)", status=Status.ILLEGAL, origin="library"),
    )
    head = {"expression": "y(i) = A(i,j) * x(j)", "machine": "abc", "seed": 7, "space": 99, "policy": {"cache": "warm"}, "threads": 2}
    table = TruthTable(points=points, **head)
    write_table(tmp_path / "t.json", table)
    assert read_table(tmp_path / "t.json") == table
    assert table.share_within(1.05) == 1 / 2, "equal code counts once"
    assert list(tmp_path.iterdir()) == [tmp_path / "t.json"]


WRONG: list[tuple[Callable[[dict[str, Any]], object], str]] = [
    (lambda table: table.pop("expression"), "expression is missing"),
    (lambda table: table.update(expression="y(i) ="), "no truth table"),
    (lambda table: table.pop("points"), "points is missing"),
    (lambda table: table["points"].pop(0), "lacks the default schedule"),
    (lambda table: table["points"].append({"schedule": "unroll(j, 2)", "seconds": 1.0}), "point 4: the schedule .* has a point already"),
    (lambda table: table["points"].append({"schedule": "unrol(j, 2)", "seconds": 1.0}), "point 4: .*did you mean unroll"),
    (lambda table: table["points"][1].pop("seconds"), "point 2: seconds is None, but status is ok"),
    (lambda table: table["points"][1].update(seconds=-1), "seconds is -1"),
    (lambda table: table["points"][1].update(second=1), "point.'second' is not known"),
    (lambda table: table.update(schema=2), "this version reads 1"),
    (lambda table: table.update(threads=0), "threads is 0"),
]


@pytest.mark.parametrize(("change", "message"), WRONG)
def test_files_that_are_no_table(tmp_path: Path, change: Callable[[dict[str, Any]], object], message: str) -> None:
    table = json.loads(BY_HAND)
    change(table)
    (tmp_path / "t.json").write_text(json.dumps(table))
    with pytest.raises(DataError, match=message) as caught:
        read_table(tmp_path / "t.json")
    assert str(caught.value).splitlines()[0].startswith(str(tmp_path / "t.json"))


@pytest.mark.parametrize("content", [b"", b"\xff", b"[]", b"3", b"[" * 100_000])
def test_other_files(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "t.json").write_bytes(content)
    with pytest.raises(DataError, match="no truth table"):
        read_table(tmp_path / "t.json")
    with pytest.raises(DataError, match="cannot read"):
        read_table(tmp_path / "missing.json")
