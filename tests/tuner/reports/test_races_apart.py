"""Races of schedules in several processes: each has one of its own, and what is told is their median."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest
from sparsetune.compiler.native.toolchain import available_compilers
from sparsetune.tuner.reports.race import Pace, Series
from sparsetune.tuner.reports.races_apart import RacesApart, raced_apart
from tuner_campaigns import noted


@pytest.mark.skipif(not available_compilers(), reason="needs a C compiler")
def test_each_race_has_a_process_of_its_own(tmp_path: Path) -> None:
    found = raced_apart(partial(noted, tmp_path), ["", "unroll(j, 2)"], Pace(seconds=0.01, fewest=3), 3)
    processes = {file.name for file in tmp_path.iterdir()}
    assert len(found.races) == len(processes) == 3
    assert str(os.getpid()) not in processes
    assert all(len(series.times) >= 3 for times in found.races for series in times.values())


def test_a_process_counts_once_whatever_its_rounds() -> None:
    """In one process, which has the most rounds, the second schedule takes half the time, in others about as long as the first."""
    times = ((50, 2.0), (3, 1.01), (3, 1.0), (3, 1.02), (3, 0.99))
    found = RacesApart(tuple({"a": Series((1.0,) * rounds), "b": Series((1 / ratio,) * rounds)} for rounds, ratio in times))
    over = found.over("a", "b")
    assert (over.ratio, over.low, over.high) == pytest.approx((1.01, 0.99, 2.0))
    assert (found.median("a"), found.median("b")) == pytest.approx((1.0, 1 / 1.01))
