"""The figures of the scheduling language: draws of templates, races of schedules, files, and the page that is made of them."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from sparsetune.compiler.concrete.concretize import concretize
from sparsetune.compiler.space.situation import Situation
from sparsetune.compiler.space.template_filters import DEFAULT
from sparsetune.compiler.space.templates import removed_by, templates
from sparsetune.datasets.generate import generate
from sparsetune.tuner.measure.finals import Comparison
from sparsetune.tuner.reports import schedule_races, scheduling
from sparsetune.tuner.reports.race import Pace, Series
from sparsetune.tuner.reports.records import Races, Row
from sparsetune.tuner.reports.rule_cases import RULE_CASES, RuleCase, problem_of_case
from sparsetune.tuner.reports.rule_loss import RuleLoss, rule_losses
from sparsetune.tuner.reports.rule_records import read_losses, write_losses
from sparsetune.tuner.reports.schedule_races import (
    HEAVIER,
    LIGHTER,
    ROWS,
    SHARES,
    SKEW_SCHEDULES,
    imbalance,
    predicted_factor,
    skew_race,
    spmspv_race,
)
from sparsetune.tuner.reports.scheduling_page import Figures, Outside, page, read_outside
from sparsetune.tuner.reports.skew_section import imbalance_chart
from sparsetune.tuner.reports.template_draws import groups_of

QUICK = Pace(0.0, 2, 2)
SMALL = RuleCase("y(i) = A(i,j) * x(j)", {"A": "csr"}, {"small": {"A": "random:uniform:60x50:nnz=300"}})


@pytest.fixture
def situation() -> Situation:
    problem = problem_of_case(SMALL, SMALL.inputs["small"], "small")
    found = concretize(problem.assignment, problem.formats)
    return Situation(found.program, found.formats, {})


# Rules


def test_the_shortest_templates_come_first(situation: Situation) -> None:
    found = groups_of(situation)[0].shortest(6)
    assert len(found) == 6
    assert "parallelize(i, cpu_thread, no_races)" in [template.text for template in found[:2]]
    assert not any(removed_by(template, DEFAULT["cpu"]) for template in found)


def test_what_a_rule_removes_is_compared_with_its_like(situation: Situation) -> None:
    """Loops keep their places and units; ``positions_are_split`` removes loops over positions, and so their like has none."""
    groups = {group.name: group for group in groups_of(situation)}
    sums = "parallelize(j, cpu_vector, parallel_reduction)"
    text = f"split(i, i0, i1, {{i}}); pos(j, jp, A); reorder(i1, i0, jp); {sums.replace('j,', 'jp,', 1)}"
    removed = next(one for one in groups["positions_are_split"].shortest(60) if one.text == text)
    assert {one.text for one in groups[""].plainer(removed)} == {sums, f"split(i, i0, i1, {{i}}); reorder(i1, i0, j); {sums}"}


def test_draws_are_all_templates_and_no_others(situation: Situation) -> None:
    problem = problem_of_case(SMALL, SMALL.inputs["small"], "small")
    listed = {template.text for template in templates(problem.assignment, problem.formats)}
    group, rng = groups_of(situation)[0], random.Random(1)
    drawn = [template.text for _ in range(len(listed) + 5) if (template := group.draw(rng)) is not None]
    assert sorted(drawn) == sorted(listed)
    assert group.estimate() == pytest.approx(len(listed), rel=0.3)


def test_what_a_rule_removes(situation: Situation) -> None:
    rng = random.Random(1)
    for group in groups_of(situation)[1:]:
        for _ in range(5):
            template = group.draw(rng)
            removed = removed_by(template, DEFAULT["cpu"]) if template is not None else [group.name]
            assert removed == ([group.name] if group.switched == "off" else []) or template is None


def test_losses_of_a_small_case(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(RULE_CASES, "small", SMALL)
    found = rule_losses("small", 1.0, QUICK)
    assert {loss.input for loss in found} == {"small"}
    assert all(loss.loss > -1 and loss.tried for loss in found)
    write_losses(tmp_path / "losses.csv", found)
    again = read_losses(tmp_path / "losses.csv")
    assert [(loss.rule, loss.default, loss.other) for loss in again] == [(loss.rule, loss.default, loss.other) for loss in found]


# Races


@pytest.mark.parametrize("skew", [0.5, 4])
def test_predicted_factor(skew: float) -> None:
    matrix = generate(f"random:skewed:2000x2000:nnz=1e5:skew={skew}")
    rows = matrix.to_coordinates()[0][0]
    heavier = np.mean(rows < 1000)
    assert 2 * heavier == pytest.approx(imbalance(skew), rel=0.02)
    assert predicted_factor(imbalance(skew)) == pytest.approx(imbalance(skew))
    together, alone = 2 * (1 - heavier) / 1.5, 2 * heavier - 1  # of the time of one thread, where two are 1.5 times as fast
    assert (together + alone) * 1.5 == pytest.approx(predicted_factor(imbalance(skew), 1.5), rel=0.02)


def test_schedules_that_are_raced(monkeypatch: pytest.MonkeyPatch) -> None:
    small = "random:skewed:200x200:nnz=2e3:skew={}"
    monkeypatch.setattr(schedule_races, "SKEWED", {"SpMV": {"skew {}": small}, "SpMM 32": {"skew {}": small}})
    for kernel, schedules in SKEW_SCHEDULES.items():
        found = [(row.threads, row.variant) for row in skew_race(kernel, "skew {}", 4, QUICK)]
        halves = [(1, name.replace(ROWS, half)) for half in (HEAVIER, LIGHTER) for name in schedules if ROWS in name]
        assert found == [(n, name) for n in (1, 2) for name in schedules] + halves
    monkeypatch.setattr(schedule_races, "SPMSPV_INPUTS", {"small": "random:uniform:300x200:nnz=2e3"})
    for sparse_result in (False, True):
        rows = spmspv_race("small", sparse_result, QUICK)
        assert ("SciPy, sparse vector", 1) in {(row.variant, row.threads) for row in rows}


# The page and the command


def row(figure: str, kernel: str, name: str, variant: str, *times: float, threads: int = 2) -> Row:
    return Row(figure, kernel, name, variant, threads, 0.5, "", Series(times))


def test_page() -> None:
    races = Races([
        row("skew", "SpMV", "skew 4", ROWS, 3.0, 3.0), row("skew", "SpMV", "skew 4", SHARES, 2.0, 2.0),
        row("skew", "SpMM 32", "skew 4", ROWS, 3.0, 3.0), row("skew", "SpMM 32", "skew 4", SHARES, 2.0, 2.0),
        row("skew", "SpMM 32", "skew 4", HEAVIER, 2.8, 2.8, threads=1), row("skew", "SpMM 32", "skew 4", LIGHTER, 0.7, 0.7, threads=1),
        row("skew", "SpMM 32", "skew 4", SHARES, 3.6, 3.6, threads=1),
        row("skew", "SpMV", "skew 8, long rows", ROWS, 3.6, 3.6), row("skew", "SpMV", "skew 8, long rows", SHARES, 2.0, 2.0),
    ])  # fmt: skip
    losses = [
        RuleLoss("SpMV", "uniform", "no_coord", "inefficient", "off", 12, 8, 0, Comparison(1.2, 1.1, 1.3), 1.2, "reorder(j, i)", ""),
        RuleLoss("SpMM", "uniform", "no_coord", "inefficient", "off", 12, 8, 0, Comparison(0.9, 0.8, 1.0), 0.95, "", "reorder(j, i)"),
    ]
    outside = [Outside("SpMV", "uni200k", 1, "TACO", "-O3", 3.0, 2.0, "by hand")]
    text = page(Figures(races, losses, outside))
    assert "Above 5% beyond noise: no_coord (SpMV, uniform: 20%)." in text
    assert "| `no_coord` | inefficient, off | 20% [10%] | -5% [-20%] |" in text
    assert "| SpMV | skew 4 | 3000 (3000) | 2000 (2000) | 1.50 [1.50, 1.50] | 1.50 | 1.76 |  |  |  |" in text
    assert "| SpMM 32 | skew 4 | 3000 (3000) | 2000 (2000) | 1.50 [1.50, 1.50] | 1.50 | 1.76 | 1.60 | 1.80 | 1.48 |" in text
    assert "| SpMV | skew 8, long rows | 3600 (3600) | 2000 (2000) | 1.80 [1.80, 1.80] | 1.80 | 1.96 |  |  |  |" in text
    assert "the position split reaches 92% to 92% of that" in text
    assert "| SpMV | uni200k | 1 | TACO | 3 | 2 | 1.50 |" in text
    assert "<svg" in imbalance_chart(races)
    assert not imbalance_chart(Races())


def test_command_writes_a_page_of_what_there_is(tmp_path: Path) -> None:
    (tmp_path / "scheduling_peers.csv").write_text(
        "kernel,input,threads,peer,flags,peer_ms,ours_ms,source\nSpMV,uni200k,1,TACO,-O3,3.0,2.0,2b8ece4\n"
    )
    assert len(read_outside(tmp_path / "scheduling_peers.csv")) == 1
    ended = CliRunner().invoke(scheduling.main, ["--results", str(tmp_path), "--only", "page"])
    assert ended.exit_code == 0, ended.output
    assert "TACO" in (tmp_path / "scheduling.md").read_text()


@pytest.mark.parametrize("options", [["--only", "hand"], ["--only", "hand", "--hand", "nowhere"]])
def test_hand_written_kernels_have_to_be_there(tmp_path: Path, options: list[str]) -> None:
    ended = CliRunner().invoke(scheduling.main, ["--results", str(tmp_path), *options])
    assert ended.exit_code == 1
    begun, said = ended.output.splitlines()
    assert begun == "hand ..."
    assert said.startswith("Error: ")
