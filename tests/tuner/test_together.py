"""Modules are imported from one file as Python imports them from many, and never as their sources no longer are."""

from __future__ import annotations

import importlib
import inspect
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from sparsetune.tuner import together as tested
from sparsetune.tuner.together import together

SOURCES = {
    "__init__.py": "", "one.py": "from .inner import two\nVALUE = two.VALUE + 1\n", "inner/__init__.py": "", "inner/two.py": "VALUE = 10\n",
}  # fmt: skip


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package that stands for this one, and a cache of its own."""
    folder = tmp_path / "togethers"
    for name, text in SOURCES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("SPARSETUNE_CACHE", str(tmp_path / "cache" / "kernels"))
    monkeypatch.setattr(tested, "_INSIDE", "togethers.")
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    return folder


def imported() -> ModuleType:
    """Import anew, as a process does that has imported nothing."""
    for name in [name for name in sys.modules if name.startswith("togethers")]:
        del sys.modules[name]
    importlib.invalidate_caches()
    with together("x"):
        return importlib.import_module("togethers.one")


def kept(package: Path) -> Path:
    (file,) = (package.parent / "cache" / "code").iterdir()
    return file


def is_served(module: ModuleType) -> bool:
    return module.__spec__ is not None and isinstance(module.__spec__.loader, tested._Loader)


def test_the_second_process_takes_code_from_one_file(package: Path) -> None:
    first, second = imported(), imported()
    assert (first.VALUE, second.VALUE) == (11, 11)
    assert [is_served(one) for one in (first, second, sys.modules["togethers.inner.two"])] == [False, True, True]
    assert (first.__file__, first.__cached__, first.__package__) == (second.__file__, second.__cached__, second.__package__)
    assert inspect.getsource(second) == SOURCES["one.py"]
    assert list(sys.modules["togethers.inner"].__path__) == [str(package / "inner")]
    before = kept(package).stat().st_mtime_ns
    imported()
    assert kept(package).stat().st_mtime_ns == before
    assert not [finder for finder in sys.meta_path if isinstance(finder, tested._Finder)]


def test_sources_that_change_are_read_again(package: Path) -> None:
    imported()
    (package / "inner" / "two.py").write_text("VALUE = 20\n")  # of the same size
    os.utime(package / "inner" / "two.py", (1, 1))  # Python's own files of code tell times apart by seconds
    assert [imported().VALUE for _ in range(2)] == [21, 21]
    assert is_served(sys.modules["togethers.inner.two"])
    (package / "inner" / "two.py").write_text("VALUE = 'a longer one'\n")
    with pytest.raises(TypeError):
        imported()
    (package / "inner" / "two.py").unlink()
    with pytest.raises(ImportError):
        imported()
    assert not [finder for finder in sys.meta_path if isinstance(finder, tested._Finder)]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "cut": lambda content: content[:-40],
    "another byte": lambda content: content[:50] + bytes([content[50] ^ 1]) + content[51:],
    "a byte of code": lambda content: content[:-9] + bytes([content[-9] ^ 1]) + content[-8:],
    "no code": lambda content: b"no code at all",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_files_are_made_anew(package: Path, damage: str) -> None:
    imported()
    good = kept(package).read_bytes()
    kept(package).write_bytes(DAMAGES[damage](good))
    assert imported().VALUE == 11
    assert not is_served(sys.modules["togethers.one"])
    assert imported().VALUE == 11
    assert is_served(sys.modules["togethers.one"])


def test_a_folder_that_others_can_write_is_not_believed(package: Path) -> None:
    imported()
    kept(package).parent.chmod(0o777)
    assert not is_served(imported())


def test_nothing_is_written_where_python_writes_no_code(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert imported().VALUE == 11
    assert not (package.parent / "cache").exists()
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    (package.parent / "file").write_text("")
    monkeypatch.setenv("SPARSETUNE_CACHE", str(package.parent / "file" / "kernels"))  # root may write folders without permission
    assert [imported().VALUE for _ in range(2)] == [11, 11]


PROGRAM = """
import numpy as np
import sparsetune as st
print(st.lookup("y(i) = A(i,j) * x(j)", dict(A=np.eye(9), x=np.ones(9)), threads=2, database="/nowhere/s.sqlite"))
import sparsetune.tuner.model as model
print(type(model.__loader__).__name__)
"""


def test_processes_write_at_once(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"SPARSETUNE_CACHE": str(tmp_path / "kernels"), "SPARSETUNE_ANSWERS": ""}

    def begun() -> subprocess.Popen[str]:
        return subprocess.Popen([sys.executable, "-c", PROGRAM], env=environment, stdout=subprocess.PIPE, text=True)

    first = [run.communicate()[0].splitlines() for run in [begun() for _ in range(3)]]
    assert len({match for match, _ in first}) == 1
    assert begun().communicate()[0].splitlines() == [first[0][0], "_Loader"]
    assert {file.name.partition("-")[0] for file in (tmp_path / "code").iterdir()} == {"known", "lookup"}


ALIKE = """
import sys
import numpy as np, scipy.sparse
import sparsetune as st
matrix = scipy.sparse.random_array((300, 200), density=0.05, rng=np.random.default_rng(int(sys.argv[1])), format="csr")
st.lookup("y(i) = A(i,j) * x(j)", dict(A=matrix, x=np.ones(200)), threads=2, database="/nowhere/s.sqlite")
modules = [sys.modules.get(f"sparsetune.tuner.{name}") for name in ("asking", "sketches", "model")]
print(*(type(getattr(module, "__loader__", None)).__name__ for module in modules))
"""


def test_lookups_of_what_is_like_something_known_import_from_one_file_too(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"SPARSETUNE_CACHE": str(tmp_path / "kernels"), "SPARSETUNE_ANSWERS": str(tmp_path / "answers")}

    def begun(seed: int) -> list[str]:
        command = [sys.executable, "-c", ALIKE, str(seed)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()

    begun(0)  # finds a choice, and records how
    begun(1)
    assert begun(2) == ["_Loader", "_Loader", "NoneType"]
