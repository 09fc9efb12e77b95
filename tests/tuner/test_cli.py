"""The command line: help, keys of the JSON objects, exit statuses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from command_lines import RANDOM, SPMV, call_json, needs_compiler
from sparsetune.compiler.build.stages import STAGES
from sparsetune.tuner.cli import COMMANDS

pytestmark = pytest.mark.usefixtures("own_database")


# Help


SUBCOMMANDS = ("db export", "db import", "db stats", "db check", "data list", "data get", "cache stats", "cache list", "cache clear")


@pytest.mark.parametrize("command", ["", *COMMANDS, *SUBCOMMANDS])
def test_help_begins_with_examples(call, command: str) -> None:
    status, out, err = call(*command.split(), "--help")
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith("Usage: tune-kernel")
    assert lines[2] == "Examples:"
    assert lines[3].strip().startswith("tune-kernel")


def test_examples_parse() -> None:
    """Every option that an example uses exists."""
    import shlex
    from importlib import import_module

    for name in COMMANDS:
        command = import_module(f"sparsetune.tuner.commands.{name}").command
        for line, _ in command.examples:
            words = shlex.split(line)[2:]
            used, options = command, {"--help"}
            if hasattr(command, "commands"):
                used = command.commands[words[0]]
            options |= {option for parameter in used.params for option in parameter.opts}
            assert {word for word in words if word.startswith("-") and word != "-"} <= options, line


# Results


@needs_compiler
def test_results_are_kept_on_the_pattern_of_an_operand(call) -> None:
    layer = ["O(x,y,m) = I(x+p-1,y+q-1,c) * F(p,q,c,m)", "--output-pattern", "I(x,y,:)"]
    given = ["-i", "I=random:uniform:20x20x2:nnz=60", "--dim", "p=3", "--dim", "q=3", "--dim", "m=2", "--threads", "1"]
    found = call_json(call, "run", *layer, *given, "--schedule", "default")["result"]
    assert found["shape"] == [20, 20, 2]
    assert 60 <= found["nnz"] <= 120
    assert call_json(call, "tune", *layer, *given, "--trials", "1")["failed_trials"] == 0
    assert call_json(call, "lookup", *layer, *given)["origin"] == "exact"
    product = "C(i,j) = A(i,k) * B(k,j)", "--output-pattern", "M"
    mask = [*product, "-i", RANDOM, "-i", "M=random:uniform:300x50:nnz=70", "--dim", "j=50", "--schedule", "default"]
    assert call_json(call, "run", *mask)["result"]["nnz"] == 70
    assert "M_pattern" in call_json(call, "code", *product, "--format", "A=csr")["loop_nest"]
    assert "M_pattern" in call_json(call, "explain", *product, "--format", "A=csr")["frontier"][0]["loop_nest"]


@needs_compiler
def test_tune_prints_the_keys_of_the_contract(call, own_database: Path) -> None:
    found = call_json(call, "tune", SPMV, "-i", RANDOM, "--trials", "3", "--threads", "1")
    assert list(found) == [
        "expression", "machine", "target", "threads", "stages", "trials", "failed_trials", "default_time", "best_time", "speedup",
        "best_schedule", "database", "conversion_time", "pays_after", "converted",
    ]  # fmt: skip
    assert (found["expression"], found["target"], found["threads"]) == (SPMV, "cpu", 1)
    assert found["trials"] == 3
    assert found["speedup"] == pytest.approx(found["default_time"] / found["best_time"])
    assert str(own_database) in found["database"]
    assert all(set(stage) == {"stage", "kept", "seconds"} for stage in found["stages"])


@needs_compiler
def test_tune_by_another_sampler(call, tmp_path: Path) -> None:
    arguments = ("tune", SPMV, "-i", RANDOM, "--trials", "3", "--threads", "1", "--db", str(tmp_path / "db.sqlite"))
    assert call_json(call, *arguments, "--sampler", "random")["trials"] == 3
    status, _, err = call(*arguments, "--sampler", "tps")
    assert status == 2
    assert "'tps' is not one of 'two-level', 'tpe'" in err


@needs_compiler
def test_tune_then_lookup_then_run(call, tmp_path: Path) -> None:
    call_json(call, "tune", SPMV, "-i", RANDOM, "--trials", "2", "--threads", "1")
    exact = call_json(call, "lookup", SPMV, "-i", RANDOM, "--threads", "1")
    assert list(exact) == ["origin", "schedule", "time", "distance"]
    assert (exact["origin"], exact["distance"]) == ("exact", 0.0)
    similar = call_json(call, "lookup", SPMV, "-i", "A=random:uniform:310x200:nnz=2100", "--threads", "1")
    assert similar["origin"] == "similar"
    found = call_json(call, "run", SPMV, "-i", RANDOM, "--threads", "1", "-o", str(tmp_path / "y.npy"))
    assert list(found) == ["seconds", "schedule", "origin", "result"]
    assert list(found["result"]) == ["shape", "nnz", "format", "checksum"]
    assert found["origin"] == "exact"
    assert found["result"]["checksum"] == pytest.approx(np.load(tmp_path / "y.npy").sum())


@needs_compiler
def test_run_agrees_with_numpy(call, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", matrix := np.arange(12.0).reshape(3, 4))
    np.save(tmp_path / "x.npy", vector := np.array([1.0, -1, 2, 0.5]))
    given = ("-i", f"A={tmp_path}/a.npy", "-i", f"x={tmp_path}/x.npy")
    for schedule in ("auto", "default", "parallelize(i, cpu_thread, no_races)"):
        found = call_json(call, "run", SPMV, *given, "--format", "A=csr", "--schedule", schedule)
        assert found["result"]["checksum"] == pytest.approx((matrix @ vector).sum())
        assert found["result"]["shape"] == [3]


@needs_compiler
def test_run_tells_its_decision_and_why_where_that_is_asked_for(call, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "sparsetune:" not in call("run", SPMV, "-i", RANDOM)[2]
    monkeypatch.setenv("SPARSETUNE_VERBOSE", "1")
    (said,) = (line for line in call("run", SPMV, "-i", RANDOM)[2].splitlines() if line.startswith("sparsetune:"))
    assert said.startswith(f"sparsetune: '{SPMV}': the default schedule (default: ") or "(model: " in said


def test_code_as_json(call) -> None:
    found = call_json(call, "code", SPMV, "--format", "A=csr", "--schedule", "unroll(j, 2)")
    assert list(found) == ["expression", "formats", "schedule", "target", "loop_nest", "stage", "source"]
    assert (found["schedule"], found["stage"]) == ("unroll(j, 2)", "c")
    assert found["formats"]["A"] == "dense, compressed"
    assert "st_kernel" in found["source"]
    assert "while" not in call_json(call, "code", SPMV, "--after", "concrete")["source"]


def test_code_for_other_operators_types_and_boundaries(call) -> None:
    paths = call("code", SPMV, "--format", "A=csr", "--semiring", "min,+", "--dtype", "float32")[1]
    assert "float" in paths
    assert "double" not in paths
    assert "inff()" in paths  # the zero of min
    wrapped = call("code", "y(i) = A(i+j) * x(j)", "--boundary", "i=wrap")[1]
    assert wrapped != call("code", "y(i) = A(i+j) * x(j)")[1]


@needs_compiler
def test_run_writes_sparse_results(call, tmp_path: Path) -> None:
    for ending in ("mtx", "tns", "npz"):
        output = tmp_path / f"c.{ending}"
        found = call_json(call, "run", "C(i,j) = A(i,j) + A(i,j)", "-i", RANDOM, "--output-format", "csr", "-o", str(output))
        assert output.exists()
        again = call_json(call, "run", "s = C(i,j)", "-i", f"C={output}")
        assert again["result"]["checksum"] == pytest.approx(found["result"]["checksum"])
    assert found["result"]["format"] == "dense, compressed"


@needs_compiler
def test_random_operands_are_the_same_every_time(call) -> None:
    first, second, other = (
        call_json(call, "run", SPMV, "--dim", "i=5", "--dim", "j=4", "--seed", seed)["result"]["checksum"] for seed in ("1", "1", "2")
    )
    assert first == second != other


def test_code(call) -> None:
    status, out, _ = call("code", SPMV, "--format", "A=csr")
    assert status == 0
    assert "for (" in out
    assert "A2_pos" in out
    parallel = call("code", SPMV, "--format", "A=csr", "--schedule", "parallelize(i, cpu_thread, no_races)")[1]
    assert "st_run(" in parallel


def test_code_after_a_stage(call) -> None:
    spmv = ("code", SPMV, "--format", "A=csr")
    shown = {stage: call(*spmv, "--after", stage)[1] for stage in STAGES}
    assert shown["c"] == call(*spmv)[1]
    assert shown["concrete"] == call(*spmv, "--loop-nest")[1]
    assert all(shown[stage].startswith("kernel st_kernel\n") for stage in STAGES[1:-1])
    assert "vector for j" not in shown["lowering"]
    assert "vector" in shown["sums"]


def test_explain(call) -> None:
    found = call_json(call, "explain", SPMV, "--format", "A=csr")
    assert list(found) == ["expression", "stages", "frontier"]
    assert found["frontier"]
    keys = {"schedule", "loop_nest", "time", "memory", "task_set", "loop_depth", "memory_depth"}
    assert all(set(item) == keys for item in found["frontier"])


def test_explain_judges_a_schedule(call) -> None:
    found = call_json(call, "explain", SPMV, "--format", "A=csr", "--schedule", "", "--limit", "1")
    assert list(found) == ["expression", "stages", "frontier", "schedule"]
    assert len(found["frontier"]) == 1
    assert found["schedule"]["verdict"] == "no schedule of the frontier is cheaper"
    status, out, _ = call("explain", "a(i) = B(i,j) * C(j,k) * d(k)", "--preset", "pigeon", "--schedule", "", "--limit", "2")
    assert status == 0
    assert "26 more" in out
    assert "this schedule is cheaper than the given one" in out


def test_explain_takes_costs_and_facts(call) -> None:
    two = ("explain", "a(i) = B(i,j) * C(j,k) * d(k)", "--preset", "pigeon")
    kept = {option: call_json(call, *two, *option)["stages"][-1]["kept"] for option in (
        (), ("--sunk-cost", "inputs"), ("--sunk-cost", "dimensions"), ("--sunk-cost", "none"), ("--assume", "none"),
    )}  # fmt: skip
    assert list(kept.values()) == [28, 11, 10, 3, 28]
    status, _, error = call(*two, "--sunk-cost", "{(q)}")
    assert (status, error.count("\n")) == (2, 1)
    status, _, error = call("explain", "a = b(i) * c(i) * d(i) * e(i) * f(i) * g(i) * h(i)", "--time-limit", "0.3")
    assert (status, error.count("\n")) == (1, 1)
    assert "too large to explore" in error


def test_data(call) -> None:
    names = [item["name"] for item in call_json(call, "data", "list")["items"]]
    assert "HB/494_bus" in names
    (item,) = call_json(call, "data", "info", "random:uniform:20x30:nnz=50")["items"]
    assert item["shape"] == [20, 30]
