"""Compiling C at run time, and all that can go wrong with it."""

from __future__ import annotations

import itertools
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from sparsetune.compiler.errors import BuildError
from sparsetune.compiler.native import cache, instructions, toolchain
from sparsetune.compiler.native.cache import cached_object
from sparsetune.compiler.native.instructions import check_instructions
from sparsetune.compiler.native.library import CSRC, load_source
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
    return [*folder.glob(".*"), *folder.glob("*/.*")]


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


def first_line(error: pytest.ExceptionInfo[BaseException]) -> str:
    return str(error.value).splitlines()[0]


def test_compiler_error_shows_its_first_line(folder: Path) -> None:
    with pytest.raises(BuildError) as error:
        load_source("int answer(void) { return nothing; }", "int answer(void);")
    assert "nothing" in first_line(error)
    assert "error:" in first_line(error)
    assert entries(folder) == []
    assert not any(path.is_dir() and not any(path.iterdir()) for path in folder.iterdir())
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
    assert entries(folder) == []
    assert leftovers(folder) == []


def test_object_without_its_function(folder: Path) -> None:
    with pytest.raises(BuildError, match="other"):
        load_source(fresh_source()[0], "int other(void);")
    assert entries(folder) == []


def test_object_that_ends_the_process_that_loads_it(folder: Path) -> None:
    source = "#include <stdlib.h>\n__attribute__((constructor)) static void start(void) { abort(); }\n" + fresh_source()[0]
    with pytest.raises(BuildError, match="signal 6"):
        load_source(source, "int answer(void);")
    assert entries(folder) == []


@pytest.mark.parametrize("words", ["head -c 100000000 /dev/zero | tr '\\0' x", "head -c 200000 /dev/zero", "yes 'error: this line'"])
def test_compiler_that_says_much(folder: Path, script: Callable[[str], Path], words: str) -> None:
    script(f"{words} | head -c 100000000 >&2; exit 1")
    with pytest.raises(BuildError) as error:
        load_source(fresh_source()[0], "int answer(void);")
    assert len(str(error.value).splitlines()) == 1
    assert len(str(error.value)) < 500
    assert sum(map(len, error.value.__notes__)) < 20_000


def test_compiler_of_another_language(folder: Path, monkeypatch: pytest.MonkeyPatch, script: Callable[[str], Path]) -> None:
    """Messages are recognised, whatever language the user has."""
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    script('[ "$LC_ALL" = C ] && echo "error: in English" || echo "Fehler"; exit 1')
    with pytest.raises(BuildError, match="in English"):
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


def test_hanging_compiler_is_waited_for_once(folder: Path, script: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_LOADER_SECONDS", 1.0)
    script("sleep 60")
    begun = time.monotonic()
    for _ in range(30):
        with pytest.raises(BuildError, match="took longer than 1 s"):
            load_source(fresh_source()[0], "int answer(void);")
    assert time.monotonic() - begun < 20


def test_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARSETUNE_CC", raising=False)
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(BuildError, match="apt install gcc"):
        find_compiler()
    assert available_compilers() == ()


@pytest.mark.parametrize("path", ["", "{}", "{}:/bin", "/nonexistent::{}", "{}/below:{}"])
@pytest.mark.parametrize("name", ["one", "two", "below", "sh", "./one", "below/one"])
def test_programs_are_those_that_which_finds(name: str, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "below").mkdir()
    for place, mode in (("one", 0o644), ("below/one", 0o755), ("two", 0o755)):
        (tmp_path / place).touch(mode)
    monkeypatch.chdir(tmp_path / "below")
    monkeypatch.setenv("PATH", path.format(tmp_path, tmp_path))
    assert toolchain.find_program(name) == shutil.which(name)


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
