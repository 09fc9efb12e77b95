"""Compiling C at run time, and all that can go wrong with it."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from sparsetune.compiler.errors import BuildError
from sparsetune.compiler.native import cache, instructions, toolchain
from sparsetune.compiler.native.cache import cached_object
from sparsetune.compiler.native.instructions import check_instructions
from sparsetune.compiler.native.library import CSRC, load_source, openmp_works
from sparsetune.compiler.native.machine import available_cores, this_machine
from sparsetune.compiler.native.toolchain import available_compilers, default_flags, find_compiler, vector_bytes

pytestmark = pytest.mark.cc
NUMBERS = itertools.count(int(time.time() * 1000) % 10**9)


def fresh_source() -> tuple[str, int]:
    """Return a source that no cache has, and the answer that it gives."""
    number = next(NUMBERS)
    return f"int answer(void) {{ return {number}; }}\n", number


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPARSETUNE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Give a compiler that is a shell script."""

    def make(text: str) -> Path:
        path = tmp_path / "fake-cc"
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        monkeypatch.setenv("SPARSETUNE_CC", str(path))
        return path

    return make


def entries(folder: Path) -> list[Path]:
    return [path.parent for path in folder.glob("*/*/kernel.so")]


def leftovers(folder: Path) -> list[Path]:
    return list(folder.glob("*/.*"))


def test_compiled_once(folder: Path) -> None:
    source, number = fresh_source()
    assert load_source(source, "int answer(void);").answer() == number
    (entry,) = entries(folder)
    assert (entry / "kernel.c").read_text() == source
    before = (entry / "kernel.so").stat().st_mtime_ns
    cached_object(source, find_compiler(), toolchain.default_flags(), CSRC)
    assert (entry / "kernel.so").stat().st_mtime_ns == before
    assert leftovers(folder) == []


def test_key_has_flags_and_compiler(folder: Path) -> None:
    source, _ = fresh_source()
    paths = {cached_object(source, compiler, flags, CSRC) for compiler in available_compilers() for flags in (("-O0",), ("-O1",))}
    assert len(paths) == 2 * len(available_compilers())


@pytest.mark.parametrize("damage", ["truncate", "garbage", "no checksum", "binary checksum", "no object"])
def test_broken_entry_is_made_again(folder: Path, damage: str) -> None:
    source, number = fresh_source()
    path = cached_object(source, find_compiler(), ("-O0",), CSRC)
    whole = path.read_bytes()
    if damage == "truncate":
        path.write_bytes(whole[: len(whole) // 2])
    elif damage == "garbage":
        path.write_bytes(b"\x7fELF" + bytes(len(whole) - 4))
    elif damage == "no object":
        path.unlink()
    elif damage == "no checksum":
        (path.parent / "sha256").unlink()
    else:
        (path.parent / "sha256").write_bytes(b"\xff\xfe")
    again = load_source(source, "int answer(void);", flags=("-O0",))
    assert again.answer() == number
    assert leftovers(folder) == []


def test_two_processes_at_once(folder: Path, tmp_path: Path) -> None:
    source, number = fresh_source()
    go = tmp_path / "go"
    script = Path(__file__).parents[2] / "native_race.py"
    racers = [subprocess.Popen([sys.executable, str(script), source, str(go)], stdout=subprocess.PIPE, text=True) for _ in range(4)]
    time.sleep(0.5)
    go.touch()
    assert [racer.communicate(timeout=600)[0].strip() for racer in racers] == [str(number)] * 4
    assert len(entries(folder)) == 1
    assert leftovers(folder) == []


def test_unwritable_cache_falls_back_with_one_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("SPARSETUNE_CACHE", str(tmp_path / "file" / "cache"))
    cache._warn_unwritable.cache_clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            source, number = fresh_source()
            assert load_source(source, "int answer(void);").answer() == number
    assert len(caught) == 1
    assert "SPARSETUNE_CACHE" in str(caught[0].message)


def test_a_cache_that_can_be_written_leaves_no_folder_of_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARSETUNE_CACHE", str(tmp_path))
    monkeypatch.setattr(cache, "_private_folder", lambda: pytest.fail("made a folder that killed processes leave behind"))
    source, number = fresh_source()
    assert load_source(source, "int answer(void);").answer() == number


def test_nowhere_to_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SPARSETUNE_CACHE", str(tmp_path / "file" / "cache"))
    monkeypatch.setattr(cache, "_private_folder", lambda: tmp_path / "file" / "private")
    monkeypatch.setattr(cache, "_warn_unwritable", lambda *_: None)
    with pytest.raises(BuildError, match="can be written"):
        cached_object(fresh_source()[0], find_compiler(), (), CSRC)


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() == 0, reason="root may write everywhere")
def test_read_only_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o500)
    monkeypatch.setenv("SPARSETUNE_CACHE", str(folder))
    source, number = fresh_source()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert load_source(source, "int answer(void);").answer() == number


def first_line(error: pytest.ExceptionInfo[BaseException]) -> str:
    return str(error.value).splitlines()[0]


def test_compiler_error_shows_its_first_line(folder: Path) -> None:
    with pytest.raises(BuildError) as error:
        load_source("int answer(void) { return nothing; }", "int answer(void);")
    assert "nothing" in first_line(error)
    assert "error:" in first_line(error)
    assert entries(folder) == []
    assert leftovers(folder) == []


