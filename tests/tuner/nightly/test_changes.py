"""What two nights say: changes, what is undecided, what a second measurement and the nights before add."""

from __future__ import annotations

import random

import pytest
from sparsetune.tuner.measure.finals import Comparison
from sparsetune.tuner.nightly.baseline import Entry
from sparsetune.tuner.nightly.changes import Change, agreed, drifted, failed, raced, without_base
from sparsetune.tuner.nightly.drift import Drift
from sparsetune.tuner.nightly.race import Outcome, verdict
from sparsetune.tuner.nightly.reference import Reference

REFERENCE = Reference("memory", 2, 100)


def entry(center: float = 1.0, spread: float = 0.01, seed: int = 0, reference: Reference | None = REFERENCE) -> Entry:
    draw = random.Random(seed)
    ratios = tuple(center * draw.uniform(1 - spread, 1 + spread) for _ in range(11))
    return Entry("spmv", "uniform", "", 1e-3 * center, ratios, reference=reference)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.97, 1.04, "same"), (1.11, 1.3, "regression"), (0.7, 0.9, "improvement"), (1.05, 1.3, None), (0.8, 0.95, None), (0.5, 2.0, None),
        (1.1, 1.2, None),
    ],
)  # fmt: skip
def test_intervals(low: float, high: float, expected: str | None) -> None:
    assert verdict(Comparison(1.0, low, high), 0.1) == expected


@pytest.mark.parametrize(
    ("factor", "spread", "expected"),
    [
        (1.0, 0.01, "same"), (1.3, 0.01, "regression"), (0.7, 0.01, "improvement"),
        (1.06, 0.001, "undecided"),  # surely slower, but by less than nights can tell
        (1.0, 0.2, "undecided"), (1.2, 0.3, "undecided"),
    ],
)  # fmt: skip
def test_two_nights(factor: float, spread: float, expected: str) -> None:
    found = without_base(entry(factor, spread, seed=1), entry(1.0, spread), margin=0.05)
    assert (found.verdict, found.against) == (expected, "baseline")
    assert found.low is not None
    assert found.high is not None
    assert found.low <= (found.change or 0) <= found.high


def test_a_first_night_has_nothing_to_compare_with() -> None:
    assert without_base(entry(), None, 0.1).verdict == "new"
    assert without_base(entry(), Entry("spmv", "uniform", "", None, (), "it failed"), 0.1).verdict == "new"


def test_times_beside_other_references_are_not_compared() -> None:
    for other in (Reference("arithmetic", 2, 100), Reference("memory", 1, 100), Reference("memory", 2, 100, "numpy 1"), None):
        found = without_base(entry(2.0), entry(1.0, reference=other), 0.1)
        assert found.verdict == "new"
        assert "another reference" in found.message


def test_a_change_counts_if_a_second_measurement_finds_it_too() -> None:
    slower, same, faster = (Change("spmv", "uniform", 1.0, 1.0, 1.0, kind) for kind in ("regression", "same", "improvement"))
    assert agreed(slower, slower).verdict == "regression"
    assert agreed(slower, same).verdict == "same"
    assert agreed(slower, faster).verdict == "undecided"


def test_what_fails_is_a_regression() -> None:
    found = failed(Entry("spmv", "uniform", "", None, (), "it crashed"), entry())
    assert (found.verdict, found.message, found.baseline_time) == ("regression", "it crashed", 1e-3)


def test_a_drift_counts_where_tonight_alone_says_nothing() -> None:
    slower, faster = Drift("2026-11-03T03:00:00.000+00:00", 1.11, 0.001), Drift("2026-11-03T03:00:00.000+00:00", 0.9, 0.001)
    same = Change("spmv", "uniform", 1.0, 1.0, 1.0, "same")
    found = drifted(same, slower)
    assert (found.verdict, found.since) == ("regression", slower.since)
    assert found.message == "slower by 11% over the nights since 2026-11-03"
    assert drifted(same, faster).verdict == "improvement"
    assert drifted(Change("spmv", "uniform", 1.0, 1.0, 0.5, "improvement"), slower).verdict == "improvement"


def test_races_are_told() -> None:
    found = raced(entry(), Outcome("undecided", Comparison(1.1, 1.0, 1.2), 1.0, 1.1, 3))
    assert (found.verdict, found.against, found.message) == ("undecided", "base", "3 races did not agree or decide")
    assert (found.baseline_time, found.time, found.change) == (1.0, 1.1, 1.1)
