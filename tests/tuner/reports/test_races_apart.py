"""Races of schedules in several processes: each has one of its own, they take turns, and what is told is their median."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
from sparsetune.compiler.native.toolchain import available_compilers
from sparsetune.tuner.measure.finals import Burst
from sparsetune.tuner.reports.race import Pace, Series
from sparsetune.tuner.reports.races_apart import RacesApart, Round, in_turn, raced_apart
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


class Machine:
    """Processes on a simulated machine: each makes schedules faster or slower by a percent, and everything takes longer in phases."""

    def __init__(self, seconds: Mapping[str, float], noise: float = 0.0, disturbed: Callable[[float], bool] = lambda now: False) -> None:
        self.seconds, self.noise, self.disturbed = seconds, noise, disturbed
        self.now, self.draw, self.asked = 0.0, random.Random(3), list[int]()

    def process(self, number: int) -> Round:
        places = {name: self.draw.uniform(0.99, 1.01) for name in self.seconds}

        def run(order: Sequence[str]) -> dict[str, Burst]:
            self.asked.append(number)
            found: dict[str, Burst] = {}
            for name in order:
                self.now += 0.02
                is_slow, is_disturbed = int(self.now / 3.0) % 2, self.disturbed(self.now)
                factor = places[name] * (1 + 0.3 * is_slow + self.draw.gauss(0, self.noise))
                found[name] = Burst(self.seconds[name] * factor * (3.0 if is_disturbed and name == "b" else 1.0), is_disturbed)
            return found

        return run

    def race(self, pace: Pace, processes: int = 5) -> RacesApart:
        return in_turn([self.process(number) for number in range(processes)], list(self.seconds), pace, lambda: self.now)


def test_processes_take_turns_round_by_round() -> None:
    machine = Machine({"a": 1.0, "b": 1.0})
    machine.race(Pace(seconds=1.0, fewest=4))
    groups = [machine.asked[start : start + 5] for start in range(0, len(machine.asked), 5)]
    assert len(groups) >= 25
    assert all(sorted(group) == list(range(5)) for group in groups)
    assert len({tuple(group) for group in groups}) > 5
    assert all(one != other for one, other in pairwise(machine.asked))


def test_equal_schedules_are_told_equal_on_a_machine_that_is_slow_for_seconds_at_a_time() -> None:
    """The noise of one sample is 6%, as was found on a machine that shares its memory with others; places make a difference of up to 2%."""
    for seed in range(20):
        machine = Machine(dict.fromkeys("abcdefgh", 1.0), noise=0.06)
        machine.draw.seed(seed)
        found = machine.race(Pace(seconds=12.0, fewest=15))
        assert all(abs(math.log(found.over("a", other).ratio)) < 0.03 for other in "bcdefgh")


def test_disturbed_rounds_are_repeated_and_do_not_count() -> None:
    """In most of the time that the race was to take something has the cores, and one schedule suffers from it more than the other."""
    machine = Machine({"a": 1.0, "b": 1.0}, disturbed=lambda now: now < 9.0)
    found = machine.race(Pace(seconds=2.0, fewest=10))
    assert machine.now > 10.0
    assert all(len(series.times) >= 10 for times in found.races for series in times.values())
    assert found.over("a", "b").ratio == pytest.approx(1.0, abs=0.02)


def test_a_race_that_is_always_disturbed_ends() -> None:
    machine = Machine({"a": 1.0, "b": 1.0}, disturbed=lambda now: True)
    found = machine.race(Pace(seconds=2.0, fewest=10, most=1000))
    assert 40.0 <= machine.now < 41.0
    assert found.over("b", "a").ratio == pytest.approx(3.0, abs=0.1), "there is nothing else to tell by"


def test_a_race_has_no_more_rounds_than_it_may() -> None:
    machine = Machine({"a": 1.0, "b": 1.0})
    found = machine.race(Pace(seconds=1e9, fewest=4, most=9))
    assert [len(times["a"].times) for times in found.races] == [9] * 5
