"""What ``doctor`` says of folders."""

from __future__ import annotations

from pathlib import Path

import pytest
from sparsetune.tuner.diagnosis import run_checks


@pytest.mark.cc
@pytest.mark.filterwarnings("ignore:the cache of compiled kernels")
def test_a_cache_that_others_can_write_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "cache"
    monkeypatch.setenv("SPARSETUNE_CACHE", str(place))
    database = str(tmp_path / "s.sqlite")
    assert {check.name: check for check in run_checks(database)}["kernel cache"].ok
    place.chmod(0o777)
    check = {check.name: check for check in run_checks(database)}["kernel cache"]
    assert not check.ok
    assert f"others can write {place}" in check.found
    assert "SPARSETUNE_CACHE" in check.advice
