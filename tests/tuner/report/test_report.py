"""The report: everything in the user's own names, one file that asks nothing of a network, and what is missing said."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sparsetune as st
from sparsetune.compiler.errors import DataError
from sparsetune.compiler.native.machine import this_machine
from sparsetune.datasets import load
from sparsetune.tuner.account import FIELD, Account, run_operations
from sparsetune.tuner.cli import run
from sparsetune.tuner.commands.tree import drawn
from sparsetune.tuner.database import open_database
from sparsetune.tuner.measure import limits
from sparsetune.tuner.measure.company import Company
from sparsetune.tuner.measure.limits import MachineLimits
from sparsetune.tuner.nightly.changes import Change
from sparsetune.tuner.reason import reason
from sparsetune.tuner.records import Decision
from sparsetune.tuner.report import figures, material, write_report
from sparsetune.tuner.report.importance import importance
from sparsetune.tuner.report.material import Ratio, Run
from sparsetune.tuner.resolve import make_problem
from sparsetune.tuner.written import write_json

KERNEL = "row_sum(point) = Weights(point,neighbour) * x(neighbour)"
BENCH = {
    "items": [
        {
            "kernel": "spmv", "input": "the graph", "threads": 1, "expression": "y(a) = B(a,b) * c(b)",
            "times": {"sparsetune": 1e-5, "sparsetune static": 2e-5, "scipy": 3e-5},
            "ratios": {"sparsetune static": [2.0, 1.9, 2.1], "scipy": [3.0, 2.5, 3.5]},
        }
    ]
}  # fmt: skip


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with one campaign, on operands that a person named."""
    path = tmp_path_factory.mktemp("report") / "schedules.sqlite"
    operands = {"Weights": load("random:uniform:60x50:nnz=300"), "x": load("random:uniform:50x1:nnz=50").to_numpy()[:, 0]}
    st.tune(KERNEL, operands, trials=4, threads=1, database=path)
    return path


def written(path: Path, database: Path, bench: Any = None) -> str:
    beside = None
    if bench is not None:
        beside = path.with_suffix(".json")
        beside.write_text(json.dumps(bench))
    with open_database(database, read_only=True) as opened:
        write_report(path, opened, beside)
    return path.read_text()


def own_part(text: str) -> str:
    """Return the page without the library that draws."""
    return re.sub(r"<script>.*?</script>", "", text, count=1, flags=re.DOTALL)


def plots(text: str) -> list[dict[str, Any]]:
    return [json.loads(found) for found in re.findall(r'<script type="application/json">(.*?)</script>', text, re.DOTALL)]


@pytest.mark.cc
def test_the_page_speaks_the_users_names(tuned: Path, tmp_path: Path) -> None:
    text = written(tmp_path / "report.html", tuned)
    own = own_part(text)
    assert KERNEL in own
    assert "T0(i0)" not in own
    assert "for (" in own, "the C of winner and default"
    assert "Weights(point,neighbour)" in own
    assert "95% interval" in own
    drawn = plots(own)
    assert len(drawn) >= 3
    assert all(figure["data"] for figure in drawn)
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.cc
def test_the_page_asks_nothing_of_a_network(tuned: Path, tmp_path: Path) -> None:
    own = own_part(written(tmp_path / "report.html", tuned))
    assert not re.search(r"""(src|href)=["']?(https?:|//)""", own)
    assert "<link rel=\"stylesheet\"" not in own