def test_failing_compiler(folder: Path, script: Callable[[str], Path]) -> None:
    script("echo 'internal compiler error: no such luck' >&2; exit 3")
    with pytest.raises(BuildError, match="no such luck"):
        load_source(fresh_source()[0], "int answer(void);")


def test_silent_failure(folder: Path, script: Callable[[str], Path]) -> None:
    script("exit 4")
    with pytest.raises(BuildError, match="exit status 4"):
        load_source(fresh_source()[0], "int answer(void);")


def test_compiler_that_lies(folder: Path, script: Callable[[str], Path]) -> None:
    script("exit 0")
    with pytest.raises(BuildError, match="wrote no object"):
        load_source(fresh_source()[0], "int answer(void);")


def test_object_that_cannot_be_loaded(folder: Path, script: Callable[[str], Path]) -> None:
    script('while [ "$1" != -o ]; do shift; done; echo rubbish > "$2"')
    with pytest.raises(BuildError, match="cannot be loaded"):
        load_source(fresh_source()[0], "int answer(void);")


def test_hanging_compiler_is_ended_with_its_children(folder: Path, script: Callable[[str], Path], tmp_path: Path) -> None:
    script(f"sleep 6000 & echo $! > {tmp_path}/child; wait")
    for limit in (0.5, 5, 50):  # on a busy machine the child may take a while to come to life
        with pytest.raises(BuildError, match=f"longer than {limit:g} s"):
            load_source(fresh_source()[0], "int answer(void);", timeout=limit)
        if (tmp_path / "child").exists():
            break
    child = int((tmp_path / "child").read_text())
    for _ in range(2000):
        if not Path(f"/proc/{child}").exists() or "\nState:\tZ" in Path(f"/proc/{child}/status").read_text():
            break
        time.sleep(0.05)
    else:
        pytest.fail("the compiler's child still runs")


def test_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARSETUNE_CC", raising=False)
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(BuildError, match="apt install gcc"):
        find_compiler()
    assert available_compilers() == ()


@pytest.mark.parametrize("name", ["/nonexistent/cc", "", "   ", "'unclosed"])
def test_bad_named_compiler(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARSETUNE_CC", name)
    if name:
        with pytest.raises(BuildError, match="SPARSETUNE_CC"):
            find_compiler()
    else:
        assert find_compiler().name in toolchain.CANDIDATES


def test_compiler_with_arguments(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = find_compiler()
    monkeypatch.setenv("SPARSETUNE_CC", f"{plain.command[0]} -DANSWER=41")
    assert load_source("int answer(void) { return ANSWER; }", "int answer(void);").answer() == 41
    assert find_compiler().version.splitlines() == [plain.version]


@pytest.mark.parametrize("flag", ["-Ofast", "-ffast-math", "-ffinite-math-only"])
def test_fast_math_is_refused(flag: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """gcc links code into such objects that makes the whole process flush subnormal numbers to zero."""
    monkeypatch.setenv("SPARSETUNE_CC", f"gcc -O2 {flag}")
    with pytest.raises(BuildError, match=f"SPARSETUNE_CC asks for {flag}"):
        find_compiler()


def test_instructions_that_the_processor_lacks_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = find_compiler("gcc")
    check_instructions(compiler, default_flags())
    check_instructions(compiler, ("-O2", "-march=no-such-processor"))  # what the compiler says of it is clearer
    monkeypatch.setattr(instructions, "machine_flags", lambda: ("-march=x86-64",))
    check_instructions(compiler, ("-O2", "-march=native", "-march=k8", "-mtune=znver3"))
    with pytest.raises(BuildError, match=r"has no AVX, AVX2, .*FMA.* which -march=haswell asks for"):
        check_instructions(compiler, ("-O2", "-march=haswell"))
    with pytest.raises(BuildError, match=r"AVX512F.* which -mavx512f asks for"):
        check_instructions(compiler, ("-mavx512f",))


def test_openmp_is_found() -> None:
    assert openmp_works(find_compiler("gcc").identity, "gcc")


def test_compiler_without_openmp(folder: Path, script: Callable[[str], Path]) -> None:
    real = find_compiler("gcc").command[0]
    script(f'for word; do if [ "$word" = -fopenmp ]; then echo "error: no OpenMP here" >&2; exit 1; fi; done; exec {real} "$@"')
    source, number = fresh_source()
    assert not openmp_works(find_compiler().identity, None)
    assert load_source(source, "int answer(void);", openmp=True).answer() == number


def test_machine() -> None:
    machine = this_machine()
    assert machine.vector_bytes in (16, 32, 64)
    assert 1 <= available_cores() <= machine.cores
    assert len(machine.fingerprint) == 16
    assert machine.last_level_cache >= 2**20
    levels = [level.level for level in machine.caches]
    assert levels == sorted(levels)


def test_vectors_are_as_wide_as_flags_prefer_and_the_machine_has() -> None:
    widest = this_machine().vector_bytes
    assert vector_bytes(("-O3",)) == widest
    assert vector_bytes(("-mprefer-vector-width=512", "-mprefer-vector-width=128")) == 16
    assert vector_bytes(("-mprefer-vector-width=512",)) == widest
    assert vector_bytes(("-mprefer-vector-width=none",)) == widest
