"""Searches among decoys: what looks best at first is not, and whatever hints neighbours give are used.

A pair is a table and a seed. A search has to reach 1.05 of the best after 60 trials in nine of ten pairs where points say something about
the best one.
No search can where they do not: 59 points drawn of 1,176, of which one is good, hold it with a probability of 59/1176, whatever is drawn.
"""

from __future__ import annotations

import itertools
import math
import random
from functools import cache

import pytest
from decoy_tables import KINDS
from sparsetune.tuner.truth.replay import replay
from sparsetune.tuner.truth.table import TruthTable

TRIALS, CLOSE, SEEDS = 60, 1.05, 20
REACHED = {"elsewhere": 17, "narrow": 3, "together": 18, "misranked": 19, "twins": 19, "noisy": 19, "crashing": 19}
"""In how many pairs at least a search comes close to the best. Nothing leads to the best of the narrow tables but trying it."""


def chance(table: TruthTable, trials: int = TRIALS) -> float:
    """Return how likely distinct points, drawn at random beside the default schedule, hold a good one: what a search reaches that learns
    nothing, and the most that any does where points say nothing about each other."""
    count = len(table.points) - 1
    good = sum(point.seconds is not None and point.seconds <= CLOSE * (table.best.seconds or 0) for point in table.points)
    return 1 - math.prod((count - good - drawn) / (count - drawn) for drawn in range(trials - 1))


@cache
def pair(kind: str, seed: int) -> TruthTable:
    return KINDS[kind](random.Random(f"{kind} {seed}"))


@cache
def reached(kind: str, sampler: str, seeds: int = SEEDS) -> int:
    """Return in how many pairs a search comes close to the best."""
    found = [(pair(kind, seed), replay(pair(kind, seed), TRIALS, seed, sampler).best.seconds) for seed in range(seeds)]
    return sum((seconds or math.inf) <= CLOSE * (table.best.seconds or 0) for table, seconds in found)


def test_what_drawing_reaches() -> None:
    table = pair("needle", 0)
    assert len(table.points) == 1 + 1176
    assert chance(table) == pytest.approx(59 / 1176)
    assert chance(table, 1177) == 1
    two = pair("twins", 0)
    assert chance(two) == pytest.approx(1 - math.comb(1174, 59) / math.comb(1176, 59))


@pytest.mark.parametrize("kind", REACHED)
def test_decoys_do_not_keep_a_search_from_the_best(kind: str) -> None:
    assert reached(kind, "two-level") >= REACHED[kind]


@pytest.mark.parametrize(("kind", "rival"), list(itertools.product(REACHED, ("tpe", "local"))))
def test_no_rival_is_better(kind: str, rival: str) -> None:
    """By more than one pair of ten, which is luck."""
    assert reached(kind, "two-level", 10) >= reached(kind, rival, 10) - 1


@pytest.mark.parametrize("kind", REACHED)
def test_a_search_is_better_than_chance(kind: str) -> None:
    expected = sum(chance(pair(kind, seed)) for seed in range(SEEDS))
    assert reached(kind, "two-level") > expected
