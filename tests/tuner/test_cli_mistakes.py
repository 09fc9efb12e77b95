"""The command line where something is wrong: one line for every mistake, interruption and resumption."""

from __future__ import annotations

import gzip
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sparsetune import datasets
from sparsetune.compiler.errors import NetworkError
from sparsetune.compiler.native import devices
from sparsetune.compiler.native.toolchain import available_compilers
from sparsetune.tuner.database import open_database

needs_compiler = pytest.mark.skipif(not available_compilers(), reason="needs a C compiler")
PROGRAM = [sys.executable, "-c", "from sparsetune.tuner.cli import main; main()"]
SPMV = "y(i) = A(i,j) * x(j)"
RANDOM = "A=random:uniform:300x200:nnz=2000"
pytestmark = pytest.mark.usefixtures("own_database")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["frobnicate"], "no such command 'frobnicate'"),
        (["tune"], "missing argument 'EXPR'"),
        (["tune", SPMV, "--frob"], "no such option"),
        (["tune", "y(i) = A(i,j"], "column"),
        (["tune", "y(i) ="], "column"),
        (["tune", SPMV, "-i", "A"], "not of the form NAME=FILE"),
        (["tune", SPMV, "-i", RANDOM, "-i", RANDOM], "'A' is given twice"),
        (["tune", SPMV, "-i", "B=random:uniform:3x3:nnz=2"], "no operand 'B'"),
        (["tune", SPMV, "-i", "A=nowhere.mtx"], "nowhere.mtx"),
        (["tune", SPMV, "-i", "A=random:frob:3x3:nnz=2"], "no kind 'frob'"),
        (["tune", SPMV, "-i", "A=random:uniform:3x3x3:nnz=2"], "2 subscripts"),
        (["tune", SPMV, "--dim", "i=3"], "add --dim j=N"),
        (["tune", SPMV, "--dim", "i=3", "--dim", "j=0"], "an extent is a whole number"),
        (["tune", SPMV, "--dim", "i=1" + "0" * 30], "'i': an extent is a whole number from 1 to 9223372036854775807"),
        (["tune", SPMV, "--dim", "i=1" + "0" * 6000], "'i': an extent is a whole number"),
        (["tune", SPMV, "-i", RANDOM, "--seed", "99999999999999"], "4294967295"),
        (["run", SPMV, "-i", RANDOM, "--seed", "-1"], "4294967295"),
        (["tune", SPMV, "-i", RANDOM, "--dim", "j=7"], "index j has extent 200 by mode 1 of A, but 7"),
        (["tune", SPMV, "-i", RANDOM, "--dim", "q=7"], "no index 'q'"),
        (["tune", SPMV, "-i", RANDOM, "--format", "A=frob"], "unknown format 'frob'"),
        (["tune", SPMV, "-i", RANDOM, "--format", "Q=csr"], "no tensor 'Q'"),
        (["tune", SPMV, "-i", RANDOM, "--output-format", "frob"], "frob"),
        (["tune", SPMV, "-i", RANDOM, "--trials", "0"], "--trials"),
        (["tune", SPMV, "-i", RANDOM, "--time-budget", "-3"], "not a positive number of seconds"),
        (["tune", SPMV, "-i", RANDOM, "--threads", "0"], "--threads"),
        (["tune", SPMV, "-i", RANDOM, "--target", "tpu"], "--target"),
        (["tune", SPMV, "-i", RANDOM, "--db", "mysql://host/x"], "mysql:// is no kind of database"),
        (["lookup", SPMV, "-i", RANDOM, "--db", __file__], "is not a database"),
        (["run", SPMV, "-i", RANDOM, "--schedule", "frob(i)"], "directive 1"),
        (["run", SPMV, "-i", RANDOM, "--schedule", "split(q, a, b, 4)"], "directive 1"),
        (["run", SPMV, "-i", RANDOM, "-o", "y.txt"], "written as .mtx"),
        (["run", SPMV, "-i", RANDOM, "-o", "/no/such/folder/y.npy"], "there is no folder"),
        (["code", SPMV, "--schedule", "reorder(i, q)"], "directive 1"),
        (["code", SPMV, "--target", "cuda", "--arch", "sm_90", "--after", "vectorize"], "target cuda has no stage 'vectorize'"),
        (["code", SPMV, "-o", __file__], "cannot be written"),
        (["code", SPMV, "--target", "cuda", "--arch", "90"], "'sm_90'"),
        (["lookup", SPMV, "-i", RANDOM, "--arch", "sm_90"], "target cpu has no architectures"),
        (["code", SPMV, "--after", "frob"], "'frob' is not one of 'concrete', 'lowering',"),
        (["explain", SPMV, "--range", "i=5:1"], "from its lower to its higher"),
        (["suite", "quik"], "did you mean 'quick'?"),
        (["suite", "search"], "unknown suite 'search'"),
        (["bench", "quick", "--against", "frob"], "unknown peer 'frob'"),
        (["nightly", "quick"], "--baseline"),
        (["db", "import", "/nowhere.jsonl"], "does not exist"),
        (["db", "stats", "--db", "/nowhere/x.sqlite"], "there is no database"),
        (["cache", "clear"], "--older-than DAYS, or --all"),
        (["cache", "clear", "--older-than", "3", "--all"], "--older-than DAYS, or --all"),
        (["cache", "clear", "--older-than", "nan"], "'nan' is not a positive number of days"),
        (["data", "info", "frob"], "no file and no name of the catalogue"),
        (["report"], "--output"),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else "",
)
def test_mistakes_end_in_one_line(call, arguments: list[str], message: str) -> None:
    status, out, err = call(*arguments)
    assert status == 2
    assert out == ""
    first = err.splitlines()[0]
    assert first.startswith("tune-kernel: error: ")
    assert message in first
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ('[suite]\ntrails = 3\n', "unknown key 'trails' (did you mean 'trials'?)"),
        ('[suite]\ntrials = "many"\n', "trials is 'many'; a whole number from 1 on is expected"),
        ('[suite]\nsearch = "quik"\n', "[suite]: unknown search settings 'quik' (did you mean 'quick'?)"),
        ("[suite\n", "is not TOML"),
        ("[suite]\n", "at least one [[kernel]]"),
        ('[suite]\n[[kernel]]\nname = "a"\n', "the key 'expression' is missing"),
        (
            '[suite]\n[[kernel]]\nname = "a"\nexpression = "y(i) = x(i)"\noperand = "x"\norder = 1\ninputs = ["b"]\n'
            '[[input]]\nname="c"\nsource="d"\norder=1\n',
            "unknown input 'b'",
        ),
    ],
)  # fmt: skip
def test_mistakes_in_suites_name_file_and_key(call, tmp_path: Path, change: str, message: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(change)
    status, _, err = call("suite", str(path))
    assert status == 2
    assert message in err.splitlines()[0]


@pytest.mark.parametrize(
    ("words", "command"), [(["data", "search", "--grop", "x"], " data search"), (["suite", "--foo"], " suite"), (["suit"], "")]
)
def test_mistakes_name_the_whole_command_to_ask_for_help(call, words: list[str], command: str) -> None:
    status, _, err = call(*words)
    assert (status, err.splitlines()[0].endswith(f"; see 'tune-kernel{command} --help'")) == (2, True)


def test_newer_database(call, own_database: Path) -> None:
    open_database(own_database).close()
    with sqlite3.connect(own_database) as raw:
        raw.execute("UPDATE st_meta SET value = '99'")
    for arguments in (["db", "stats"], ["lookup", SPMV, "-i", RANDOM], ["tune", SPMV, "-i", RANDOM]):
        status, _, err = call(*arguments)
        assert status == 2
        assert "version 99" in err.splitlines()[-1]


def test_truncated_and_lying_files(call, tmp_path: Path) -> None:
    head = "%%MatrixMarket matrix coordinate real general\n"
    for name, text in {"short": "3 3 2\n1 1 1.0\n", "range": "3 3 1\n4 1 1.0\n", "head": "3 3\n"}.items():
        (tmp_path / f"{name}.mtx").write_text(head + text)
        status, _, err = call("run", SPMV, "-i", f"A={tmp_path}/{name}.mtx")
        assert status == 2
        assert f"{name}.mtx" in err.splitlines()[0]


def test_no_compiler_names_the_package(tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": str(tmp_path), "SPARSETUNE_CC": ""}
    for arguments in (["tune", SPMV, "-i", RANDOM], ["suite", "quick"], ["run", SPMV, "-i", RANDOM], ["doctor"]):
        shown = subprocess.run([*PROGRAM, *arguments], capture_output=True, text=True, env=environment, check=False)
        assert shown.returncode == 3
        assert "apt install gcc" in (shown.stdout + shown.stderr).splitlines()[0]


@needs_compiler
@pytest.mark.parametrize("command", ["tune", "run", "lookup"])
def test_missing_gpu_is_status_3(call, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "find_program", lambda name: None)
    status, _, err = call(command, SPMV, "-i", RANDOM, "--target", "cuda")
    assert status == 3
    assert "NVIDIA GPU" in err.splitlines()[-1]


@needs_compiler
def test_closed_pipe_is_no_error() -> None:
    line = f'"{PROGRAM[0]}" -c "{PROGRAM[2]}" data list | head -1'
    shown = subprocess.run(line, shell=True, capture_output=True, text=True, check=True)
    assert shown.stderr == ""


# Interruption


@needs_compiler
def test_interruption_keeps_trials_and_the_same_command_goes_on(own_database: Path) -> None:
    source = "A=random:uniform:20000x20000:nnz=1e6"  # large enough for the search to go on until it is interrupted
    arguments = ["tune", "Y(i,k) = A(i,j) * X(j,k)", "-i", source, "--dim", "k=64", "--trials", "500", "--threads", "2"]
    tuning = subprocess.Popen([*PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 600
    count = 0
    while count < 3:
        assert time.monotonic() < deadline
        assert tuning.poll() is None
        time.sleep(0.05)
        if own_database.exists():
            with open_database(own_database, read_only=True) as store:
                count = store.stats()["measurements"]
    tuning.send_signal(signal.SIGINT)
    out, err = tuning.communicate(timeout=600)  # all 500 trials would take hours
    assert tuning.returncode == 130
    assert out == ""
    last = err.splitlines()[-1]
    assert last.startswith("tune-kernel: error: interrupted")
    assert "run the same command again to go on" in last
    assert "Traceback" not in err
    with open_database(own_database) as store:
        kept = store.stats()["measurements"]
        assert kept >= count
        assert store.check() == []
    arguments[arguments.index("500")] = str(kept + 1)
    shown = subprocess.run([*PROGRAM, *arguments, "--json"], capture_output=True, text=True, check=True)
    assert json.loads(shown.stdout)["trials"] == kept + 1
    with open_database(own_database) as store:
        assert sum(record.role != "final" for record in store.measurements()) == kept + 1


@needs_compiler
def test_dry_run_measures_nothing(call, own_database: Path) -> None:
    status, out, _ = call("tune", SPMV, "-i", RANDOM, "--dry-run")
    assert status == 0
    assert "(default)" in out
    assert not own_database.exists()


@pytest.mark.parametrize(("raised", "status"), [("KeyboardInterrupt", 130), ("TuningError('too large')", 1)])
def test_what_a_search_held_is_not_freed_one_by_one(raised: str, status: int) -> None:
    """Millions of schedules take longer to free than a person waits after Ctrl-C."""
    source = f"""
import time
from sparsetune.compiler.errors import TuningError
from sparsetune.tuner import explore
from sparsetune.tuner.cli import main

class Huge:
    def __del__(self):
        time.sleep(6000)

def search(*arguments, **options):
    held = Huge()
    raise {raised}

explore.explore = search
main()
"""
    ended = subprocess.run([sys.executable, "-c", source, "explain", SPMV], capture_output=True, text=True, timeout=600)
    assert ended.returncode == status
    assert ended.stderr.strip().startswith("tune-kernel: error: ")


@pytest.mark.parametrize("extent", [10**11, 2**63 - 1])
def test_memory_that_cannot_be_had_is_something_missing(extent: int) -> None:
    wide = ["run", "Y(i,k) = A(i,j) * X(j,k)", "-i", RANDOM, "--dim", f"k={extent}"]
    refused = subprocess.run([*PROGRAM, *wide], capture_output=True, text=True)
    assert refused.returncode == 3
    assert refused.stderr.count("\n") == 1
    assert "X: " in refused.stderr
    assert "does not fit into memory" in refused.stderr


def test_memory_is_asked_for_everything_together_before_a_file_is_read(tmp_path: Path, call) -> None:
    """The head of a file says how many rows there are: positions, operands and result are added up before any is made."""
    matrix = b"%%MatrixMarket matrix coordinate real general\n1000000000000000 4 1\n1 1 1.0\n"
    tensor = b"# of ParTI\n2\n1000000000000000 4\n1 1 1.0\n"
    texts = {"tall.mtx": matrix, "tall.mtx.gz": gzip.compress(matrix), "tall.tns": tensor, "tall.tns.gz": gzip.compress(tensor)}
    for name, text in texts.items():
        (tmp_path / name).write_bytes(text)
    for source in (*(str(tmp_path / name) for name in texts), "random:uniform:1000000000000000x4:nnz=5"):
        status, _, said = call("run", SPMV, "-i", f"A={source}")
        assert status == 3
        assert "(A: 3.6 PiB, x: 32 B, y: 7.1 PiB) does not fit into memory: 10.7 PiB where" in said


def test_the_format_asked_for_is_the_one_that_is_made(tmp_path: Path, call) -> None:
    """As CSR the positions alone would take 3.6 PiB."""
    path = tmp_path / "tall.mtx"
    path.write_text("%%MatrixMarket matrix coordinate real general\n1000000000000000 4 1\n7 1 2.0\n")
    status, out, _ = call("run", SPMV, "-i", f"A={path}", "--format", "A=dcsr", "--output-format", "compressed", "--json")
    assert status == 0
    assert json.loads(out)["result"]["nnz"] == 1


def test_an_operand_that_no_network_can_fetch_is_status_3(monkeypatch: pytest.MonkeyPatch, call) -> None:
    def fails(*_arguments: object) -> None:
        raise NetworkError("cannot fetch it")

    monkeypatch.setattr(datasets, "load", fails)
    status, _, said = call("run", SPMV, "-i", "A=HB/494_bus")
    assert (status, "operand A: cannot fetch it" in said) == (3, True)
