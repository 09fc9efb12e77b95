"""Standard streams that are full, closed, or of an encoding that lacks characters."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest
from sparsetune.tuner.commands import db
from sparsetune.tuner.database import open_database
from tuner_samples import measurement

PROGRAM = [sys.executable, "-c", "from sparsetune.tuner.cli import main; main()"]
CODE = ("code", "y(i) = A(i,j) * x(j)", "--format", "A=csr")
needs_full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
pytestmark = pytest.mark.usefixtures("own_database")


def ended(redirection: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[bytes]:
    """Run a command line with streams redirected as a shell does."""
    shell = ["sh", "-c", f'exec "$@" {redirection}', "sh"]
    return subprocess.run([*shell, *PROGRAM, *arguments], capture_output=True, check=False, env={**os.environ, **variables})


@needs_full
@pytest.mark.parametrize("arguments", [CODE, ("--help",), ("--version",), ("data", "list", "--json")], ids=lambda given: given[0])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_results_that_cannot_be_written_are_one_line(arguments: tuple[str, ...], unbuffered: str) -> None:
    done = ended("> /dev/full", *arguments, PYTHONUNBUFFERED=unbuffered)
    assert done.returncode == 2
    assert done.stderr == b"tune-kernel: error: standard output cannot be written: No space left on device\n"


@needs_full
@pytest.mark.parametrize("redirection", ["2> /dev/full", "2>&-"])
def test_messages_that_nobody_can_read_change_nothing(redirection: str) -> None:
    done = ended(redirection, "code", "y(i) = ")
    assert (done.returncode, done.stdout) == (2, b"")
    done = ended(redirection, "data", "search", "--limit", "1")  # which notes that there is more
    assert done.returncode == 0
    assert done.stdout


def test_without_standard_output_a_command_does_its_work(tmp_path: Path) -> None:
    done = ended(">&- 2>&- <&-", *CODE, "-o", str(tmp_path / "kernel"))
    assert done.returncode == 0
    assert (tmp_path / "kernel" / "kernel.c").stat().st_size


def test_characters_that_the_encoding_lacks_are_shown_by_number() -> None:
    done = ended("", "explain", *CODE[1:], PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert b"\\u2514 for j" in done.stdout


def test_names_of_files_are_printed_as_they_are(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/\xff.mtx"
    Path(os.fsdecode(path)).write_text("%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 2.5\n")
    done = ended("", "data", "path", os.fsdecode(path))
    assert done.stdout == path + b"\n"


def test_exports_are_written_whole_or_not_at_all(call, own_database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_database(str(own_database)) as database:
        database.add(measurement(campaign="c"))

    def fails(_records: object, stream: IO[str]) -> int:
        stream.write("half a rec")
        raise OSError(28, "No space left on device")

    monkeypatch.setitem(db._WRITERS, "jsonl", fails)
    place = tmp_path / "records.jsonl"
    place.write_text("what was exported before\n")
    status, _, err = call("db", "export", str(place))
    assert (status, err) == (2, f"tune-kernel: error: cannot write {place}: No space left on device\n")
    assert place.read_text() == "what was exported before\n"


@pytest.mark.cc
@pytest.mark.parametrize("variables", [{}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}], ids=["text", "ascii"])
def test_folders_may_have_names_that_are_no_text(tmp_path: Path, variables: dict[str, str]) -> None:
    folder = os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xc3\xbc")
    os.mkdir(folder)
    given = {"SPARSETUNE_CACHE": folder, "SPARSETUNE_DATABASE": f"{folder}/s.sqlite", **variables}
    with open_database(given["SPARSETUNE_DATABASE"]):
        pass
    done = ended("", "run", "y(i) = A(i,j) * x(j)", "--dim", "i=3", "--dim", "j=4", **given)
    assert (done.returncode, done.stderr) == (0, b"")
