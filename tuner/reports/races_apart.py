"""Races of schedules in several new processes that take turns, round by round.

What one process finds is right for its own memory only: in which pages data lie makes a schedule a little faster or slower than another.
And a machine that shares its memory with others is slower for seconds at a time. So each process runs all schedules once, in a new order,
then the next one does, until each has had many rounds all over the time of the race. Rounds in which
something had the cores do not count where there are enough others, and a process counts by the median of its paired ratios.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from functools import partial
from multiprocessing import get_context

from ...compiler.frozen import frozen
from ...compiler.native import team
from ...compiler.schedule.schedule import Schedule
from ..measure.company import Witness
from ..measure.finals import Burst, Comparison
from ..measure.order_statistics import median
from ..measure.rotation import rest, turns
from ..measure.sampling import PATIENCE, Contestant, burst, fastest, least_of
from ..problem import Problem
from .one_memory import OneMemory
from .race import SHORTEST, Pace, Series

_SAMPLES = 3
"""Samples in each turn, of which the fastest undisturbed one counts: before the first, caches hold the data of others."""

Round = Callable[[Sequence[str]], Mapping[str, Burst]]
"""Runs schedules in the given order, once each, in one process."""


@frozen
class RacesApart:
    """The times of schedules in the rounds that count, by process."""

    races: tuple[Mapping[str, Series], ...]

    def median(self, schedule: str) -> float:
        """Return the seconds of a schedule, the median of those of all processes."""
        return median([times[schedule].median for times in self.races])

    def over(self, slower: str, faster: str) -> Comparison:
        """Return how many times longer a schedule took than another: the median of processes, each of which counts once."""
        return Comparison.of(times[slower].over(times[faster]).ratio for times in self.races)


def raced_apart(make: Callable[[], Problem], schedules: Sequence[str], pace: Pace, processes: int) -> RacesApart:
    """Race schedules in so many new processes that take turns; those that convert operands do so in every call.

    Args:
        make: gives the problem in each of them; a function of a module, or ``partial`` of one.
        schedules: their texts.
        pace: of each process.
        processes: how many.
    """
    with ExitStack() as stack:
        pools = [stack.enter_context(ProcessPoolExecutor(1, get_context("spawn"))) for _ in range(processes)]
        for pool in pools:
            pool.submit(_prepare, make, schedules).result()
        return in_turn([partial(_asked, pool) for pool in pools], schedules, pace)


def in_turn(processes: Sequence[Round], schedules: Sequence[str], pace: Pace, clock: Callable[[], float] = time.perf_counter) -> RacesApart:
    """Have processes take turns at rounds, until each has the undisturbed ones that ``pace`` asks for; while something disturbs, for up to
    ``PATIENCE`` times its seconds. Rounds without company count; all of a process that has fewer than ``pace.fewest`` of them."""
    found: list[list[Mapping[str, Burst]]] = [[] for _ in processes]
    start, orders, places = clock(), turns(schedules), turns(range(len(processes)))

    def is_over() -> bool:
        spent, fewest = (clock() - start) / (pace.seconds * len(processes)), min(len(_undisturbed(rounds)) for rounds in found)
        done = min(map(len, found))
        return done >= pace.most or (done >= pace.fewest and (spent > PATIENCE or (spent > 1 and fewest >= pace.fewest)))

    while not is_over():
        for place in next(places):
            found[place].append(processes[place](next(orders)))
    return RacesApart(tuple(_series(rounds, schedules, pace.fewest) for rounds in found))


def _undisturbed(rounds: Sequence[Mapping[str, Burst]]) -> list[Mapping[str, Burst]]:
    return [one for one in rounds if not any(burst.disturbed for burst in one.values())]


def _series(rounds: Sequence[Mapping[str, Burst]], schedules: Sequence[str], fewest: int) -> dict[str, Series]:
    undisturbed = _undisturbed(rounds)
    counting = undisturbed if len(undisturbed) >= fewest else rounds
    return {name: Series(tuple(one[name].seconds for one in counting)) for name in schedules}


def _asked(pool: ProcessPoolExecutor, order: Sequence[str]) -> Mapping[str, Burst]:
    return pool.submit(_round, order).result()


_contestants: dict[str, tuple[Contestant, int]] = {}
"""In a process of a race: what runs for each schedule, and how often in one sample."""


def _prepare(make: Callable[[], Problem], schedules: Sequence[str]) -> None:
    problem = make()
    memory = OneMemory(problem)
    for text in schedules:
        run = memory.call(Schedule(text))
        batch = max(1, math.ceil(SHORTEST / max(least_of(run, 1, 3), 1e-9)))
        _contestants[text] = Contestant(run, threads=problem.threads), batch


def _round(order: Sequence[str]) -> dict[str, Burst]:
    witness, found = Witness(team), dict[str, Burst]()
    for text in order:
        contestant, batch = _contestants[text]
        rest()
        contestant.run()
        samples = burst(contestant, batch, _SAMPLES, witness)
        best = fastest(samples)
        found[text] = Burst(best.alone, best.company.disturbed)
    return found
