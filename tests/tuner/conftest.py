"""The command line as tests call it, on a database of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sparsetune.tuner import shipped
from sparsetune.tuner.cli import run


@pytest.fixture(autouse=True)
def nothing_ships(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let no published schedule decide; ``shipped.FILE`` may be written."""
    monkeypatch.setattr(shipped, "FILE", tmp_path / "shipped" / "schedules.jsonl")
    shipped.shipped_decisions.cache_clear()
    yield
    shipped.shipped_decisions.cache_clear()


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
