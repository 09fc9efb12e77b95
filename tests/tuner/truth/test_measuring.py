"""Tables that are measured: on fake kernels whose times are known, and one of real ones."""

from __future__ import annotations

import json
from pathlib import Path
from unittest import mock

import pytest
from sparsetune.compiler.native.toolchain import available_compilers
from sparsetune.tuner.database import open_database
from sparsetune.tuner.measure.worker_process import Worker
from sparsetune.tuner.records import SAMPLE, Status
from sparsetune.tuner.truth import measuring
from sparsetune.tuner.truth.measuring import measure_table
from sparsetune.tuner.truth.table import TruthTable, read_table
from tuner_campaigns import ALL, FAKE, GOOD, SETTINGS, space_of, spmv


def tabulate(path: Path, points: int, codes=GOOD, seed: int = 0) -> TruthTable:
    problem = spmv()
    space = space_of(problem, codes), []
    with (
        mock.patch.object(measuring, "surviving_space", return_value=space),
        open_database(path.with_suffix(".sqlite")) as store,
        Worker(1, FAKE) as worker,
    ):
        return measure_table(problem, store, worker, path, points, SETTINGS, seed)


def test_a_small_space_is_measured_whole(tmp_path: Path) -> None:
    table = tabulate(tmp_path / "t.json", 100, ALL)
    assert read_table(tmp_path / "t.json") == table
    assert {point.schedule for point in table.points} == {"", *(f"unroll(j, {code})" for code in ALL)}
    assert table.best.schedule == "unroll(j, 2)"
    assert table.best.seconds == pytest.approx(0.001, rel=0.01)
    assert [point.origin for point in table.points] == ["default"] + ["space"] * len(ALL)
    assert {point.status for point in table.points} >= {Status.OK, Status.CRASH, Status.WRONG}
    assert all(len(sample) == len(SAMPLE) for point in table.points for sample in point.samples)
    assert (table.expression, table.threads, table.space) == ("y(i) = A(i,j) * x(j)", 1, 1 + len(ALL))
    assert table.policy == SETTINGS.policy.as_dict()
    assert all((point.expected is None) == (point.status is Status.ILLEGAL) for point in table.points)


def test_equal_code_does_not_count(tmp_path: Path) -> None:
    table = tabulate(tmp_path / "t.json", 3)
    assert len({point.source for point in table.points}) == 3


def test_points_are_built_together(tmp_path: Path) -> None:
    with mock.patch.object(Worker, "ask", autospec=True, side_effect=Worker.ask) as asked:
        table = tabulate(tmp_path / "t.json", 100, ALL)
    built = [call.kwargs["schedules"] for call in asked.call_args_list if call.args[2] == "build"]
    assert max(map(len, built)) == len(ALL)
    assert len(built) < len(table.points) / 2


def test_measuring_goes_on_and_depends_on_the_seed_alone(tmp_path: Path) -> None:
    first, second = tabulate(tmp_path / "t.json", 2), tabulate(tmp_path / "t.json", 4)
    assert second.points[: len(first.points)] == first.points
    assert [point.schedule for point in tabulate(tmp_path / "u.json", 4).points] == [point.schedule for point in second.points]


@pytest.mark.skipif(not available_compilers(), reason="needs a C compiler")
def test_the_command(call, own_database: Path, tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    arguments = ("tune", "y(i) = A(i,j) * x(j)", "-i", "A=random:uniform:60x50:nnz=300", "--threads", "2")
    status, out, _ = call(*arguments, "--table", str(path), "--points", "4", "--json")
    found = json.loads(out)
    assert status == 0
    table = read_table(path)
    assert found["points"] == len(table.points) >= 4
    assert any(point.origin == "library" for point in table.points)
    assert table.created
    assert table.machine
    assert call("tune", "--replay", str(path), "--trials", "3")[0] == 0
