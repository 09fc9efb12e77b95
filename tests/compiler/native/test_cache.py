"""The cache of compiled objects: broken entries are made again, and folders that cannot be used are done without."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from cache_entries import DECLARED, fresh_source, leftovers, made, seal
from sparsetune.compiler.errors import BuildError
from sparsetune.compiler.native import cache, keys, trial_load
from sparsetune.compiler.native.cache import cached_object
from sparsetune.compiler.native.compile import compile_shared
from sparsetune.compiler.native.library import load_compiled, load_source
from sparsetune.compiler.native.toolchain import default_flags, find_compiler

pytestmark = pytest.mark.cc


@pytest.mark.parametrize("checksum", ["old", "plain", "sealed"])
@pytest.mark.parametrize("damage", ["truncate", "cut the end", "garbage", "empty", "foreign", "other kernel"])
def test_damaged_object_is_made_again(folder: Path, damage: str, checksum: str) -> None:
    """Loaded by a process of its own: damaged objects can end the one that loads them."""
    source, number = fresh_source()
    path = made(source)
    whole = path.read_bytes()
    match damage:
        case "truncate":
            path.write_bytes(whole[: len(whole) // 2])
        case "cut the end":
            path.write_bytes(whole[:-4096])
        case "garbage":
            path.write_bytes(whole[:64] + bytes(255 - byte for byte in whole[64:]))
        case "empty":
            path.write_bytes(b"")
        case "foreign":
            library = next(Path(found) for found in sys_libraries() if "libc.so" in found)
            path.write_bytes(library.read_bytes())
        case _:
            path.write_bytes(made(fresh_source()[0]).read_bytes())
    if checksum == "plain":
        (path.parent / "sha256").write_text(hashlib.sha256(path.read_bytes()).hexdigest())
    elif checksum == "sealed":
        if damage == "other kernel":
            pytest.skip("that is what the cache itself writes")
        seal(path)
    code = (
        "from sparsetune.compiler.native.library import load_source\n"
        f"print(load_source({source!r}, {DECLARED!r}, flags=('-O0',)).answer())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(number)
    assert path.read_bytes() == whole
    assert leftovers(folder) == []


def sys_libraries() -> list[str]:
    return [line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if ".so" in line]


@pytest.mark.parametrize("damage", ["no checksum", "binary checksum", "no object", "folder for object"])
def test_broken_entry_is_made_again(folder: Path, damage: str) -> None:
    source, number = fresh_source()
    path = made(source)
    if damage == "no object":
        path.unlink()
    elif damage == "folder for object":
        path.unlink()
        path.mkdir()
    elif damage == "no checksum":
        (path.parent / "sha256").unlink()
    else:
        (path.parent / "sha256").write_bytes(b"\xff\xfe")
    assert load_source(source, DECLARED, flags=("-O0",)).answer() == number
    assert leftovers(folder) == []


def test_copied_entries_are_as_good(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their files have other numbers and times: a child loads them once more, and never again."""
    source, _ = fresh_source()
    path = made(source)
    shutil.copytree(folder, tmp_path / "copy")
    monkeypatch.setenv("SPARSETUNE_CACHE", str(tmp_path / "copy"))
    copied = tmp_path / "copy" / path.relative_to(folder)
    content = copied.stat().st_mtime_ns
    assert made(source) == copied
    monkeypatch.setattr(cache, "refusal", lambda *_: pytest.fail("loaded in a child though nothing has changed"))
    assert made(source) == copied
    assert copied.stat().st_mtime_ns == content
    assert leftovers(tmp_path / "copy") == []


def test_a_child_of_the_interpreter_decides_where_the_program_refuses(folder: Path, tmp_path: Path) -> None:
    path = made(fresh_source()[0])
    assert trial_load.refusal(path, ("answer",), None) is None
    assert "other" in str(trial_load.refusal(path, ("other",), None))
    no = tmp_path / "no"
    no.write_text("#!/bin/sh\nexit 1\n")
    no.chmod(0o755)
    assert trial_load.refusal(path, ("answer",), no) is None


@pytest.mark.parametrize("words", ["exit 1", "kill -SEGV $$"])
def test_a_damaged_program_is_no_reason_to_refuse(folder: Path, words: str) -> None:
    made(fresh_source()[0])
    (loader,) = folder.glob("*/*/loader")
    loader.write_text(f"#!/bin/sh\n{words}\n")
    source, number = fresh_source()
    assert load_source(source, DECLARED).answer() == number


@pytest.mark.parametrize("file", [True, False])
def test_what_stands_in_the_place_of_an_entry_is_moved_away(folder: Path, file: bool) -> None:
    source, number = fresh_source()
    entry = made(source).parent
    shutil.rmtree(entry)
    if file:
        entry.write_text("")
    else:
        entry.mkdir()
        (entry / "other").mkdir()
    assert load_source(source, DECLARED, flags=("-O0",)).answer() == number
    assert leftovers(folder) == []


