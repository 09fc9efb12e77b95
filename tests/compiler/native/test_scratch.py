"""Folders of one process: those of killed processes are removed, those of living ones never."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sparsetune.compiler.native import scratch
from sparsetune.compiler.native.scratch import Scratch, new_scratch, sweep

PREFIX = ".making-"
CODE = (
    "import sys, pathlib, time\n"
    "from sparsetune.compiler.native.scratch import Scratch\n"
    f"folder = Scratch(pathlib.Path(sys.argv[1]), {PREFIX!r})\n"
    "(folder.path / 'file').write_text('content')\n"
    "print(folder.path, flush=True)\n"
    "time.sleep(100)\n"
)


def test_a_folder_goes_with_its_process(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", CODE, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    theirs = Path(process.stdout.readline().strip())
    with Scratch(tmp_path, PREFIX) as mine:
        sweep(tmp_path, PREFIX)
        assert mine.is_dir()
        assert (theirs / "file").read_text() == "content"
        process.kill()
        process.communicate()
        sweep(tmp_path, PREFIX)
        assert not theirs.exists()
        assert mine.is_dir()
    assert list(tmp_path.iterdir()) == []


def test_only_this_user_may_enter(tmp_path: Path) -> None:
    with Scratch(tmp_path, PREFIX) as folder:
        assert folder.stat().st_mode & 0o777 == 0o700


def test_what_is_renamed_stays(tmp_path: Path) -> None:
    with Scratch(tmp_path, PREFIX) as folder:
        folder.rename(tmp_path / "entry")
    assert [path.name for path in tmp_path.iterdir()] == ["entry"]


def test_others_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / f"{PREFIX}file").write_text("")
    (tmp_path / "target").mkdir()
    (tmp_path / f"{PREFIX}link").symlink_to(tmp_path / "target")
    sweep(tmp_path, PREFIX)
    assert len(list(tmp_path.iterdir())) == 4
    sweep(tmp_path / "missing", PREFIX)


def test_swept_before_it_was_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process may take a folder that was just made for one that was left behind."""
    hold, swept = scratch._hold, []

    def late(folder: Path) -> int | None:
        if not swept:
            swept.append(folder)
            folder.rmdir()
        return hold(folder)

    monkeypatch.setattr(scratch, "_hold", late)
    with new_scratch(tmp_path, PREFIX) as folder:
        assert folder.is_dir()
        assert folder != swept[0]


def test_without_locks_only_old_folders_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(95, "not supported")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    young, old = tmp_path / f"{PREFIX}young", tmp_path / f"{PREFIX}old"
    for folder in (young, old):
        folder.mkdir()
    os.utime(old, (0, time.time() - 100_000))
    with new_scratch(tmp_path, PREFIX) as mine:
        assert set(tmp_path.iterdir()) == {young, mine}


def test_another_machine_may_hold_what_seems_free(tmp_path: Path) -> None:
    """Its locks need not be seen here: only what is old goes."""
    young, old = tmp_path / f"{PREFIX}elsewhere-1", tmp_path / f"{PREFIX}elsewhere-2"
    for folder in (young, old):
        folder.mkdir()
    os.utime(old, (0, time.time() - 100_000))
    sweep(tmp_path, PREFIX)
    assert list(tmp_path.iterdir()) == [young]