@pytest.mark.cc
def test_what_is_missing_is_said(tuned: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARSETUNE_CACHE", str(tmp_path / "cache"))
    own = own_part(written(tmp_path / "report.html", tuned))
    assert "tune-kernel doctor --calibrate" in own
    assert "tune-kernel bench SUITE --json" in own
    assert "Roofline" not in own
    write_json(limits._place(this_machine().fingerprint, 1), asdict(MachineLimits(1e10, 1e11)))
    own = own_part(written(tmp_path / "report.html", tuned))
    assert "doctor --calibrate" not in own
    assert "Roofline" in own
    assert re.search(r"<td class=\"n\" data-value=\"0\.\d+\">\d+%</td>", own) or "%</td>" in own


def test_an_empty_database_has_a_page(tmp_path: Path) -> None:
    with open_database(tmp_path / "none.sqlite") as opened:
        write_report(tmp_path / "empty.html", opened)
    assert "No campaign has been finished yet" in (tmp_path / "empty.html").read_text()


@pytest.mark.cc
def test_other_libraries_stand_beside(tuned: Path, tmp_path: Path) -> None:
    decision = only_decision(tuned)
    named = replace(decision, input=replace(decision.input, name="the graph"))
    with open_database(tmp_path / "named.sqlite") as opened:
        opened.add(named)
    text = written(tmp_path / "report.html", tmp_path / "named.sqlite", BENCH)
    traces = {trace["name"]: trace for figure in plots(own_part(text)) for trace in figure["data"] if "name" in trace}
    assert {"over scipy", "over the static choice", "over default"} <= set(traces)


@pytest.mark.parametrize("content", ["{}", '{"items": [{"kernel": 1}]}', "no json", '{"items": 3}'])
def test_a_file_that_bench_did_not_write(tuned: Path, tmp_path: Path, content: str) -> None:
    (tmp_path / "bench.json").write_text(content)
    with open_database(tuned, read_only=True) as opened, pytest.raises(DataError, match="is not what 'tune-kernel bench --json' prints"):
        write_report(tmp_path / "report.html", opened, tmp_path / "bench.json")
    assert not (tmp_path / "report.html").exists()


@pytest.mark.cc
def test_records_of_before_are_shown_in_canonical_names(tuned: Path, tmp_path: Path) -> None:
    decision = only_decision(tuned)
    old = replace(decision, environment={name: fact for name, fact in decision.environment.items() if name != FIELD})
    with open_database(tmp_path / "old.sqlite") as opened:
        opened.add(old)
    own = own_part(written(tmp_path / "report.html", tmp_path / "old.sqlite"))
    assert "T0(i0) = T1(i0,i1) * T2(i1)" in own
    assert "1 of 1 results are of a version that kept neither names nor stages" in own


@pytest.mark.cc
def test_an_account_counts_the_work_of_a_run(tuned: Path) -> None:
    account = Account.of(only_decision(tuned))
    stored = load("random:uniform:60x50:nnz=300")
    assert account.default_operations == 2 * stored.nnz
    assert account.bytes == stored.nbytes + 8 * 50 + 8 * 60
    assert [stage["stage"] for stage in account.stages][-1] == "ranked"
    assert Account.of(replace(only_decision(tuned), environment={FIELD: {"expression": 3}})).names == {}


@pytest.mark.cc
@pytest.mark.parametrize("text", ["", "split(i, i0, i1, 4); precompute(B(i,j,k) * D(k,r), r, r, w); parallelize(i0, cpu_thread, no_races)"])
def test_operations_are_those_that_a_run_counts(text: str) -> None:
    """Of a schedule with a workspace and tiles as of the default one; symbolic costs only bound the former from above."""
    mttkrp = "A(i,r) = B(i,j,k) * C(j,r) * D(k,r)"
    operands = {"B": load("random:uniform:20x15x12:nnz=700"), "C": load("random:uniform:15x8:nnz=100").to_numpy(), "D": np.ones((12, 8))}
    counted = st.compile(mttkrp, {"B": "csf"}, schedule=text).bind(**operands, threads=1).count()["flops"]
    problem = make_problem(mttkrp, operands, threads=1)
    assert run_operations(problem, st.Schedule(text)) == pytest.approx(counted, rel=0.02)
    if text:
        told = reason(problem, st.Schedule(text), 1.5)
        assert "times the operations of the default" in told
        assert "keeps a part of the product in a workspace" in told
        assert "1.50 times was measured" in told
    assert "nothing that was tried is surely faster" in reason(problem, st.Schedule(), 1.0)


def test_importance_tells_what_explains_times() -> None:
    runs = [Run(2.0**unroll + 0.001 * tile, {"unroll": unroll, "tile": tile}, "ok") for unroll in (1, 2, 4) for tile in (8, 16, 32)]
    found = importance([runs, [replace(run, milliseconds=50 * (run.milliseconds or 0)) for run in runs]])
    assert list(found) == ["unroll", "tile"]
    assert found["unroll"] > 0.99
    assert found["tile"] < 0.01
    assert importance([runs[:3]]) == {}


def test_limits_are_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARSETUNE_CACHE", str(tmp_path / "kernels"))
    monkeypatch.setattr(limits, "_measure", lambda threads: MachineLimits(1e9 * threads, 2e9))
    assert limits.known_limits(this_machine().fingerprint, 2) is None
    assert limits.machine_limits(2) == MachineLimits(2e9, 2e9) == limits.known_limits(this_machine().fingerprint, 2)
    monkeypatch.setattr(limits, "_measure", lambda threads: MachineLimits(5e9, 2e9))
    assert limits.machine_limits(2).bandwidth == 2e9
    assert limits.machine_limits(2, anew=True).bandwidth == 5e9
    monkeypatch.setattr(limits, "_measure", lambda threads: MachineLimits(3e9, 2e9, disturbed=True))
    assert limits.machine_limits(2, anew=True).bandwidth == 3e9
    assert limits.machine_limits(2).bandwidth == 5e9  # what was disturbed is not kept
    limits._place(this_machine().fingerprint, 2).write_text("no json")
    assert limits.known_limits(this_machine().fingerprint, 2) is None
    assert MachineLimits(1e9, 2e9).least_seconds(4e9, 1e9) == 2.0


@pytest.mark.cc
@pytest.mark.parametrize("company", [Company(0.1), Company(0.1, others=0.1), Company(0.1, waited=0.05), Company(0.1, stolen=0.05)])
def test_limits_are_of_this_machine(company: Company, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_ELEMENTS", (2**12, 2**12))
    monkeypatch.setattr(limits, "_TURNS", 1000)
    monkeypatch.setattr(limits.Witness, "since", lambda *_given: company)
    found = limits._measure(2)
    assert found.bandwidth > 1e7
    assert found.operations > 1e6
    assert found.disturbed == (company != Company(0.1))


def test_a_night_has_a_point_and_an_interval_for_every_item() -> None:
    found = [Change("spmv", "a", 1.0, 1.2, 1.2, "regression", 1.15, 1.25), Change("spmv", "b", 1.0, 1.0, 1.0, "same", 0.98, 1.01)]
    (points,) = json.loads(figures.changes(found))["data"]
    assert points["x"] == [1.2, 1.0]
    assert points["error_x"]["array"] == pytest.approx([0.05, 0.01])
    assert len(set(points["marker"]["color"])) == 2
    assert isinstance(points["error_x"]["color"], str)  # else a browser complains of the points' list


@pytest.mark.nightly
@pytest.mark.cc
def test_a_browser_draws_every_plot(tuned: Path, tmp_path: Path) -> None:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("needs a browser")
    written(tmp_path / "report.html", tuned)
    command = [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--virtual-time-budget=20000"]
    for width in (1280, 390):
        asked = [*command, "--dump-dom", f"--window-size={width},900", f"file://{tmp_path}/report.html"]
        page = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=120)
        assert "CONSOLE" not in page.stderr
        assert page.stdout.count("main-svg") >= 3


def only_decision(path: Path) -> Decision:
    with open_database(path, read_only=True) as opened:
        (decision,) = opened.decisions()
    return decision


@pytest.mark.parametrize(("low", "high"), [(0.95, 1.4), (0.9, 80.0)])
def test_ratios_have_labels_that_say_all_of_their_number(low: float, high: float) -> None:
    axis = figures._ratio_axis([Ratio(1.0, low, 1.2), Ratio(1.2, 1.1, high)])
    shown = [text for value, text in zip(axis["tickvals"], axis["ticktext"], strict=True) if low <= value <= high]
    assert [float(text) for text in shown] == sorted(float(text) for text in shown)
    assert "1" in shown
    assert len(shown) in range(3, 10)


def test_names_of_variants_are_those_of_bench() -> None:
    assert set(material.SHOWN) == {"sparsetune static"}


def test_an_explanation_as_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, spmv = tmp_path / "explain.html", ["explain", "y(i) = A(i,j) * x(j)", "--format", "A=csr"]
    schedule = "split(i, i0, i1, 64); split(i0, a, b, 8)"
    assert run([*spmv, "--schedule", schedule, "--html", str(page)]) == 0
    own = own_part(page.read_text())
    (picture,) = [plot for plot in plots(own) if plot["layout"].get("annotations")]
    assert picture["data"][0]["text"] == ["i", "i0", "i1", "a", "b"]
    arrows = [one for one in picture["layout"]["annotations"] if "ax" in one]
    assert len(arrows) == 4
    assert "└ for j" in own.partition("<h2>Frontier</h2>")[0]
    assert "└ for j" in own.partition("<h2>Frontier</h2>")[2]
    assert run([*spmv, "--html", str(page)]) == 0
    assert "└ for j" in capsys.readouterr().out  # the page comes besides
    assert "The loops of these schedules go over the indices of the expression" in page.read_text()
    assert run([*spmv, "--html", str(page), "--json"]) == 2
    assert "give one of them" in capsys.readouterr().err


def test_trees_have_a_branch_for_every_line() -> None:
    assert drawn("for i:\n  produce:\n    for k:\n      w\n  consume:\n    a\nb") == (
        "for i:\n├ produce:\n│ └ for k:\n│   └ w\n└ consume:\n  └ a\nb"
    )
    assert drawn("") == ""
