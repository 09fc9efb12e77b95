"""Change points over the nights: slow drifts are found, noise is not."""

from __future__ import annotations

import random

import pytest
from sparsetune.tuner.nightly.drift import MIN_NIGHTS, MOST_NIGHTS, change_point


def series(values: list[float]) -> list[tuple[str, float]]:
    return [(f"2026-11-{1 + number % 28:02}T03:00:00.000+00:00", value) for number, value in enumerate(values)]


def noisy(draw: random.Random, nights: int, drift: float = 0.0, noise: float = 0.03) -> list[float]:
    return [(1 + drift) ** night * draw.lognormvariate(0, noise) for night in range(nights)]


@pytest.mark.parametrize("noise", [0.0, 0.01, 0.03])
def test_one_percent_a_night_for_20_nights_is_found(noise: float) -> None:
    found = [change_point(series(noisy(random.Random(seed), 20, 0.01, noise))) for seed in range(100)]
    assert sum(drift is not None and drift.shift > 1.05 for drift in found) >= 95


def test_what_becomes_faster_is_found_too() -> None:
    drift = change_point(series(noisy(random.Random(0), 20, -0.01)))
    assert drift is not None
    assert drift.shift < 0.95


def test_a_step_is_dated() -> None:
    drift = change_point(series([1.0, 1.01, 0.99] * 5 + [1.2, 1.19, 1.21] * 5))
    assert drift is not None
    assert drift.since == series([0.0] * 16)[15][0]
    assert drift.shift == pytest.approx(1.2)


@pytest.mark.parametrize("nights", [10, 20, 40, 90])
def test_noise_is_no_drift(nights: int) -> None:
    found = [change_point(series(noisy(random.Random(seed), nights))) for seed in range(400)]
    assert sum(drift is not None for drift in found) <= 4


def test_what_is_small_is_no_drift_however_sure() -> None:
    assert change_point(series([1.0] * 20 + [1.03] * 20)) is None


def test_few_nights_say_nothing() -> None:
    assert change_point(series([1.0] * 4 + [2.0] * (MIN_NIGHTS - 5))) is None
    assert change_point([]) is None


def test_only_the_last_nights_count() -> None:
    assert change_point(series([2.0] * 50 + [1.0] * MOST_NIGHTS)) is None
