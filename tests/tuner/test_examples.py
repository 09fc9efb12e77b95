"""Every example that users are shown runs, on generated inputs: a new one is tested as soon as it is written."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import pytest
from sparsetune.compiler.native.toolchain import available_compilers
from sparsetune.datasets import write
from sparsetune.datasets.catalogue import find_item
from sparsetune.datasets.files import has_known_ending
from sparsetune.tuner import config
from sparsetune.tuner.cli import run
from sparsetune.tuner.nightly.race import ROOT
from sparsetune.tuner.truth.table import TablePoint, TruthTable, write_table

from examples import Names, command_lines, operands_of, programs, random_tensor

pytestmark = pytest.mark.skipif(not available_compilers(), reason="needs a C compiler")
SUITES = ("suite", "bench", "nightly")  # their commands take minutes, on small inputs too
SMALL = {2: "random:uniform:60x50:nnz=300", 3: "random:uniform:12x11x10:nnz=200", 4: "random:uniform:8x7x6x5:nnz=100"}
TRIALS = "2"
_THOUSANDS = re.compile(r"\b\d{2,}_000\b")
_TRIALS = re.compile(r"\btrials=\d+")


def lines(*, long: bool) -> list[Any]:
    """Return the command lines, each with its words."""
    return [pytest.param(line, id=line) for line in command_lines() if (_words(line)[0] in SUITES) == long]


def _words(line: str) -> list[str]:
    words = shlex.split(line, comments=True)[1:]
    return words[: words.index(">")] if ">" in words else words


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database that holds a campaign."""
    path = tmp_path_factory.mktemp("records") / "s.sqlite"
    assert run(["tune", "y(i) = A(i,j) * x(j)", "-i", "A=random:uniform:30x20:nnz=60", "--trials", "2", "--db", str(path)]) == 0
    return path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, records: Path) -> Path:
    """An empty folder to work in, with a data folder and a database that the environment names."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(records, tmp_path / "s.sqlite")
    monkeypatch.setenv("SPARSETUNE_DATABASE", str(tmp_path / "s.sqlite"))
    monkeypatch.setenv("SPARSETUNE_DATA", str(tmp_path / "data"))
    return tmp_path


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    """Lines about the cache, which may clear it, have one of their own; others share that of the user."""
    if _words(line)[0] == "cache":
        monkeypatch.setenv("SPARSETUNE_CACHE", str(tmp_path / "cache"))


@pytest.mark.cc
@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize("line", lines(long=False))
def test_command_lines_of_examples_run(line: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _check(line, folder, capsys)


@pytest.mark.nightly
@pytest.mark.cc
@pytest.mark.parametrize("line", lines(long=True))
def test_command_lines_of_examples_run_on_suites(
    line: str, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed = config._parse

    def small(path: Path) -> dict[str, Any]:
        found = parsed(path)
        inputs = [{**given, "source": SMALL[given["order"]]} for given in found.get("input", ())]
        return {**found, "input": inputs} if inputs else found

    monkeypatch.setattr(config, "_parse", small)
    _check(line, folder, capsys)


def _check(line: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name, *words = _words(line)
    command: click.Command = import_module(f"sparsetune.tuner.commands.{name}").command
    arguments = [name]
    if isinstance(command, click.Group):
        command, arguments = command.commands[words[0]], [name, words.pop(0)]
    parsed = command.make_parser(click.Context(command)).parse_args(list(words))[0]
    if parsed.get("database"):
        shutil.copy(folder / "s.sqlite", parsed["database"])
    if name in SUITES and parsed["name"].endswith(".toml"):
        shutil.copy(config.FOLDER / "quick.toml", parsed["name"])
    for source, order in _inputs(name, command, parsed):
        _provide(source, order, folder)
    for parameter in command.params:
        if isinstance(parameter.type, click.Path) and parameter.type.exists:
            for path in parsed[parameter.name]:
                assert run(["db", "export", path]) == 0
        if parameter.name in ("trials", "points"):
            words += [parameter.opts[0], TRIALS]
    if parsed.get("replay"):
        write_table(Path(parsed["replay"]), TruthTable(expression="y(i) = A(i,j) * x(j)", points=(TablePoint(schedule="", seconds=1.0),)))
    if parsed.get("bench"):
        Path(parsed["bench"]).write_text('{"items": []}')
    if parsed.get("base"):
        words[words.index(parsed["base"])] = str(ROOT)
    capsys.readouterr()
    status = run([*arguments, *words])
    assert (status, "error" in capsys.readouterr().err) == (0, False)


def _inputs(name: str, command: click.Command, parsed: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield the inputs that a command reads, and their orders."""
    orders = {access.tensor: len(access.subscripts) for access in operands_of(str(parsed.get("expression", "")))}
    for given in parsed.get("inputs") or ():
        operand, source = given.split("=", 1)
        yield source, orders[operand]
    if name == "data" and "names" in parsed:
        yield from ((source, 3 if source.startswith("frostt:") else 2) for source in parsed["names"])
    if name in SUITES:
        yield from ((given.source, given.order) for given in config.load_suite(parsed["name"]).inputs)


def _provide(source: str, order: int, folder: Path) -> None:
    """Write an input that is no generated one to where it is looked for, in place of the real one."""
    if source.startswith("random:"):
        return
    path = folder / (source if has_known_ending(source) else Path("data") / find_item(source).relative_path)
    path.parent.mkdir(parents=True, exist_ok=True)
    found = random_tensor(order)
    write(found, path)


@pytest.mark.cc
@pytest.mark.parametrize("place", programs())
@pytest.mark.usefixtures("folder")
def test_python_examples_run(place: str) -> None:
    program = _TRIALS.sub("trials=2", _THOUSANDS.sub("1_000", programs()[place]))
    exec(compile(program, place, "exec"), {}, Names(program))


def test_every_kind_of_example_is_found() -> None:
    found = command_lines()
    assert len(found) > 40
    assert any(line.startswith("tune-kernel tune") and "--time-budget 60" in line for line in found)
    assert {place.split(",")[0] for place in programs()} >= {"__init__.py", "tuner/explore.py"}


@pytest.mark.tree
def test_examples_of_the_readme_are_found() -> None:
    assert any(place.startswith("README.md") for place in programs())
