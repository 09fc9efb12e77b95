"""Folders that others can write: objects are loaded from there, so they are not used."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from sparsetune.compiler.native import trust
from sparsetune.compiler.native.trust import flaw, make_private

ROOT = not hasattr(os, "geteuid") or os.geteuid() == 0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_private(tmp_path / "parent" / "cache")
    return tmp_path / "parent" / "cache"


def test_folders_made_here_are_the_users_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        make_private(tmp_path / "a" / "b")
    finally:
        os.umask(before)
    assert flaw(tmp_path / "a" / "b") is None
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o700


def test_missing_folders_are_judged_by_their_parents(folder: Path) -> None:
    assert flaw(folder / "not" / "there") is None
    folder.chmod(0o777)
    assert flaw(folder / "not" / "there") == f"others can write {folder}"


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o702])
def test_others_can_write_it(folder: Path, mode: int) -> None:
    folder.chmod(mode)
    assert flaw(folder) == f"others can write {folder}"


def test_others_can_replace_it(folder: Path) -> None:
    folder.parent.chmod(0o777)
    assert flaw(folder) == f"others can write {folder.parent}"
    folder.parent.chmod(0o1777)
    assert flaw(folder) is None


def test_groups(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.chmod(0o770)
    monkeypatch.setattr(trust, "_is_alone", lambda user, group: True)
    assert flaw(folder) is None
    monkeypatch.setattr(trust, "_has_access_list", lambda path: True)
    assert flaw(folder) is not None
    monkeypatch.undo()
    monkeypatch.setattr(trust, "_is_alone", lambda user, group: False)
    assert flaw(folder) == f"others can write {folder}"


def test_links_are_followed_and_judged(folder: Path, tmp_path: Path) -> None:
    open_place = tmp_path / "open"
    open_place.mkdir()
    (open_place / "link").symlink_to(folder)
    (tmp_path / "short").symlink_to("open/../open/link")
    assert flaw(tmp_path / "short") is None
    folder.chmod(0o777)
    assert flaw(tmp_path / "short") == f"others can write {folder}"
    folder.chmod(0o700)
    open_place.chmod(0o777)
    assert flaw(tmp_path / "short") == f"others can write {open_place}"


def test_links_in_circles(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(OSError, match="links"):
        flaw(tmp_path / "a" / "cache")


@pytest.mark.skipif(not ROOT, reason="only the superuser can give folders away")
@pytest.mark.parametrize("given", ["cache", "parent", "link"])
def test_what_belongs_to_another_user(folder: Path, tmp_path: Path, given: str) -> None:
    link = tmp_path / "link"
    link.symlink_to(folder)
    os.chown({"cache": folder, "parent": folder.parent, "link": link}[given], 1234, 1234, follow_symlinks=False)
    assert str(flaw(link)).endswith("belongs to another user")


SCRIPT = (
    "import sparsetune as st, numpy as np\n"
    "k = st.compile('y(i) = 2 * x(i)')\n"
    "assert (k(x=np.ones(3)) == 2).all() and (k(x=np.ones(4)) == 2).all()  # the user's line\n"
    "from sparsetune.compiler.native import places\n"
    "print(places._private_folder())\n"
)


def test_a_private_folder_takes_its_place_with_one_line(folder: Path, tmp_path: Path) -> None:
    folder.chmod(0o777)
    place = tmp_path / "temporary"
    place.mkdir()
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    environment = {**os.environ, "SPARSETUNE_CACHE": str(folder), "TMPDIR": str(place)}
    done = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True, check=True)
    assert list(folder.iterdir()) == []
    assert done.stdout.startswith(str(place))
    assert list(place.iterdir()) == []
    first, second = done.stderr.splitlines()
    assert first.startswith(f"{script}:3: RuntimeWarning: ")
    assert f"others can write {folder}" in first
    assert second.strip().endswith("# the user's line")
