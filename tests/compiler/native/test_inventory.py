"""What the cache of compiled objects holds, and what is removed from it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sparsetune.compiler.errors import BuildError
from sparsetune.compiler.native.inventory import cached_objects, remove_objects

PROGRAM = """
import sys
import numpy as np
import sparsetune as st
from sparsetune.compiler.native.folders import cache_folder
from sparsetune.compiler.native.inventory import cached_objects, remove_objects

def sums(scale):
    return st.compile(f"y(i) = {scale} * x(i)", schedule="build(auto, \\"-O1\\")")(x=np.ones(3)).tolist()

print(sums(2))
remove_objects(cache_folder(), list(cached_objects(cache_folder())))
print(len(list(cached_objects(cache_folder()))), sums(3), sorted(one.title for one in cached_objects(cache_folder())))
"""


def entry(folder: Path, digit: str, files: dict[str, str], days: float = 0.0) -> Path:
    """Make an entry that was last used some days ago."""
    place = folder / (2 * digit) / (64 * digit)
    place.mkdir(parents=True)
    for name, text in files.items():
        (place / name).write_text(text)
        os.utime(place / name, (time.time() - 86400 * days,) * 2)
    return place


def test_entries_say_what_they_are_how_large_and_when_they_were_used(tmp_path: Path) -> None:
    entry(tmp_path, "a", {"kernel.so": "1234", "kernel.c": "/* y(i) = x(i) */\n/* 64-byte vectors */\n", "sha256": "12"}, 3)
    entry(tmp_path, "b", {"loader": "1", "kernel.c": "int main;\n"})
    entry(tmp_path, "c", {"sha256": "1"})
    (tmp_path / f"cuda-{40 * 'e'}.so").write_text("123")
    found = {one.kind: one for one in cached_objects(tmp_path)}
    assert {kind: (one.title, one.bytes) for kind, one in found.items()} == {
        "kernel": ("y(i) = x(i)", 46), "loader": ("loader", 11), "damaged": ("damaged", 1), "device kernel": ("device kernel", 3),
    }  # fmt: skip
    assert time.time() - found["kernel"].used == pytest.approx(3 * 86400, abs=60)


def test_only_what_the_cache_has_made_is_removed(tmp_path: Path) -> None:
    made, other = entry(tmp_path, "a", {"kernel.so": "1234"}), entry(tmp_path, "b", {"kernel.so": "12"})
    kept = [tmp_path / "versions" / "1" / "a.py", tmp_path / "ab" / "mine.txt", tmp_path / "photo.so"]
    for file in kept:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("mine")
    (tmp_path / "cc").symlink_to(tmp_path / "versions")
    found = list(cached_objects(tmp_path))
    assert {one.path for one in found} == {made, other}
    assert remove_objects(tmp_path, [one for one in found if one.path == made]) == (1, 4)
    assert remove_objects(tmp_path, found) == (1, 2)  # the other one is gone
    assert not made.exists()
    assert all(file.read_text() == "mine" for file in kept)
    assert not list(tmp_path.glob(".making-*"))


def test_a_folder_that_is_none_holds_nothing_or_is_refused_in_one_line(tmp_path: Path) -> None:
    assert list(cached_objects(tmp_path / "nowhere")) == []
    (tmp_path / "file").write_text("")
    with pytest.raises(BuildError, match=r"file cannot be read: Not a directory$"):
        list(cached_objects(tmp_path / "file"))


@pytest.mark.cc
def test_a_process_whose_cache_is_cleared_goes_on(tmp_path: Path) -> None:
    environment = os.environ | {"SPARSETUNE_CACHE": str(tmp_path / "cache")}
    ended = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines()[0] == "[2.0, 2.0, 2.0]"
    assert ended.stdout.splitlines()[1].startswith("0 [3.0, 3.0, 3.0] ")
    assert "y(i) = 3 * x(i)" in ended.stdout