def test_a_cache_that_is_cleared_meanwhile(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    times = []

    def cleared(*arguments: object, **keywords: object) -> Path:
        found = cached_object(*arguments, **keywords)  # type: ignore[arg-type]
        if not times:
            shutil.rmtree(folder)
        times.append(found)
        return found

    monkeypatch.setattr(cache, "cached_object", cleared)
    source, number = fresh_source()
    assert load_source(source, DECLARED).answer() == number
    assert len(times) == 2


@pytest.mark.parametrize("again", [False, True])
def test_a_cache_that_is_cleared_before_an_object_is_linked(folder: Path, monkeypatch: pytest.MonkeyPatch, again: bool) -> None:
    """The functions that kernels call are gone, or another process has made them anew meanwhile."""
    calls = []

    def cleared(sources: Sequence[Path], *arguments: object) -> None:
        calls.append(sources)
        if len(calls) == 1:
            called = sources[-1]
            kept = called.read_bytes()
            shutil.rmtree(called.parent)
            if again:
                called.parent.mkdir()
                called.write_bytes(kept)
            raise BuildError("cannot find called.o")
        compile_shared(sources, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(cache, "compile_shared", cleared)
    source, number = fresh_source()
    library = load_compiled(source, DECLARED, find_compiler(), default_flags(), 60.0, is_linked=True)
    assert library.answer() == number
    assert len(calls) == 2


def test_what_the_compiler_refuses_is_not_compiled_twice(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def refused(*_: object) -> None:
        calls.append(0)
        raise BuildError("no")

    monkeypatch.setattr(cache, "compile_shared", refused)
    with pytest.raises(BuildError, match=r"^no$"):
        load_compiled(fresh_source()[0], DECLARED, find_compiler(), default_flags(), 60.0, is_linked=True)
    assert len(calls) == 1


def test_without_the_program_objects_are_loaded_all_the_same(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise BuildError("no programs today")

    monkeypatch.setattr(cache, "compile_program", fails)
    source, number = fresh_source()
    assert load_source(source, DECLARED).answer() == number


def test_key_has_the_generator(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, _ = fresh_source()
    first = made(source)
    monkeypatch.setattr(cache, "generator_digest", lambda include: "another")
    assert made(source) != first


def test_key_of_what_ships_has_its_sources_alone(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = tmp_path / "shipped"
    shipped.mkdir()

    def helper(answer: int) -> Path:
        (shipped / "one.c").write_text(f"int st_one(void) {{ return {answer}; }}\n")
        keys.sources_digest.cache_clear()
        return cached_object("", find_compiler(), default_flags(), shipped, 60.0, ("one.c",), ("st_one",))

    first = helper(1)
    monkeypatch.setattr(cache, "generator_digest", lambda include: "another")
    assert helper(1) == first
    assert helper(2) != first


def test_generators_differ_by_their_sources(tmp_path: Path) -> None:
    (tmp_path / "one.h").write_text("1")
    first = keys.generator_digest.__wrapped__(tmp_path)
    assert first == keys.generator_digest.__wrapped__(tmp_path)
    (tmp_path / "one.h").write_text("2")
    keys.sources_digest.cache_clear()
    second = keys.generator_digest.__wrapped__(tmp_path)
    assert second != first
    (tmp_path / "one.h").write_bytes(b"\xff")  # whatever the encoding of this process is
    (tmp_path / "one.txt").write_text("3")
    keys.sources_digest.cache_clear()
    assert keys.generator_digest.__wrapped__(tmp_path) not in (first, second)
    sources = [path for place in keys._GENERATOR for path in (Path(keys.__file__).parents[1] / place).glob("*.py")]
    assert {"c.py", "kernel.py", "compile.py"} <= {path.name for path in sources}


def test_what_killed_processes_left_is_removed(folder: Path) -> None:
    code = (
        "import os, signal\n"
        "from sparsetune.compiler.native import cache, library\n"
        "cache.compile_shared = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"library.load_source({fresh_source()[0]!r}, {DECLARED!r})\n"
    )
    for _ in range(2):
        subprocess.run([sys.executable, "-c", code], check=False)
        assert len(leftovers(folder)) == 1
    source, number = fresh_source()
    assert load_source(source, DECLARED).answer() == number
    assert leftovers(folder) == []


def test_one_cached_object_more_for_each_killed_run(folder: Path) -> None:
    """Helpers of several C files are published file by file."""
    code = (
        "import os, signal\n"
        "from sparsetune.compiler.native import cache\n"
        "from sparsetune.compiler.storage import native\n"
        "make, runs = cache.compile_shared, []\n"
        "def limited(sources, *rest):\n"
        "    if sources[1:] and (runs.append(1) or len(runs) > 1):\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    make(sources, *rest)\n"
        "cache.compile_shared = limited\n"
        "assert native.library('st_block', 'st_unblock', 'st_text') is not None\n"
    )
    made = []
    while subprocess.run([sys.executable, "-c", code], check=False).returncode == -9:
        made.append(len(list(folder.glob("*/*/kernel.so"))))
        assert made == list(range(1, len(made) + 1))
    assert len(made) >= 2
