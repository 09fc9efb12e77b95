"""What ``doctor`` says of folders and of other libraries."""

from __future__ import annotations

from pathlib import Path

import pytest
from sparsetune.tuner import diagnosis
from sparsetune.tuner.diagnosis import run_checks
from sparsetune.tuner.peers import all_peers


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


@pytest.mark.parametrize(("asked", "ok"), [("3", True), ("", True), ("abc", False), ("0", False)])
def test_a_number_of_threads_that_kernels_refuse_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, asked: str, ok: bool) -> None:
    monkeypatch.setenv("SPARSETUNE_THREADS", asked)
    check = {check.name: check for check in run_checks(str(tmp_path / "s.sqlite"))}["threads"]
    assert (check.ok, check.required) == (ok, not ok)
    assert asked in check.found


@pytest.mark.parametrize("missing", [0, 1])
def test_peers_are_advised_only_where_one_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, missing: int) -> None:
    here = {peer.name: "1.0" for peer in all_peers()[missing:]}
    monkeypatch.setattr(diagnosis, "installed_peers", lambda: here)
    check = {check.name: check for check in run_checks(str(tmp_path / "s.sqlite"))}["peers"]
    assert check.ok
    assert bool(check.advice) == bool(missing)
