"""The report on sparse convolutions: what it runs agrees, orders end where the paper's do, and what is there is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sparsetune as st
from click.testing import CliRunner
from sparsetune.tuner.reports import convolution, convolution_cases
from sparsetune.tuner.reports.convolution import Point, crossing, main, page, points, write
from sparsetune.tuner.reports.convolution_cases import PARTS, Contest, entries, orders_of
from sparsetune.tuner.reports.convolution_layers import Layer
from sparsetune.tuner.reports.race import Pace
from sparsetune.tuner.reports.sparsifier import module, programs

IMAGES = np.random.default_rng(2).random((3, 6, 7)) * (np.random.default_rng(3).random((3, 6, 7)) < 0.3)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "SHAPES": {1: (60,), 2: (12, 12)}, "SPARSITIES": (0.9,), "PATTERNS": ("random:stencil5:4x4",), "PICTURES": ("images", "missing"),
        "LAYER_SPARSITIES": (0.9,), "FIRST": (Layer(6, 4, 3, 8),), "RESNET50": (Layer(7, 3, 3, 8, 2),),
    }.items():  # fmt: skip
        monkeypatch.setattr(convolution_cases, name, value)
    load = convolution_cases.load_input
    here = {"images": lambda: st.tensor(IMAGES, "dss"), "missing": lambda: None}
    monkeypatch.setattr(convolution_cases, "load_input", lambda name: here.get(name, lambda: load(name))())


def invoke(results: Path, *options: str) -> Any:
    return CliRunner().invoke(main, ["--results", str(results), *options], catch_exceptions=False)


def test_orders_are_those_of_the_paper() -> None:
    assert orders_of(1) == ("i,p", "p,i")
    assert len(orders_of(2)) == len(orders_of(3)) == 6
    assert sum(order[-1] in "ijk" for order in orders_of(3)) == 3


@pytest.mark.cc
@pytest.mark.parametrize("part", PARTS)
def test_all_that_runs_in_one_contest_computes_the_same(part: str) -> None:
    made = [entry.made(0.5) for entry in entries() if entry.part == part]
    found = [contest for contest in made if contest is not None]
    missing = len(made) if part == "sparsifier" and programs() is None else part == "rivals"  # the picture
    assert len(made) - len(found) == missing
    for contest in found:
        results = {who: np.asarray(run()) for who, run in contest.runs.items() if who != "scipy.ndimage"}
        results = {who: result[0, 0] if result.ndim > contest_order(contest) else result for who, result in results.items()}
        first = next(iter(results.values()))
        assert all(np.allclose(np.squeeze(result), np.squeeze(first)) for result in results.values())
        assert set(contest.visited) <= set(contest.runs)
        assert all(contest.visited.values())


def contest_order(contest: Contest) -> int:
    return {"1-D": 1, "2-D": 2, "3-D": 3}.get(contest.case, 9)


@pytest.mark.cc
def test_what_was_measured_is_on_the_page_and_not_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convolution_cases, "SPARSITIES", (0.8, 0.9))
    options = ("--part", "orders", "--seconds", "0.01")
    assert invoke(tmp_path, *options).exit_code == 0
    first = (tmp_path / "convolutions.md").read_text()
    for text in ("### orders: 2-D", "| 1-D | p,i |", "![2-D](convolutions_2-D.svg)"):
        assert text in first
    assert (tmp_path / "convolutions_2-D.svg").is_file()
    monkeypatch.setattr(convolution, "points", None)
    assert invoke(tmp_path, *options).exit_code == 0
    assert invoke(tmp_path, "--page").exit_code == 0
    assert (tmp_path / "convolutions.md").read_text() == first


@pytest.mark.cc
def test_a_run_ends_when_its_time_is_up(tmp_path: Path) -> None:
    run = invoke(tmp_path, "--minutes", "0")
    assert "time is up" in run.stderr
    assert "nothing was measured" in run.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.cc
def test_counts_are_made_without_times(tmp_path: Path) -> None:
    assert invoke(tmp_path, "--part", "layers", "--counts").exit_code == 0
    assert "6x6x4, 3x3x8, 1 thread" in (tmp_path / "convolutions.md").read_text()


def test_what_the_page_says_follows_from_the_rows(tmp_path: Path) -> None:
    ours, other = {0.5: 3.0, 0.8: 1.0, 0.99: 0.1}, {0.5: 1.0, 0.8: 2.0, 0.99: 0.4}
    assert crossing(ours, other) == "0.8"
    assert crossing(other, ours) == "never"
    rows = [Point(part="rivals", case="2-D", who="ours", sparsity=share, seconds=value) for share, value in ours.items()]
    rows += [Point(part="rivals", case="2-D", who="torch", sparsity=share, seconds=value) for share, value in other.items()]
    assert "| 2-D | torch | from 0.8 |  | 4.00 |" in page(rows)
    orders = {"i": 2.0, "p": 1.0, "untuned": 1.1, "tuned": 1.0}
    patterns = [Point(part="patterns", case="x", who=who, sparsity=0.9, seconds=value) for who, value in orders.items()]
    assert "| x | p | 2.00 | 1.10 | 1.00 |" in page(patterns)
    write(patterns, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["convolutions.md"]


@pytest.mark.cc
def test_times_stand_beside_what_is_visited() -> None:
    contest = next(entries()).made(0.5)
    assert contest is not None
    found = points("orders", contest, Pace(0.01, 1, 1))
    assert {one.who for one in found} == set(contest.runs)
    assert all(one.seconds > 0 for one in found)
    assert f"({contest.visited['sparse p,i']})" in page(found)


def test_what_the_sparsifier_is_given() -> None:
    """The encoding of the operand, affine maps of all reads, and arrays in the order of the arguments."""
    image = st.tensor(np.eye(4)[None], "dss")
    text, given = module("y(n,i) = B(n,2*i+p,i) * F(p)", {"B": image, "F": np.ones(3)}, (1, 1))
    assert "map = (d0, d1, d2) -> (d0 : dense, d1 : compressed, d2 : compressed)" in text
    assert "affine_map<(n, i, p) -> (n * 1 + 0, i * 2 + p * 1 + 0, i * 1 + 0)>, affine_map<(n, i, p) -> (p * 1 + 0)>" in text
    assert 'iterator_types = ["parallel", "parallel", "reduction"]' in text
    assert [one.type for one in given] == ["tensor<?xi32>"] * 4 + ["tensor<?xf64>", "tensor<3xf64>"]
    assert [one.array.size for one in given] == [2, 4, 5, 4, 4, 3]


def test_the_page_has_what_the_sparsifier_takes() -> None:
    taken = {("ours", 0.97): 1.0, ("MLIR", 0.97): 2.0, ("ours", 0.5): 3.0, ("MLIR", 0.5): 2.0}
    rows = [Point(part="sparsifier", case="1-D", who=who, sparsity=share, seconds=value) for (who, share), value in taken.items()]
    assert "## MLIR's sparsifier" in page(rows)
    assert "| 1-D | MLIR | from 0.97 | 2.00 |  |" in page(rows)
