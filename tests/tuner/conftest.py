"""The command line as tests call it, on a database of their own; lookups without what ships or the static model."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sparsetune.compiler.targets import registry
from sparsetune.compiler.targets.cuda_launch import CudaLaunch
from sparsetune.compiler.targets.executor import EXECUTOR
from sparsetune.tuner import lookup
from sparsetune.tuner.cli import run
from sparsetune.tuner.constants import Constants
from sparsetune.tuner.urls import SHIPPED


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty file that may be written, in place of what ships with the package."""
    file = tmp_path / "shipped.jsonl"
    file.touch()
    monkeypatch.setenv(SHIPPED, str(file))
    return file


@pytest.fixture
def usual_constants(monkeypatch: pytest.MonkeyPatch) -> None:
    """The static model knows nothing of this machine but its caches."""
    monkeypatch.setattr("sparsetune.tuner.parameters.machine_constants", Constants)
    monkeypatch.setattr("sparsetune.tuner.costs.machine_constants", Constants)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A file for a database, which is not there yet."""
    return tmp_path / "schedules.sqlite"


@pytest.fixture
def no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """The static model chooses nothing, and has chosen nothing before."""
    monkeypatch.setattr(lookup, "static_choice", lambda problem, deadline: None)
    monkeypatch.setattr(lookup, "_modelled", OrderedDict())


@pytest.fixture
def own_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPARSETUNE_DATABASE", str(tmp_path / "s.sqlite"))
    return tmp_path / "s.sqlite"


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]):
    """Run a command line; return status, standard output and standard error."""

    def run_it(*arguments: str) -> tuple[int, str, str]:
        status = run(arguments)
        shown = capsys.readouterr()
        return status, shown.out, shown.err

    return run_it


STATE = "NVIDIA H200, 570.1, 1980 MHz, 3201 MHz, 0x0000000000000004, 41, 120.50 W"
"""What the driver of a GPU says of it."""


@pytest.fixture
def device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[int, int]]]:
    """The executor in the place of a GPU; gives the runs that are timed, and how much is written before each."""
    program = tmp_path / "nvidia-smi"
    program.write_text(f'#!/bin/sh\ncase "$1" in *compute_cap*) echo 9.0;; *) echo "{STATE}";; esac\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    timed: list[tuple[int, int]] = []
    known = CudaLaunch.seconds

    def seconds(self: CudaLaunch, runs: int, flushed: int = 0) -> list[float]:
        timed.append((runs, flushed))
        return [0.25 for _ in known(self, runs, min(flushed, 1 << 10))]

    monkeypatch.setattr(CudaLaunch, "seconds", seconds)
    before = registry.find_target("cuda")
    registry.register(replace(EXECUTOR, name="cuda"))
    yield timed
    registry.register(before)
