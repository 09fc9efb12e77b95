"""Kept code is what Python would import, as long as sources are what they were and the file is whole and this user's own."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from sparsetune.tuner import kept_code
from sparsetune.tuner.kept_code import KeptCode, add, read

PROGRAM = """
import sys
import numpy as np
import sparsetune as st
found = st.lookup("y(i) = a * x(i)", dict(a=2.0, x=np.ones(30)), database="/nowhere/s.sqlite")
ours = [module for name, module in sys.modules.items() if name.startswith("sparsetune.")]
kept = [module for module in ours if type(module.__spec__.loader).__module__.endswith("kept_code")]
print(found, len(kept))
"""


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[ModuleType]]:
    """Modules of a package, one in a package inside of it."""
    monkeypatch.setattr(kept_code, "MANY", 1)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.syspath_prepend(str(tmp_path))
    sources = {"made_once/__init__.py": "", "made_once/one.py": "number = 1", "made_once/inner/__init__.py": "number = 2"}
    for name, text in sources.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    names = ["made_once", "made_once.one", "made_once.inner"]
    yield [importlib.import_module(name) for name in names]
    for name in names:
        sys.modules.pop(name, None)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "code" / "kept.bin"


def again(module: ModuleType, kept: KeptCode) -> ModuleType:
    """Import a module anew, from kept code where that is possible."""
    sys.meta_path.insert(0, kept)
    del sys.modules[module.__name__]
    return importlib.import_module(module.__name__)


def is_from(module: ModuleType, kept: KeptCode) -> bool:
    return module.__spec__ is not None and getattr(module.__spec__.loader, "_kept", None) is kept


def test_modules_from_kept_code_are_those_that_python_finds(modules: list[ModuleType], place: Path) -> None:
    add(place, read(place), modules)
    kept = read(place)
    for module in modules:
        found = again(module, kept)
        assert is_from(found, kept)
        assert found is not module
        assert getattr(found, "number", None) == getattr(module, "number", None)
        for name in ("__file__", "__cached__", "__package__", "__path__"):
            assert getattr(found, name, None) == getattr(module, name, None)


def test_a_source_that_has_changed_is_read_again(modules: list[ModuleType], place: Path) -> None:
    add(place, read(place), modules)
    kept = read(place)
    source = Path(str(modules[1].__file__))
    source.write_text("number = 3")  # of the same size
    os.utime(source, (1, 1))
    found = again(modules[1], kept)
    assert found.number == 3
    assert not is_from(found, kept)
    add(place, kept, [found])
    assert is_from(again(found, renewed := read(place)), renewed)
    assert set(renewed.names) == {module.__name__ for module in modules}


def test_a_source_that_is_gone_is_not_imported(modules: list[ModuleType], place: Path) -> None:
    add(place, read(place), modules)
    Path(str(modules[1].__file__)).unlink()
    with pytest.raises(ModuleNotFoundError):
        again(modules[1], read(place))


@pytest.mark.parametrize("left", [0, 4, 8, 20, -5])
def test_of_a_damaged_file_nothing_wrong_is_imported(modules: list[ModuleType], place: Path, left: int) -> None:
    add(place, read(place), modules)
    place.write_bytes(place.read_bytes()[:left])
    assert again(modules[2], read(place)).number == 2


def test_a_file_of_something_else_is_not_believed(place: Path) -> None:
    place.parent.mkdir()
    place.write_bytes((1).to_bytes(8, "little") + b"N")
    assert read(place).find_spec("made_once") is None


def test_a_folder_that_others_can_write_is_not_believed(modules: list[ModuleType], place: Path) -> None:
    add(place, read(place), modules)
    assert read(place).has("made_once")
    place.parent.chmod(0o777)
    assert not read(place).has("made_once")


def test_few_new_modules_are_not_worth_a_file(modules: list[ModuleType], place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_code, "MANY", 4)
    add(place, read(place), modules)
    assert not place.exists()


@pytest.mark.parametrize("writes", [True, False])
def test_what_a_process_imports_is_kept_for_others(tmp_path: Path, writes: bool) -> None:
    environment = os.environ | {"SPARSETUNE_CACHE": str(tmp_path / "kernels"), "PYTHONDONTWRITEBYTECODE": "" if writes else "1"}

    def asked() -> tuple[str, int]:
        run = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True)
        found, _, count = run.stdout.rstrip().rpartition(" ")
        return found, int(count)

    (first, none), (second, kept) = asked(), asked()
    assert first == second
    assert none == 0
    assert (kept > 150) == writes
    assert (tmp_path / "code").exists() == writes
