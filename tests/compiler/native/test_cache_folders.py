"""Folders of the cache that cannot be used, are full, or that others can write: done without, with one warning."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

import pytest
from cache_entries import DECLARED, fresh_source, made
from sparsetune.compiler.errors import BuildError
from sparsetune.compiler.native import entries, places
from sparsetune.compiler.native.library import load_source
from sparsetune.compiler.native.supervised import run_program
from sparsetune.compiler.native.toolchain import find_compiler

pytestmark = pytest.mark.cc


def caught_answer(source: str, number: int) -> list[str]:
    """Load twice and return what was warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert load_source(source, DECLARED).answer() == number
        other, another = fresh_source()
        assert load_source(other, DECLARED).answer() == another
    assert [warning.filename for warning in caught] == [__file__] * len(caught)
    return [str(warning.message) for warning in caught]


def test_unwritable_cache_falls_back_with_one_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("SPARSETUNE_CACHE", str(tmp_path / "file" / "cache"))
    (message,) = caught_answer(*fresh_source())
    assert "SPARSETUNE_CACHE" in message


@pytest.mark.parametrize("place", ["", "entries"])
def test_cache_that_others_can_write_falls_back_with_one_warning(folder: Path, place: str) -> None:
    source, number = fresh_source()
    path = made(source)
    opened = path.parents[1] if place else folder
    before = set(folder.rglob("*"))
    opened.chmod(0o777)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert load_source(source, DECLARED, flags=("-O0",)).answer() == number
    (message,) = (str(warning.message) for warning in caught)
    assert f"others can write {opened}" in message
    assert set(folder.rglob("*")) == before


def test_full_disk_falls_back_with_one_warning(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the compiler says when it cannot write is as good as any other failure; that nothing can be written is what counts."""
    real = find_compiler().command[0]
    full = tmp_path / "full-cc"
    full.write_text(f'#!/bin/sh\ncase "$*" in *{folder}*) echo "fatal error: cannot write"; exit 1;; esac\nexec {real} "$@"\n')
    full.chmod(0o755)
    monkeypatch.setenv("SPARSETUNE_CC", str(full))
    source, number = fresh_source()
    with pytest.raises(BuildError, match="cannot write"):
        load_source(source, DECLARED)
    written = entries._require_room
    no_room = OSError(28, "No space left on device")
    monkeypatch.setattr(entries, "_require_room", lambda place: raise_(no_room) if folder in place.parents else written(place))
    (message,) = caught_answer(source, number)
    assert "No space left on device" in message


def raise_(error: OSError) -> None:
    raise error


def test_disk_that_is_really_full(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    code = (
        "import sparsetune as st, numpy as np\n"
        "k = st.compile('y(i) = 2 * x(i)')\n"
        "assert (k(x=np.ones(3)) == 2).all()\n"
    )  # fmt: skip
    script = f'mount -t tmpfs -o size=16k none {tmp_path}/disk && chmod 700 {tmp_path}/disk && exec {sys.executable} -c "$CODE"'
    environment = {"CODE": code, "SPARSETUNE_CACHE": str(tmp_path / "disk"), "TMPDIR": str(tmp_path)}
    try:
        if run_program(("/usr/bin/unshare", "-rm", "/bin/sh", "-c", f"mount -t tmpfs none {tmp_path}/disk"), 10.0).status != 0:
            pytest.skip("this user may mount nothing")
    except OSError:
        pytest.skip("no unshare here")
    ended = run_program(("/usr/bin/unshare", "-rm", "/bin/sh", "-c", script), 120.0, environment)
    assert ended.status == 0, ended.output
    assert ended.output.count("RuntimeWarning") == 1
    assert "No space left on device" in ended.output
    assert [path.name for path in tmp_path.iterdir()] == ["disk"]


def test_a_cache_that_can_be_written_leaves_no_folder_of_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARSETUNE_CACHE", str(tmp_path))
    monkeypatch.setattr(places, "_private_folder", lambda: pytest.fail("made a folder that nobody needs"))
    source, number = fresh_source()
    assert load_source(source, DECLARED).answer() == number


def test_nowhere_to_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SPARSETUNE_CACHE", str(tmp_path / "file" / "cache"))
    monkeypatch.setattr(places, "_warn_unwritable", lambda *_: None)
    for private in (None, tmp_path / "file" / "private"):
        monkeypatch.setattr(places, "_private_folder", lambda place=private: place)
        with pytest.raises(BuildError, match="can be written"):
            made(fresh_source()[0])


def test_read_only_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path("/sys/kernel")  # where not even root may make files
    if os.getuid() != 0:
        folder = tmp_path / "cache"
        folder.mkdir(mode=0o500)
    monkeypatch.setenv("SPARSETUNE_CACHE", str(folder))
    assert len(caught_answer(*fresh_source())) == 1
