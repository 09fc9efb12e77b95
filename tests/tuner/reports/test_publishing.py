"""Every report has its folder before it measures, or says that it cannot; pages are there whole or not at all."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import click
import pytest
from sparsetune.tuner import reports
from sparsetune.tuner.reports.publishing import publish

FOLDER = Path(reports.__file__).parent
WORDS = {"gpu": ["page"], "lowering": ["--base", "."]}  # what a command wants besides
OPTIONS = {"asymptotic": "--output", "distributed": "--output", "gpu": "--output"}  # of those that write one page; else --results
MAKES_OTHER_FILES = {  # which are no results: control groups, copies of code, scripts and sources
    "disturbances", "nights", "gpu_bundle", "gpu_rows", "sparsifier",
}  # fmt: skip


def commands() -> list[str]:
    """Return the reports that are run by their names, but for those that others run to measure in processes of their own."""
    trees = {path.stem: ast.parse(path.read_text()) for path in FOLDER.glob("*.py")}
    return sorted(name for name, tree in trees.items() if any(isinstance(one, ast.FunctionDef) and one.name == "main" for one in tree.body))


def context(name: str, place: Path) -> click.Context:
    """Read the words of a command that writes into a folder: all that happens before it measures."""
    main = importlib.import_module(f"sparsetune.tuner.reports.{name}").main
    option = OPTIONS.get(name, "--results")
    rest = ["--folder", str(place / "rows")] if name == "gpu" else []
    return main.make_context(name, [*WORDS.get(name, []), option, str(place / "page.md" if option == "--output" else place), *rest])


def test_there_are_reports() -> None:
    assert len(commands()) >= 20


@pytest.mark.parametrize("name", commands())
def test_folders_are_made_before_anything_is_measured(name: str, tmp_path: Path) -> None:
    context(name, tmp_path / "new" / "results")
    assert (tmp_path / "new" / "results").is_dir()
    assert not any(one.is_file() for one in tmp_path.rglob("*"))


@pytest.mark.parametrize("name", commands())
def test_a_folder_that_cannot_be_is_refused_before_anything_is_measured(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(click.BadParameter, match="nothing can be written into"):
        context(name, tmp_path / "file" / "results")


def test_results_are_written_in_one_way() -> None:
    for path in FOLDER.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and path.stem not in MAKES_OTHER_FILES:
                writes = node.func.attr == "open" and any(isinstance(one, ast.Constant) and one.value in ("w", "a") for one in node.args)
                assert not writes, f"{path.name}:{node.lineno} opens a file for writing"
                assert node.func.attr not in ("write_text", "write_bytes"), f"{path.name}:{node.lineno} writes a file; publish does"


def test_a_page_is_the_old_one_or_the_new_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(tmp_path / "page.md", "old\r\nπ")
    assert (tmp_path / "page.md").read_bytes() == "old\r\nπ".encode()
    assert (tmp_path / "page.md").stat().st_mode & 0o777 == 0o644

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(click.ClickException, match=r"page\.md cannot be written: No space left"):
        publish(tmp_path / "page.md", "new")
    assert [one.name for one in tmp_path.iterdir()] == ["page.md"]
    assert (tmp_path / "page.md").read_bytes() == "old\r\nπ".encode()
