"""The report on decisions: its items, what it measures and keeps, and what its pages count."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from sparsetune.compiler.errors import ShapeError
from sparsetune.compiler.native.machine import this_machine
from sparsetune.compiler.native.toolchain import available_compilers
from sparsetune.tuner.database import open_database
from sparsetune.tuner.environment import commit
from sparsetune.tuner.reports import decision_cases as cases
from sparsetune.tuner.reports import decision_races, decisions
from sparsetune.tuner.reports.decision_cases import CASES, Item, items, mixed, problem_of, spread
from sparsetune.tuner.reports.decision_races import Figure, without_figures
from sparsetune.tuner.reports.decisions_page import decisions_page
from sparsetune.tuner.reports.kernels_page import kernels_page
from sparsetune.tuner.reports.partial import Partial
from sparsetune.tuner.settings import Budget

SMALL = {"matrix": ["random:uniform:60x60:nnz=300", "random:uniform:90x50:nnz=400"], "tensor": ["random:uniform:20x20x20:nnz=300"]}


def decided(day: str) -> SimpleNamespace:
    return SimpleNamespace(created=f"{day}T09:00:00.000+00:00")


def figure(column: str, speed: float, kernel: str = "SpMV", **changes) -> Figure:
    usual = Figure(kernel, "cage10", "float64", 2, column, 1e-3 / speed, speed, speed - 0.02, speed + 0.02, speed, speed, speed, "", "", 0,
                   0.5, "", machine="test", date="2026-01-01", commit="abc")  # fmt: skip
    return replace(usual, **changes)


ROWS = [
    figure("default", 1.0), figure("static", 0.9, schedule="unroll(j, 4)"), figure("looked up", 1.1, origin="similar"),
    figure("tuned", 1.25), figure("scipy", 0.5), figure("mkl", 1.0),
]  # fmt: skip


def test_every_beginning_of_the_items_is_a_picture_of_the_whole() -> None:
    assert spread([0, 1, 2, 3, 4, 5]) == [0, 4, 2, 1, 5, 3]
    assert mixed([1, 2, 3], [8, 9], 2) == [1, 2, 8, 3, 9]
    names = {"matrix": [f"m{place}" for place in range(9)], "tensor": ["t0", "t1"]}
    found = items(names, {})
    matrices = [case for case in CASES.values() if case.sparse == "A"]
    assert len(found) == len(set(found)) == 4 * (9 * len(matrices) + 2 * (len(CASES) - len(matrices)))
    first = found[: 2 * len(CASES)]
    assert {item.kernel for item in first} == set(CASES)
    assert {item.threads for item in first} == {1, 2}
    assert {item.input for item in first} == {*names["matrix"], *names["tensor"]}
    assert sum(item.dtype == "float32" for item in found[: len(found) // 2]) < len(found) // 5


def test_what_matters_most_comes_first_an_input_after_the_other() -> None:
    names = {"matrix": [f"m{place}" for place in range(9)], "tensor": ["t0", "t1"]}
    first = {"SpMV": ["m4", "m2"], "TTV": ["t1"]}
    begun = [("SpMV", "m4", 2), ("SpMV", "m4", 1), ("TTV", "t1", 2), ("TTV", "t1", 1), ("SpMV", "m2", 2), ("SpMV", "m2", 1)]
    wanted = [Item(kernel, name, dtype, threads) for dtype in ("float64", "float32") for kernel, name, threads in begun]
    found = items(names, first)
    assert found[: len(wanted)] == wanted
    assert set(found) == set(items(names, {}))
    assert len(found) == len(set(found))
    assert list(cases.stages(first)) == wanted
    assert [*cases.stages(first).values()] == [0] * 6 + [1] * 6


def test_first_inputs_are_small_files_that_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARSETUNE_DATA", str(tmp_path))
    monkeypatch.setattr(cases, "LEAST_BYTES", 0)
    monkeypatch.setattr(cases, "FIRST_BYTES", 200)
    head = "%%MatrixMarket matrix coordinate real general\n"
    for name, rows, entries in (("wide", 2, 1), ("square", 3, 2), ("large", 3, 99)):
        (tmp_path / f"{name}.mtx").write_text(f"{head}{rows} 3 {entries}\n" + "1 1 1.0\n" * entries)
    (tmp_path / "cube.tns").write_text("1 1 1 1.0\n")
    found = cases.first_inputs()
    assert set(found) == set(cases.FIRST)
    assert (sorted(found["SpMV"]), found["SpGEMM A*A"], found["TTV"]) == (["square", "wide"], ["square"], ["cube"])


@pytest.mark.parametrize(
    ("kernel", "source", "said"),
    [
        ("SpMV", "random:uniform:9x9x9:nnz=40", "it is of order 3"),
        ("SpGEMM A*A", "random:uniform:60x50:nnz=300", "it is not square"),
        ("SpGEMM A*A^T", "random:uniform:60x50:nnz=3000", "products, more than 1e+03"),
        ("SpMM 32", "random:uniform:60x50:nnz=300", "elements, more than 1e+03"),
    ],
)
def test_inputs_that_do_not_fit_are_told(kernel: str, source: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases, "MOST_PRODUCTS", 1e3)
    monkeypatch.setattr(cases, "MOST_ELEMENTS", 1e3)
    with pytest.raises(ShapeError, match=said.replace("+", r"\+")):
        problem_of(Item(kernel, source, "float64", 1))


@pytest.mark.parametrize("kernel", CASES)
def test_every_case_is_a_problem_of_its_type(kernel: str) -> None:
    source = {"A": "random:uniform:40x40:nnz=99", "T": "random:uniform:9x9x9:nnz=99"}[CASES[kernel].sparse]
    problem = problem_of(Item(kernel, source.replace("9x9x9", "9x9x9x9") if "order 4" in kernel else source, "float32", 2))
    assert (problem.workload.dtype, problem.threads, problem.name[:7]) == ("float32", 2, "random:")


def test_pages_count_what_is_measured() -> None:
    wanted = [ROWS[0].item, Item("SpMV", "copter2", "float64", 2), Item("SpMV", "other", "float64", 2), Item("TTV", "t", "float64", 2)]
    rows = [*ROWS, without_figures(wanted[2], "left out", ShapeError("it is of order 3\nand more")),
            without_figures(wanted[3], "failed", ShapeError("no time"))]  # fmt: skip
    shown = decisions_page(rows, wanted, "command")
    assert "1 of 3 items measured: 1 of 18 kernels, 1 real and 0 generated inputs.\n1 items were left out" in shown
    assert "1 static choices, 0 lookups" in shown
    assert "| SpMV | cage10 | float64 | 2 | static | 0.90 [0.88, 0.92] | `unroll(j, 4)` |" in shown
    assert "| SpMV | cage10 | float64 | 2 | 1 | 0.90 [0.88, 0.92] | 1.10 [1.08, 1.12] | similar | 1.25 [1.23, 1.27] |" in shown
    assert "- TTV, t, float64, 2 threads: no time\n" in shown
    beside = kernels_page(rows, wanted, "command")
    assert "| SpMV | cage10 | float64 | 2 | MKL | 0.90 | 1.25 |  |  |  |  |  |  |" in beside
    counted = replace(rows[1], bytes=9_000_000, flops=2_500_000, loads=3_750_000, iterations=1_000_000, largest_share=1.25)
    beside = kernels_page([rows[0], counted, *rows[2:]], wanted, "command")
    assert "| SpMV | cage10 | float64 | 2 | MKL | 0.90 | 1.25 | 8.1 | 9.0 | 2.5e+06 | 3.75e+06 | 1e+06 | 1.25 |" in beside
    assert "| SpMV | float64, 2 | 1 | tuned | 1.25 | 1.25 |" in beside
    assert "| kernel | input | type | threads | default | static | tuned | SciPy | MKL | MKL unsorted | PyData/sparse |" in beside
    assert "](kernels.svg)" in beside
    assert "what a campaign on this input decided. They" in shown
    spent = [*ROWS[:3], replace(ROWS[3], trials=12, tuning=2.75)]
    assert "decided after 12 trials (12 to 12) in\n2.8 s (2.8 to 2.8) (1 campaigns have" in decisions_page(spent, wanted, "command")
    assert "None." in decisions_page([], wanted, "command")
    assert "0 of 4 items" in kernels_page([], wanted, "command")


def test_rows_of_another_machine_are_marked_and_count_in_no_mean() -> None:
    older = [replace(row, input="copter2", machine="old", speed=9.0, high=0.5) for row in ROWS[:3]]
    shown = decisions_page([*older, *ROWS], [ROWS[0].item], "command")
    assert "- (b) old, 2026-01-01, commit abc: 3 rows" in shown
    assert "| SpMV (b) | copter2 |" in shown
    assert "| SpMV | float64 | 2 | 1 | 0.900 (0.90) |" in shown
    assert "1 static choices, 0 lookups" in shown


def test_what_another_machine_has_raced_is_raced_here(tmp_path: Path) -> None:
    item, kept = ROWS[0].item, Partial(tmp_path / "rows.csv", Figure)
    kept.rows = [replace(row, machine="another") for row in ROWS]
    with open_database(str(tmp_path / "d.sqlite")) as store:
        run = decisions.Run(store, kept, Budget(trials=1, seconds=1.0), (), [item], {})
        run.tuned = {item: decided("2026-01-01")}  # type: ignore[dict-item]  # which is hardly looked at
        assert list(run._to_race()) == [item]
        kept.rows = [replace(row, machine=this_machine().model, commit=commit()) for row in ROWS]
        assert list(run._to_race()) == []
        run.tuned = {item: decided("2999-01-01")}  # type: ignore[dict-item]
        assert list(run._to_race()) == [item]  # tuned since


def test_what_is_missing_is_raced_first_then_the_oldest(tmp_path: Path) -> None:
    named = {name: Item("SpMV", name, "float64", 2) for name in ("recent", "old", "older", "missing")}
    kept, here = Partial(tmp_path / "rows.csv", Figure), this_machine().model
    days = {"old": "2026-01-03", "older": "2026-01-02", "recent": "2026-01-04"}
    kept.rows = [replace(ROWS[3], input=name, machine=here, date=day, known=9) for name, day in days.items()]
    kept.rows[-1] = replace(kept.rows[-1], commit=commit())
    with open_database(str(tmp_path / "d.sqlite")) as store:
        run = decisions.Run(store, kept, Budget(trials=1, seconds=1.0), (), list(named.values()), {})
        run.tuned = dict.fromkeys(named.values(), decided("2026-01-01"))  # type: ignore[arg-type]  # which are hardly looked at
        assert [item.input for item in run._to_race()] == ["missing", "older", "old"]


def test_what_more_is_known_of_is_raced_between_tunings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = [Item("SpMV", name, "float64", 2) for name in ("first", "second", "third", "fourth")]
    kept, raced = Partial(tmp_path / "rows.csv", Figure), list[Item]()
    kept.rows = [replace(ROWS[3], input="first", machine=this_machine().model, date="2999-01-01", known=1)]
    monkeypatch.setattr(decisions.Run, "_race", lambda run, item: raced.append(item))
    monkeypatch.setattr(decisions.Run, "tune", lambda run, until: run.tuned.update(dict.fromkeys(wanted[:3], decided("2026-01-01"))))
    monkeypatch.setattr(decisions, "_SLICE", 0.01)
    with open_database(str(tmp_path / "d.sqlite")) as store:
        run = decisions.Run(store, kept, Budget(trials=1, seconds=1.0), (), wanted, {})
        run.tune_and_race(time.monotonic() + 0.02, 0.5)
    assert raced[:3] == [wanted[1], wanted[2], wanted[0]]


def test_what_has_no_rows_is_tuned_first_then_what_has_the_oldest(tmp_path: Path) -> None:
    names = ("recent", "older", "new", "newer")
    wanted, kept = [Item("SpMV", name, "float64", 2) for name in names], Partial(tmp_path / "rows.csv", Figure)
    kept.rows = [replace(ROWS[3], input=name, date=day) for name, day in (("recent", "2026-01-04"), ("older", "2026-01-02"))]
    with open_database(str(tmp_path / "d.sqlite")) as store:
        run = decisions.Run(store, kept, Budget(trials=1, seconds=1.0), (), wanted, {})
        assert [item.input for item in run._untuned()] == ["new", "newer", "older", "recent"]
        run._stages = {wanted[3]: 1, wanted[0]: 0}
        assert [item.input for item in run._untuned()] == ["recent", "newer", "new", "older"]


@pytest.mark.skipif(not available_compilers(), reason="needs a C compiler")
def test_a_stopped_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases, "inputs", lambda: SMALL)
    monkeypatch.setattr(decision_races, "_PACE", decision_races.Pace(0.05))
    monkeypatch.setattr(decisions, "MORE_EVIDENCE", 1)
    arguments = ["--results", str(tmp_path), "--db", str(tmp_path / "d.sqlite"), "--kernel", "SpGEMM A*A", "--dtype", "float32"]
    arguments += ["--threads", "1", "--trials", "2", "--budget", "60"]

    def run(*more: str) -> str:
        found = CliRunner().invoke(decisions.main, [*arguments, *more])
        assert (found.exit_code, found.exception) == (0, None)
        return found.stderr

    said = run("--minutes", "0")
    assert "tuned" not in said
    with monkeypatch.context() as stopped:
        stopped.setattr(decisions.Run, "race", lambda run, until, wanted: None)
        said = run("--minutes", "9")
    assert "tuned SpGEMM A*A, random:uniform:60x60:nnz=300, float32, 1 thread" in said
    assert "left out: it is not square" in said
    monkeypatch.setattr(decisions.Run, "_tune", None)  # nothing is tuned twice
    assert "raced SpGEMM A*A" in run()
    rows = Partial(tmp_path / "decisions.csv", Figure).rows
    assert [row.column for row in rows if row.column != "left out"][:4] == list(decision_races.OURS)
    assert all(row.column == "left out" or math.isfinite(row.low) for row in rows)
    times = {row.column: row.seconds for row in rows if row.column != "left out"}
    least = min((took for column, took in times.items() if column not in decision_races.OURS), default=math.inf)
    for row in rows:  # what a library is ahead of is counted, and nothing else
        counted = row.bytes > 0
        assert (row.flops > 0) == (row.loads > 0) == (row.iterations > 0) == counted
        if row.column not in ("static", "tuned") or row.seconds != least:
            assert counted == (row.column in ("static", "tuned") and row.seconds > least)
    assert next(row for row in rows if row.column == "looked up").origin in ("model", "default")  # without what was tuned on this input
    before = (tmp_path / "decisions.md").read_text()
    with monkeypatch.context() as broken:
        broken.setattr(decisions.Run, "_race", lambda run, item: 1 // 0)
        broken.setattr(decisions.Run, "_to_race", lambda run: iter([run.wanted[0]]))
        assert "failed: ZeroDivisionError: integer division or modulo by zero" in run()  # and the rest goes on
    assert "## Failed" in (tmp_path / "decisions.md").read_text() != before
    said = run("--ship")
    assert "raced" not in said
    assert "failed" not in said
    assert "## Failed" not in (tmp_path / "decisions.md").read_text()  # what failed counts as not tried in the next run
    shipped = tmp_path / "schedules.jsonl"
    (line,) = shipped.read_text().splitlines()
    shipped.write_text(line.replace(this_machine().fingerprint, "another") + "\n")
    run("--ship")
    assert len(shipped.read_text().splitlines()) == 2  # what other machines found stays
    assert "1 of 1 items measured" not in (tmp_path / "decisions.md").read_text()
    assert "SpGEMM A*A" in (tmp_path / "kernels.md").read_text()
    assert "tuned, 1 thread" in (tmp_path / "kernels.svg").read_text()
