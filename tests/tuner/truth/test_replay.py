"""Searching in a table: the same seed gives the same trials, and what is learned is of use."""

from __future__ import annotations

import itertools
import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
from sparsetune.tuner.records import Status
from sparsetune.tuner.truth.replay import TableSpace, replay
from sparsetune.tuner.truth.table import TablePoint, TruthTable, write_table

SIZES = (2, 4, 8, 16, 32, 64, 128, 256)
SPMV = "y(i) = A(i,j) * x(j)"


def decoy(kept: float = 1.0) -> TruthTable:
    """A table of two templates: a broad valley with a shallow floor, and a narrow one that is deeper; a share of the points is kept."""
    draw = random.Random(0)
    points = [TablePoint(schedule="", seconds=10.0)]
    for split, unroll in itertools.product(SIZES, SIZES):
        if draw.random() < kept:
            broad = 4 + 0.1 * abs(split.bit_length() - 4) + 0.1 * abs(unroll.bit_length() - 4)
            points.append(TablePoint(schedule=f"split(j, j0, j1, {split}); unroll(j1, {unroll})", seconds=broad))
            deep = 1 + 2 * abs(split.bit_length() - 7) + 2 * abs(unroll.bit_length() - 3)
            points.append(TablePoint(schedule=f"split(i, i0, i1, {split}); unroll(j, {unroll})", seconds=deep))
    points.append(TablePoint(schedule="unroll(i, 2)", status=Status.CRASH))
    return TruthTable(expression=SPMV, points=tuple(points))


def sequence(table: TruthTable, trials: int, seed: int) -> list[str]:
    return [step.point.schedule for step in replay(table, trials, seed).steps]


@pytest.mark.parametrize("kept", [1.0, 0.4])
def test_the_same_seed_gives_the_same_trials(kept: float) -> None:
    table = decoy(kept)
    first = sequence(table, 30, 7)
    assert first == sequence(table, 30, 7)
    assert first != sequence(table, 30, 8)
    assert first[0] == ""
    assert len(first) == len(set(first)) == 30


def test_all_of_a_small_table_is_tried() -> None:
    table = decoy(0.1)
    found = replay(table, 1000, 0)
    assert sorted(step.point.schedule for step in found.steps) == sorted(point.schedule for point in table.points)
    assert found.best == table.best
    assert found.failed == 1


def test_searching_beats_drawing() -> None:
    table = decoy()
    best = sum(replay(table, 40, seed).best.seconds or 0.0 for seed in range(5)) / 5
    draws = [min(random.Random(seed).sample([point.seconds or 99.0 for point in table.points], 40)) for seed in range(200)]
    assert best < sum(draws) / len(draws)


def test_numbers_are_parameters() -> None:
    space = TableSpace.of([point.schedule for point in decoy(0.4).points])
    assert len(space.templates) == 4
    assert space.size == len(decoy(0.4).points)
    assert sorted(space.schedule(place) for place in space.points()) == sorted(point.schedule for point in decoy(0.4).points)


def test_what_the_static_model_ranks_first_is_tried_first() -> None:
    table = decoy()
    deep = [replace(point, expected=1.0 if point.schedule.startswith("split(i,") else 2.0) for point in table.points]
    assert sequence(table, 2, 0)[1].startswith("split(j,")
    assert sequence(replace(table, points=tuple(deep)), 2, 0)[1].startswith("split(i,")


def test_the_best_so_far_only_falls() -> None:
    steps = replay(decoy(), 30, 0).steps
    assert [step.number for step in steps] == list(range(30))
    assert all(step.best == min(one.point.seconds or 99.0 for one in steps[: number + 1]) for number, step in enumerate(steps))


def test_the_command(call, tmp_path: Path) -> None:
    path = str(tmp_path / "t.json")
    write_table(Path(path), decoy())
    status, out, _ = call("tune", "--replay", path, "--trials", "20", "--seed", "3", "--json")
    found = json.loads(out)
    assert status == 0
    expected = ["expression", "machine", "target", "threads", "stages", "trials", "failed_trials", "default_time", "best_time", "speedup"]
    assert list(found)[: len(expected)] == expected
    assert [one["schedule"] for one in found["sequence"]] == sequence(decoy(), 20, 3)
    assert json.loads(call("tune", "z(a) = B(a,b) * v(b)", "--replay", path, "--trials", "20", "--seed", "3", "--json")[1]) == found
    status, _, err = call("tune", "y(i) = A(i,j) * B(i,j)", "--replay", path)
    assert (status, "is a table of 'y(i) = A(i,j) * x(j)'" in err) == (2, True)
    status, _, err = call("tune")
    assert (status, "missing argument 'EXPR'" in err) == (2, True)
