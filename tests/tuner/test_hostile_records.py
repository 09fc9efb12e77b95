"""Records that somebody else wrote, to whoever looks schedules up, runs, tunes and imports: no program, no traceback, one line."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import build_requests
import numpy as np
import pytest
import sparsetune
from sparsetune.compiler.schedule.schedule import Schedule
from sparsetune.tuner.asking import lookup
from sparsetune.tuner.database import open_database
from sparsetune.tuner.problem import Problem
from sparsetune.tuner.records import Decision, Status, to_json
from tuner_campaigns import campaign, spmv
from tuner_samples import decision, measurement, of_this_version

SPMV = "y(i) = A(i,j) * x(j)"
RANDOM = "A=random:uniform:40x30:nnz=100"
HOSTILE = (
    'build("{evil}", "-O2")', 'build("{evil} gcc")', 'build(gcc, "-O2 {evil}.c")', 'build(gcc, "-wrapper {evil}")',
    'build(gcc, "-B{folder}")', 'build(gcc, "@{folder}/file")', 'build(auto, "-fplugin={evil}.so")', 'build(gcc, "-o {folder}/made")',
    'build(gcc, "-save-temps")', 'build(gcc, "-fdump-tree-all={folder}/made")', 'build(clang, "-MF {folder}/made")',
    'build(gcc, "-march=native\t-o{folder}/made")', 'build(auto, "-fsanitize=address")', 'build(auto, "-Ofast")',
)  # fmt: skip


@pytest.fixture
def evil(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that leaves a trace when it is run, in a process that may start none and has an empty cache."""
    program = tmp_path / "work" / "evil"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\ntouch {tmp_path}/trace\nexec gcc "$@"\n')
    program.chmod(0o755)

    def started(*_given: object, **_more: object) -> NoReturn:
        pytest.fail("a process was started")

    monkeypatch.setenv("SPARSETUNE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(program.parent)
    monkeypatch.setattr(subprocess, "Popen", started)
    return program


def filled(text: str, evil: Path) -> str:
    return text.format(evil=evil, folder=evil.parent)


def assert_nothing_happened(evil: Path) -> None:
    assert [path.name for path in evil.parent.iterdir()] == ["evil"]
    assert not (evil.parents[1] / "trace").exists()
    assert not list((evil.parents[1] / "cache").glob("*"))


@pytest.mark.parametrize("text", HOSTILE)
def test_run_and_code_refuse_the_flag_before_anything_is_made_ready(call, text: str, evil: Path, own_database: Path) -> None:
    for arguments in (["run", SPMV, "-i", RANDOM], ["code", SPMV, "--format", "A=csr"]):
        status, out, err = call(*arguments, "--schedule", filled(text, evil))
        assert status == 2
        assert out == ""
        assert err.startswith("tune-kernel: error: directive 1, build: ")
        assert "Traceback" not in err
    assert_nothing_happened(evil)


def test_import_names_the_line_of_every_hostile_schedule(call, evil: Path, own_database: Path) -> None:
    texts = [filled(text, evil) for text in HOSTILE] + [f'build("{name}")' for name in build_requests.COMPILERS]
    texts += [f'parallelize(i0, cpu_thread, no_races); build(gcc, "{flags}")' for flags in build_requests.FLAGS]
    path = evil.parents[1] / "records.jsonl"
    for number, text in enumerate(texts):
        lines = [decision(), decision(schedule=text, workload=replace(decision().workload, machine="theirs")), measurement(schedule=text)]
        path.write_text("".join(json.dumps(to_json(line)) + "\n" for line in lines))
        status, _, err = call("db", "import", str(path), "--db", f"{path}.sqlite")
        assert status == 0
        told = err.splitlines()
        assert len(told) == 3, text
        assert all(f"records.jsonl, line {line}: schedule" in told[line - 2] for line in (2, 3))
        if number == 0:
            assert "'" + str(evil) + "'" in told[0]
    with open_database(f"{path}.sqlite") as database:
        assert list(database.records()) == [decision()]
    assert_nothing_happened(evil)


TEXTS = ("frob(", "reorder(i0, i9)", 'build("/usr/bin/gcc")', 'build(gcc, "-B/tmp")', b"\xff", "\ud7ff(")
BAD: list[tuple[str, str, Any]] = [
    *(("st_decision", "schedule", text) for text in TEXTS),
    *(("st_decision", "seconds", value) for value in ("abc", 0.0, -1.0, 1e999, b"")),
    *(("st_decision", "default_seconds", value) for value in ("abc", 0.0, 1e999)),
    *(("st_decision", "speedup_low", value) for value in ("abc", 0, 0.0, -2.0, 1e999, 1e-300)),
    *(("st_decision", "created", value) for value in ("yesterday", 0, "9" * 10_000)),
    ("st_input", "content", "[" * 100_000),
    ("st_input", "content", '{"extents": ' + "1" * 6_000 + "}"),
    ("st_environment", "content", "not json"),
    ("st_workload", "formats", "csr"),
]


def edit(path: Path, table: str, column: str, value: Any) -> None:
    with sqlite3.connect(path) as raw:
        raw.execute(f"UPDATE {table} SET {column} = ?", (value,))


def decided(problem: Problem, schedule: str) -> Decision:
    return decision(workload=problem.workload, input=problem.input, schedule=schedule, **of_this_version(problem, schedule))


@pytest.mark.parametrize(("table", "column", "value"), BAD, ids=lambda value: ascii(value)[:30])
def test_lookup_ignores_a_bad_decision_in_one_line(tmp_path: Path, call, table: str, column: str, value: Any) -> None:
    problem, path = spmv(), tmp_path / "s.sqlite"
    with open_database(path) as database:
        database.add(decided(problem, "unroll(i1, 2)"))
    found = lookup(problem.expression, problem.operands, threads=1, database=path)
    assert (found.origin, str(found.schedule)) == ("exact", "unroll(j, 2)")
    edit(path, table, column, value)
    with pytest.warns(RuntimeWarning, match=r"decision '[0-9a-f]{16}': .*; it is ignored") as caught:
        found = lookup(problem.expression, problem.operands, threads=1, database=path)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert str(caught[0].message).isprintable()
    assert found.origin in ("default", "model")
    status, out, err = call("db", "check", "--json", "--db", str(path))
    assert status == 1
    assert not json.loads(out)["ok"]
    (line,) = err.splitlines()
    assert line.startswith("tune-kernel: decision '")


def test_of_a_similar_input_too(tmp_path: Path) -> None:
    """What was decided for near inputs takes the logarithm of its speed-up."""
    problem, path = spmv(rows=31), tmp_path / "s.sqlite"
    for column, value in (("speedup_low", 0), ("speedup_low", "abc"), ("seconds", "abc"), ("default_seconds", 0.0)):
        with open_database(path) as database:
            database.add(decided(spmv(), "unroll(i1, 2)"), decided(spmv(), "unroll(i1, 4)"))
        edit(path, "st_decision", column, value)
        with pytest.warns(RuntimeWarning, match="it is ignored"):
            assert lookup(problem.expression, problem.operands, threads=1, database=path).origin in ("default", "model")


MEASURED = [("seconds", "abc"), ("seconds", 0.0), ("seconds", None), ("schedule", "frob("), ("samples", "[NaN]"), ("status", "fine")]


@pytest.mark.parametrize(("column", "value"), MEASURED, ids=lambda value: ascii(value)[:30])
def test_a_campaign_goes_on_without_a_bad_trial(tmp_path: Path, column: str, value: Any) -> None:
    path = tmp_path / "s.sqlite"
    campaign(path, trials=3)
    with sqlite3.connect(path) as raw:
        raw.execute(f"UPDATE st_measurement SET {column} = ? WHERE schedule <> '' AND role = 'trial'", (value,))
        count = raw.execute("SELECT count(*) FROM st_measurement WHERE schedule <> '' AND role = 'trial'").fetchone()[0]
    with pytest.warns(RuntimeWarning, match=r"measurement '[0-9a-f]{16}': .*; it is ignored"):
        result = campaign(path, trials=3)
    assert len(result.measured) == 3
    assert result.speedup > 0
    with open_database(path) as database, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert len(database.check()) == count
        assert sum(record.status is Status.OK for record in database.measurements()) >= 3


def test_a_foreign_machine_hands_on_no_program(tmp_path: Path, evil: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    problem, path = spmv(), tmp_path / "s.sqlite"
    theirs = replace(problem.workload, machine="theirs")
    with open_database(path) as database:
        database.add(decided(problem, "unroll(i1, 2)"))
        database.add(*(replace(decided(problem, filled(text, evil)), workload=theirs) for text in HOSTILE))
        assert len(database.check()) == len(HOSTILE)
    with pytest.warns(RuntimeWarning, match="is ignored"):
        result = campaign(path, trials=2)
    assert [trial.schedule for trial in result.measured] == ["", "unroll(j, 2)"]
    assert not (tmp_path / "trace").exists()


def test_a_schedule_given_by_hand_may_name_a_family(evil: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    kernel = sparsetune.compile(SPMV, {"A": "csr"}, schedule=Schedule('build(gcc, "-O1 -march=native")'))
    np.testing.assert_array_equal(kernel(A=np.eye(3), x=np.arange(3.0)), np.arange(3.0))
