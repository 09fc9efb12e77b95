"""Races of schedules in one new process after the other.

The interval of one race says how well that race knows its ratios. The next one, a moment later and with its data elsewhere in memory, finds
others, up to some percent away, and one that something disturbs finds anything: only several races tell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from ...compiler.frozen import frozen
from ...compiler.schedule.schedule import Schedule
from ..measure.finals import Comparison
from ..measure.order_statistics import median
from ..problem import Problem
from .one_memory import OneMemory
from .race import Pace, Series, race


@frozen
class RacesApart:
    """The times of schedules, a race for each process."""

    races: tuple[Mapping[str, Series], ...]

    def median(self, schedule: str) -> float:
        """Return the seconds of a schedule, the median of those of all processes."""
        return median([times[schedule].median for times in self.races])

    def over(self, slower: str, faster: str) -> Comparison:
        """Return how many times longer a schedule took than another: the median of processes, each of which counts once."""
        return Comparison.of(times[slower].over(times[faster]).ratio for times in self.races)


def raced_apart(make: Callable[[], Problem], schedules: Sequence[str], pace: Pace, processes: int) -> RacesApart:
    """Race schedules in so many new processes, one after the other; those that convert operands do so in every call.

    Args:
        make: gives the problem in each of them; a function of a module, or ``partial`` of one.
        schedules: their texts.
        pace: of each race.
        processes: how many.
    """
    return RacesApart(tuple(_in_new_process(make, schedules, pace) for _ in range(processes)))


def _in_new_process(make: Callable[[], Problem], schedules: Sequence[str], pace: Pace) -> dict[str, Series]:
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(_raced, make, schedules, pace).result()


def _raced(make: Callable[[], Problem], schedules: Sequence[str], pace: Pace) -> dict[str, Series]:
    memory = OneMemory(make())
    return race({text: memory.call(Schedule(text)) for text in schedules}, pace)
