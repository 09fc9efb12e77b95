"""Killed at any moment: no record is lost, nothing lives on, nothing is left that the next run does not remove."""

from __future__ import annotations

from pathlib import Path

import pytest
from kills import SHARED_MEMORY, Victims, rehearse

pytestmark = [
    pytest.mark.cc,
    pytest.mark.skipif(not Path("/proc/self/environ").exists() or not SHARED_MEMORY.is_dir(), reason="Linux only"),
]


@pytest.mark.parametrize("count", [8, pytest.param(200, marks=pytest.mark.nightly)])
def test_kills(tmp_path: Path, count: int) -> None:
    rehearse(tmp_path, count, seed=7)


def test_a_cache_is_what_it_would_be_without_kills(tmp_path: Path) -> None:
    never = Victims(tmp_path / "never", 0)
    never.finish("run")
    killed = rehearse(tmp_path / "killed", 6, 3, ("run",))
    found, expected = ({path.relative_to(each.cache) for path in each.cache.rglob("*")} for each in (killed, never))
    assert found == expected
