"""A cache folder of a test's own, of which nothing is known yet."""

from __future__ import annotations

from pathlib import Path

import pytest
from sparsetune.compiler.native import places


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPARSETUNE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(autouse=True)
def anew() -> None:
    """Nothing has been warned of, no folder was given up."""
    for known in (places._warn_unwritable, places._warn_untrusted, places._sweep):
        known.cache_clear()
