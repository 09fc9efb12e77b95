"""Timing several functions in turn, so that other work of the machine disturbs all of them alike."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeVar

from ...compiler.frozen import frozen
from ..measure.finals import Comparison, compare
from ..measure.order_statistics import median
from ..measure.rotation import rest, turns
from ..measure.sampling import least_of

Name = TypeVar("Name", bound=Hashable)

SHORTEST = 2e-3
"""Least seconds of a sample: shorter functions run several times in one."""

_SAMPLES = 2
"""Samples in each turn, of which the fastest counts, as in the finals of a search: before the first, caches hold the data of others."""


@frozen
class Pace:
    """How long a race takes: rounds go on until the seconds are over, within bounds on their number."""

    seconds: float = 8.0
    fewest: int = 7
    most: int = 101


@frozen
class Series:
    """Seconds a run, one for each round."""

    times: tuple[float, ...]

    @property
    def median(self) -> float:
        """Median seconds a run."""
        return median(self.times)

    @property
    def least(self) -> float:
        """Least seconds a run."""
        return min(self.times)

    @property
    def spread(self) -> float:
        """Half the distance between the quartiles, as a part of the median."""
        ordered = sorted(self.times)
        quarter = len(ordered) // 4
        return (ordered[-1 - quarter] - ordered[quarter]) / 2 / self.median

    def over(self, other: Series) -> Comparison:
        """Return the time of this function over that of another in the same race: the median of paired ratios with its interval."""
        return compare(self.times, other.times)


def race(runs: Mapping[Name, Callable[[], Any]], pace: Pace) -> dict[Name, Series]:
    """Call functions in turn and return their times. The data of each are in the caches when it is timed, as in a loop of calls. A function
    with two names runs once a round."""
    firsts = {id(run): name for name, run in reversed(list(runs.items()))}
    contestants = [name for name, run in runs.items() if firsts[id(run)] == name]
    batches = {name: max(1, math.ceil(SHORTEST / max(least_of(runs[name], 1, 3), 1e-9))) for name in contestants}
    times: dict[Name, list[float]] = {name: [] for name in contestants}
    started, orders, rounds = time.perf_counter(), turns(contestants), 0
    while rounds < pace.fewest or (rounds < pace.most and time.perf_counter() - started < pace.seconds):
        for name in next(orders):
            rest()
            times[name].append(least_of(runs[name], batches[name], _SAMPLES))
        rounds += 1
    return {name: Series(tuple(times[firsts[id(run)]])) for name, run in runs.items()}
