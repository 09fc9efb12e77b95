"""Programs that misbehave: they are cut, ended in time with all that they started, and never outlive this process."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from sparsetune.compiler.native.supervised import KEPT_OUTPUT, run_program


def shell(text: str, seconds: float = 20.0) -> tuple[int | None, str]:
    ended = run_program(("/bin/sh", "-c", text), seconds)
    return ended.status, ended.output


def runs(process: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False


def ends_within(process: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while runs(process):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def number_in(file: Path) -> int:
    """Return the number that a program writes into a file as soon as it has."""
    deadline = time.monotonic() + 20
    while not file.exists() or not file.read_text().endswith("\n"):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return int(file.read_text())


def test_status_and_what_was_said() -> None:
    assert shell("echo out; echo err >&2; exit 3") == (3, "out\nerr\n")
    assert run_program(("/bin/true",), 20.0).status == 0
    assert shell("kill -9 $$")[0] == 128 + 9


def test_variables_are_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ST_KEPT", "kept")
    ended = run_program(("/bin/sh", "-c", "echo $ST_KEPT $ST_ADDED"), 20.0, {"ST_ADDED": "added"})
    assert ended.output == "kept added\n"


def test_much_output_is_cut() -> None:
    status, output = shell("head -c 100000000 /dev/zero | tr '\\0' x; exit 1")
    assert status == 1
    assert output == "x" * KEPT_OUTPUT


def test_endless_output_ends_in_time() -> None:
    begun = time.monotonic()
    assert shell("while :; do echo yes; done", 0.5) == (None, "")
    assert time.monotonic() - begun < 10


@pytest.mark.parametrize("text", ["sleep 100", "exec >&- 2>&-; sleep 100", "sleep 100 & wait"])
def test_what_hangs_is_ended(text: str) -> None:
    begun = time.monotonic()
    assert shell(text, 0.3) == (None, "")
    assert time.monotonic() - begun < 10


def test_what_is_left_behind_is_ended(tmp_path: Path) -> None:
    """Its standard output, held open, is not waited for either."""
    assert shell(f"sleep 100 & echo $! > {tmp_path}/left; exit 0")[0] == 0
    assert ends_within(number_in(tmp_path / "left"), 5)


def test_no_program() -> None:
    with pytest.raises(FileNotFoundError):
        run_program(("/nonexistent/program",), 5.0)
    with pytest.raises(PermissionError):
        run_program((__file__,), 5.0)


def test_nothing_outlives_the_process(tmp_path: Path) -> None:
    """A killed process cannot end what it started; neither the program nor what that has started goes on."""
    text = f"sleep 100 & echo $! > {tmp_path}/below; echo $$ > {tmp_path}/program; wait"
    code = f"from sparsetune.compiler.native.supervised import run_program\nrun_program(('/bin/sh', '-c', {text!r}), 100.0)"
    process = subprocess.Popen([sys.executable, "-c", code])
    below, program = number_in(tmp_path / "below"), number_in(tmp_path / "program")
    assert runs(below)
    assert runs(program)
    process.kill()
    process.wait()
    assert ends_within(below, 2)
    assert ends_within(program, 2)
