"""The command line: suites, what they report of items that fail, benchmarks and nights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_lines import call_json
from sparsetune.compiler.errors import NetworkError
from sparsetune.compiler.native.toolchain import available_compilers
from sparsetune.tuner.problem import Problem
from sparsetune.tuner.session import tune_problem
from sparsetune.tuner.tune_result import TuneResult

needs_compiler = pytest.mark.skipif(not available_compilers(), reason="needs a C compiler")
pytestmark = pytest.mark.usefixtures("own_database")
SUITE = """
[suite]
trials = 2
search = "quick"
threads = {threads}
[[kernel]]
name = "spmv"
expression = "y(i) = A(i,j) * x(j)"
operand = "A"
order = 2
[[kernel]]
name = "spmm"
expression = "Y(i,k) = A(i,j) * X(j,k)"
operand = "A"
order = 2
dims = {{ k = [4, 8] }}
[[input]]
name = "small"
source = "random:uniform:200x100:nnz=800"
order = 2
"""


def suite_file(tmp_path: Path, threads: str = "[1]", more: str = "") -> str:
    (tmp_path / "mine.toml").write_text(SUITE.format(threads=threads) + more)
    return str(tmp_path / "mine.toml")


@needs_compiler
def test_suite(call, tmp_path: Path) -> None:
    found = call_json(call, "suite", suite_file(tmp_path))
    assert list(found) == ["suite", "items", "failed"]
    assert (found["suite"], found["failed"]) == ("mine", 0)
    assert [item["kernel"] for item in found["items"]] == ["spmv", "spmm k=4", "spmm k=8"]
    keys = {"kernel", "input", "status", "default_time", "best_time", "speedup", "best_schedule"}
    assert all(set(item) == keys and item["status"] == "ok" for item in found["items"])
    records = call_json(call, "db", "stats")["records"]
    again = call_json(call, "suite", suite_file(tmp_path), "--resume")
    assert again["items"] == found["items"]
    assert call_json(call, "db", "stats")["records"] == records
    assert call_json(call, "suite", suite_file(tmp_path), "--trials", "1")["failed"] == 0
    more = call_json(call, "db", "stats")["records"]
    assert more > records, "without --resume everything is measured anew"
    call_json(call, "suite", suite_file(tmp_path), "--trials", "1", "--resume")
    assert call_json(call, "db", "stats")["records"] == more


@needs_compiler
def test_items_that_ended_with_their_time_are_not_measured_again(call, tmp_path: Path) -> None:
    short = ("suite", suite_file(tmp_path), "--trials", "500", "--time-budget", "0.5")
    found = call_json(call, *short)
    records = call_json(call, "db", "stats")["records"]
    assert call_json(call, *short, "--resume")["items"] == found["items"]
    assert call_json(call, "db", "stats")["records"] == records


@needs_compiler
def test_a_suite_without_a_network_skips_what_is_not_here(call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_given: object) -> None:
        asked.append(1)
        raise NetworkError("cannot fetch it: no network")

    asked: list[int] = []
    monkeypatch.setenv("SPARSETUNE_DATA", str(tmp_path / "data"))
    monkeypatch.setattr("sparsetune.datasets.download._fetch", refuse)
    more = '[[input]]\nname = "far"\nsource = "HB/494_bus"\norder = 2\n'
    status, out, err = call("suite", suite_file(tmp_path, more=more), "--trials", "1")
    assert status == 3
    assert len(asked) == 1, "a server that does not answer is asked once"
    assert err.count("skipped: cannot fetch it: no network") == 3
    assert out.count("skipped: cannot fetch it: no network") == 3
    assert "left" in err


@needs_compiler
def test_an_item_that_takes_too_long_stops_no_other(call, tmp_path: Path) -> None:
    path = tmp_path / "slow.toml"
    text = SUITE.format(threads="[1]").replace("[suite]", "[suite]\nitem_seconds = 0.01", 1)
    path.write_text(text)
    status, out, _ = call("suite", str(path), "--json")
    found = json.loads(out)
    assert status == 1
    assert [item["status"] for item in found["items"]] == ["failed: it was not done within item_seconds = 0.01 s"] * 3


def test_a_suite_describes_itself(call) -> None:
    status, out, _ = call("suite", "frostt", "--describe")
    assert status == 0
    assert "all of FROSTT" in out
    assert all(f"\n{table}\n" in out for table in ("[suite]", "[[kernel]]", "[[input]]", "[[files]]", "[[select]]"))
    assert "item_seconds" in out


@needs_compiler
def test_suite_goes_on_after_an_item_that_fails(call, tmp_path: Path) -> None:
    more = '[[input]]\nname = "gone"\nsource = "gone.mtx"\norder = 2\n'
    status, out, _ = call("suite", suite_file(tmp_path, more=more), "--json")
    found = json.loads(out)
    assert status == 1
    assert found["failed"] == 3
    assert all("gone.mtx" in item["status"] for item in found["items"] if item["input"] == "gone")
    assert all(item["status"] == "ok" for item in found["items"] if item["input"] == "small")


@needs_compiler
def test_values_that_no_kernel_takes_and_defects_of_ours_fail_their_item_alone(
    call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def defective(problem: Problem, *given: Any, **others: Any) -> TuneResult:
        if "k" in problem.extents:
            raise KeyError("nobody thought of that")
        return tune_problem(problem, *given, **others)

    monkeypatch.setattr("sparsetune.tuner.suite.tune_problem", defective)
    path = tmp_path / "complex.mtx"
    path.write_text("%%MatrixMarket matrix coordinate complex general\n2 2 1\n1 2 1.5 -2\n")
    more = f'[[input]]\nname = "complex"\nsource = "{path}"\norder = 2\n'
    status, out, _ = call("suite", suite_file(tmp_path, more=more), "--json")
    small, complex_ = ([item["status"] for item in json.loads(out)["items"] if item["input"] == name] for name in ("small", "complex"))
    assert status == 1
    assert small == ["ok", *["failed: a defect of sparsetune, please report it: KeyError: 'nobody thought of that'"] * 2]
    assert all("operand 'A' has values of type complex128; kernels take float64" in found for found in complex_)
    for command in ("tune", "lookup"):
        status, _, err = call(command, "y(i) = A(i,j) * x(j)", "-i", f"A={path}")
        assert (status, "values of type complex128" in err) == (2, True)


@needs_compiler
def test_bench(call, tmp_path: Path) -> None:
    found = call_json(call, "bench", suite_file(tmp_path), "--against", "scipy")
    assert [item["threads"] for item in found["items"]] == [1, 1, 1]
    for item in found["items"]:
        assert list(item) == ["kernel", "input", "threads", "times", "best_peer", "ratio", "expression", "ratios", "failure", "target"]
        assert {"sparsetune", "sparsetune default", "scipy"} <= set(item["times"])
        assert item["best_peer"] == "scipy"
        assert item["ratio"] > 0


@needs_compiler
def test_nightly(call, tmp_path: Path) -> None:
    suite, baseline, page = suite_file(tmp_path), tmp_path / "base.json", tmp_path / "night.html"
    first = call_json(call, "nightly", suite, "--baseline", str(baseline))
    assert list(first) == ["regressions", "improvements", "undecided", "items", "ok"]
    assert first["ok"] is True
    assert {item["verdict"] for item in first["items"]} == {"new"}
    content = json.loads(baseline.read_text())
    for entry in content["entries"]:
        entry["seconds"], entry["ratios"] = 1.0, [1e-9 * ratio for ratio in entry["ratios"]]
    baseline.write_text(json.dumps(content))
    status, out, _ = call("nightly", suite, "--baseline", str(baseline), "--report", str(page), "--json")
    assert status == 1
    assert len(json.loads(out)["regressions"]) == 3
    assert 'class="bad">regression' in page.read_text()
