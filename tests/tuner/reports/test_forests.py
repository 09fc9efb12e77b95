"""The report on forests: NumPy's compositions are right, all that runs in one contest agrees, and what is there is kept."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from sparsetune.compiler.build.bound import BoundKernel
from sparsetune.compiler.notation.nodes import accesses
from sparsetune.compiler.schedule.schedule import Schedule
from sparsetune.compiler.storage.tensor import Tensor
from sparsetune.tuner.kernels import Candidate, compile_problem
from sparsetune.tuner.reports import forest_contest, forest_parts, forests
from sparsetune.tuner.reports.forest_cases import FAMILY, Case, composed, four_cases
from sparsetune.tuner.reports.forests import contestants, main
from sparsetune.tuner.reports.forests_page import page
from sparsetune.tuner.reports.race import Pace, race

SMALL = {2: "random:uniform:9x9:nnz=30", 3: "random:uniform:7x6x5:nnz=30", 4: "random:uniform:5x6x4x5:nnz=40",
         5: "random:uniform:4x5x4x3x4:nnz=50", 6: "random:uniform:3x3x3x3x3x3:nnz=60"}  # fmt: skip


def small(name: str) -> Case:
    own, text, sources, dims, hand = next(one for one in FAMILY if one[0] == name)
    source = SMALL[sources[0].partition(":nnz")[0].count("x") + 1 if "x" in sources[0] else 2]
    return Case(own, text, source, {index: 2 + place for place, index in enumerate(dims)}, hand)


def values(result: object) -> np.ndarray:
    """Return what a run gives, of a result on the pattern of an operand what it stores."""
    return result.to_coordinates()[1] if isinstance(result, Tensor) else np.asarray(result)


@pytest.mark.parametrize("name", [one[0] for one in FAMILY])
def test_compositions_are_right(name: str) -> None:
    problem = small(name).problem()
    assignment = problem.assignment
    factors = list(dict.fromkeys(accesses(assignment.value)))
    text = ",".join("".join(access.indices) for access in factors) + "->" + "".join(assignment.target.indices)
    right = np.einsum(text, *(problem.operands[access.tensor].to_numpy() for access in factors))
    if assignment.target.tensor == "S":
        places, stored = problem.operands["T"].to_coordinates()
        right = right[tuple(places)]
        right = stored - right if name == "completion residual" else right
    assert np.allclose(right, composed(problem)())


def test_all_that_runs_agrees() -> None:
    case = small("SDDMM-SpMM")
    problem = case.problem()
    found = contestants(case, problem)
    assert {"default", "chosen", "spttn", "sparseauto", "by hand 1", "forest 1 of all", "forest 1 of least depth"} <= set(found)
    results = [values(compile_problem(problem, found[who]).bind(problem.operands, 1)()) for who in ("chosen", "spttn", "by hand 1")]
    assert all(np.allclose(result, results[0]) for result in results)


def test_what_was_measured_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [replace(case, source="random:uniform:6x7x8:nnz=40", dims=dict.fromkeys("lmn", 3)) for case in four_cases()][:1]
    monkeypatch.setattr(forests, "CASES", {"SpMMH-GEMM, small": replace(small("SpMMH-GEMM"), name="SpMMH-GEMM, small")})
    monkeypatch.setattr(forests, "four_cases", lambda: cases)
    monkeypatch.setattr(forests, "TABLE_2", {"SpMM-GEMM": forests.TABLE_2["SpMM-GEMM"]})
    monkeypatch.setattr(forest_parts, "BUFFERED", replace(forest_parts.BUFFERED, source="random:uniform:6x7x8:nnz=40"))
    monkeypatch.setattr(forests, "GROWING", replace(forests.GROWING, source="random:uniform:6x7x8:nnz=40"))
    monkeypatch.setattr(forests, "LENGTHS", (2, 3))
    monkeypatch.setattr(forests, "SHALLOW", 1)
    monkeypatch.setattr(forests, "LISTED", 1)
    options = ["--results", str(tmp_path), "--seconds", "0.001"]
    assert CliRunner().invoke(main, options, catch_exceptions=False).exit_code == 0
    first = (tmp_path / "forests.md").read_text()
    assert "| SpMM-GEMM |" in first
    assert "of these" in first
    assert "SpMMH-GEMM, small" in first
    assert "| buffers: TTMc3 | a row, 1 thread |" in first
    assert "no depth poset" in first
    assert "modes of 3 |" in first
    monkeypatch.setattr(forests, "contest", None)
    assert CliRunner().invoke(main, options, catch_exceptions=False).exit_code == 0
    assert (tmp_path / "forests.md").read_text() == first
    assert CliRunner().invoke(main, [*options, "--again", "stages"], catch_exceptions=False).exit_code == 0
    assert (tmp_path / "forests.md").read_text() == first, "all was measured in this state"
    kept = tmp_path / "forests.csv"
    with kept.open(newline="") as file:
        rows = [{**row, "commit": "old" if row["part"] == "stages" else row["commit"]} for row in csv.DictReader(file)]
    with kept.open("w", newline="") as file:
        table = csv.DictWriter(file, rows[0])
        table.writeheader()
        table.writerows(rows)
    shown = CliRunner().invoke(main, [*options, "--again", "stages"], catch_exceptions=False).output
    assert "stages: SpMM-GEMM (1 of 1, 0 of 60 minutes)" in shown
    assert "old" not in kept.read_text()
    assert (tmp_path / "forests.md").read_text().count("| SpMM-GEMM |") == first.count("| SpMM-GEMM |")
    kept.write_text("".join(line.replace(f"cases,{cases[0].name}", "cases,a share of another cache") for line in kept.open()))
    monkeypatch.setattr(forests, "four_cases", lambda: ())
    assert CliRunner().invoke(main, options, catch_exceptions=False).exit_code == 0
    assert "a share of another cache" in (tmp_path / "forests.md").read_text()
    assert CliRunner().invoke(main, [*options, "--again", "cases"], catch_exceptions=False).exit_code == 0
    assert "a share of another cache" not in kept.read_text() + (tmp_path / "forests.md").read_text()


def test_terms_share_the_outermost_loop_at_most() -> None:
    problem = small("MTTKRP3 mode 1").problem()
    found = forest_parts.shared(small("MTTKRP3 mode 1"), Pace(0.001, 1, 1))
    assert set(found) == {"all loops shared, 1 thread", "the outermost shared, 1 thread"}
    space = forests.Forests(problem.assignment, problem.formats, forests.ForestRules(fused=False))
    for forest in set(space.sample_forests(20, 3)):
        loose = forest_parts.apart(forest)
        assert loose.path == forest.path
        assert all(edge.shared <= 1 for edge in loose.edges)


def test_results_on_a_pattern_ask_for_no_room_over_all_places() -> None:
    case = replace(small("TTTP3"), source="random:uniform:30000x40000x50000:nnz=100")
    assert composed(case.problem())().shape == (100,)


def test_contestants_that_convert_operands_do_so_in_every_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """What converts was raced on operands that were converted before, and looked faster than a call of it is."""
    case = small("two factors of one index")
    bound, bind = list[str](), Candidate.bind

    def counted(one: Candidate, *given: Any) -> BoundKernel:
        bound.append(str(one.compiled.schedule))
        return bind(one, *given)

    monkeypatch.setattr(Candidate, "bind", counted)
    schedules = {"default": Schedule(), "chosen": Schedule('convert(E, "dense, dense; 1, 0")')}
    points = forest_contest.contest("family", case, schedules, case.problem(), {}, Pace(0.001, 3, 3))
    assert {one.who for one in points} == set(schedules)
    assert bound.count("") == 1
    assert bound.count(str(schedules["chosen"])) >= 1 + 3


def test_contestants_of_one_schedule_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The choice among nests and the nest that it is had two times, where the choice from all was far faster: both were timed once."""
    case, raced = small("SpMMH-GEMM"), list[str]()
    nest = Schedule(case.hand[0])
    alone = {"": 0.001, str(nest): 0.02, "near the nest": 0.03, "hopeless": 0.1}
    functions = {name: (lambda name=name: name) for name in alone}

    def counted(runs: dict[str, Callable[[], Any]], pace: Pace) -> dict[str, Any]:
        raced.extend(runs)
        return race(runs, pace)

    monkeypatch.setattr(forest_contest.OneMemory, "call", lambda memory, schedule: functions[str(schedule)])
    monkeypatch.setattr(forest_contest, "least_of", lambda run, *counts: alone[run()])
    monkeypatch.setattr(forest_contest, "race", counted)
    schedules = {"nest a": nest, "of these (nest a)": nest, "chosen": Schedule()}
    others = {name: functions[name] for name in ("near the nest", "hopeless")}
    points = forest_contest.contest("cases", case, schedules, case.problem(), others, Pace(0.001, 3, 3))
    found = {one.who: one.seconds for one in points}
    assert list(found) == [*schedules, *others]
    assert found["nest a"] == found["of these (nest a)"] != alone[str(nest)]
    assert sorted(raced) == sorted(["", str(nest), "near the nest"])
    assert f"| {1e3 * found['nest a']:.3g} | nest a | {1e3 * found['chosen']:.3g} |" in page(points)


def test_what_would_never_end_does_not_run(capsys: pytest.CaptureFixture[str]) -> None:
    case = replace(small("TTTP3"), source="random:uniform:300x400x500:nnz=100")
    endless = forests.Schedule("precompute(U(i,r) * V(j,r) * W(k,r), [i, j, k], [i, j, k], w)")
    assert set(forest_contest.hopeful(case, case.problem(), {"chosen": forests.Schedule(), "endless": endless})) == {"chosen"}
    assert "endless is left out" in capsys.readouterr().err
