"""A rank that fails ends all of them within seconds, with a status that is not 0 and one line of ours."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from pathlib import Path

import pytest
from mpi_runs import launcher, mpiexec
from sparsetune.compiler.native.toolchain import available_compilers
from sparsetune.tuner.distributed.failure import wait_until_read

pytestmark = [pytest.mark.cc, pytest.mark.skipif(not available_compilers(), reason="needs a C compiler")]
PROGRAM = Path(__file__).parents[2] / "mpi_failures.py"
SECONDS = 10
"""In which all ranks have to end."""


@pytest.mark.parametrize(
    ("how", "line"),
    [
        ("version", "sparsetune: error: BuildError: rank 2 runs sparsetune 0.0.7+other, but rank 0 runs "),
        ("memory", "sparsetune: error: rank 2 of 3: "),
        ("wrong", "sparsetune: error: ExpressionError: expected ')' to close the subscripts of C"),
        ("file", "sparsetune: error: DataError: rank 0 of 3: nowhere.tns: no such file"),
    ],
)
def test_all_ranks_end_with_one_line(how: str, line: str, tmp_path: Path) -> None:
    done = _failed(how, tmp_path)
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith(line)


def test_a_rank_that_is_killed_while_results_are_summed_ends_the_others(tmp_path: Path) -> None:
    assert _failed("kill", tmp_path).returncode == 9  # the launcher says which process it was


def test_an_error_of_the_program_on_one_rank_ends_the_others(tmp_path: Path) -> None:
    shown = _failed("python", tmp_path).stderr.strip().splitlines()
    assert (shown[0], shown[-1]) == ("Traceback (most recent call last):", "ZeroDivisionError: of one rank")


def test_a_rank_ends_when_what_it_said_was_read() -> None:
    reader, writer = os.pipe()
    try:
        assert wait_until_read(writer, 0.0)
        os.write(writer, b"a last line")
        assert not wait_until_read(writer, 0.02)  # a reader that hangs keeps nobody for ever
        late = threading.Timer(0.1, os.read, (reader, 100))
        late.start()
        assert wait_until_read(writer, 10.0)
        assert late.finished.is_set()
        late.join()
    finally:
        os.close(reader)
        os.close(writer)


def test_without_mpi4py_one_line_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "mpi4py.py").write_text("raise ImportError('no mpi4py here')")
    done = mpiexec(1, "-c", "import sparsetune as st; st.distributed.tensor([[1.0]])", environment={"PYTHONPATH": str(tmp_path)})
    assert done.returncode != 0
    assert "pip install 'sparsetune[mpi]'" in done.stderr


def _failed(how: str, folder: Path) -> subprocess.CompletedProcess[str]:
    launcher()
    moment = folder / "moment"
    done = mpiexec(3, PROGRAM, how, moment)
    assert time.time() - float(moment.read_text()) < SECONDS
    assert done.returncode != 0
    return done
