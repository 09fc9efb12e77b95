"""The package list names every folder with modules, and the public names resolve."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
import sparsetune

ROOT = Path(__file__).resolve().parents[1]


def settings() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]


@pytest.mark.tree
def test_every_package_is_listed() -> None:
    found = {"sparsetune"}
    for folder in ("compiler", "tuner", "datasets"):
        found |= {".".join(("sparsetune", *path.parent.relative_to(ROOT).parts)) for path in (ROOT / folder).rglob("*.py")}
    assert sorted(settings()["packages"]) == sorted(found)


@pytest.mark.tree
def test_every_data_file_is_packaged() -> None:
    packaged = set()
    for package, patterns in settings()["package-data"].items():
        folder = ROOT.joinpath(*package.split(".")[1:])
        packaged |= {path for pattern in patterns for path in folder.glob(pattern)}
    wanted = {path for folder in ("csrc", "configs", "datasets/tables") for path in (ROOT / folder).rglob("*") if path.is_file()}
    wanted |= set((ROOT / "tuner").rglob("*.j2"))
    assert wanted <= packaged


def test_public_names_resolve() -> None:
    assert sparsetune.__all__ == sorted(set(sparsetune.__all__))
    for name in sparsetune.__all__:
        assert getattr(sparsetune, name) is not None
