"""Files are written whole or not at all, behind links too; what is no plain file stays what it is."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest
from sparsetune.compiler.native.whole import whole_file


def test_a_failure_leaves_the_old_file(tmp_path: Path) -> None:
    place = tmp_path / "a"
    place.write_text("old")
    with pytest.raises(TypeError), whole_file(place) as file:
        file.writelines([b"ne", 0])  # pyright: ignore[reportArgumentType] it fails in the middle
    assert place.read_text() == "old"
    assert list(tmp_path.iterdir()) == [place]


def test_a_link_stays_and_what_it_leads_to_is_written(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    link, target = tmp_path / "link", tmp_path / "folder" / "file"
    link.symlink_to(target)
    for content in (b"first", b"second"):  # the first makes the file
        with whole_file(link) as file:
            file.write(content)
        assert link.is_symlink()
        assert target.read_bytes() == content


def test_what_is_no_plain_file_is_written_itself(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    with whole_file(pipe) as file:
        file.write(b"content")
    reader.join(10)
    assert read == [b"content"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_permissions_are_those_of_any_new_file_or_those_asked_for(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        for name, mode in (("a", None), ("b", 0o600)):
            with whole_file(tmp_path / name, mode):
                pass
    finally:
        os.umask(before)
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in "ab"] == [0o640, 0o600]
