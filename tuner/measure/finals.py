"""Finalists measured in turn, A B A B, and judged by paired ratios.

Two times taken minutes apart on a shared machine say little; two taken one after the other, again and again, say which is faster
whatever the machine does meanwhile. The interval of the median ratio comes from order statistics (the sign test), so that it
assumes nothing about the noise. But while other programs keep the cores, a schedule of two threads is no faster than one of a thread. So
disturbed rounds are repeated. They count only if there are too few others; all bursts then count by processor time (``Sample.by_work``).
A burst may have one or two samples that had all cores by luck while other programs came and went. These still shared memory and caches,
and take up to three times as long as alone, so rounds with such bursts too count only if there are too few without.

The pages in which operands and results lie make a schedule some percent faster or slower than another. So they are moved between rounds,
and the median is one over their places too.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from ...compiler.deadline import TimeOver
from .order_statistics import FEWEST, median, median_interval_ranks
from .rotation import turns
from .sampling import PATIENCE

MIN_ROUNDS = FEWEST
"""Fewest rounds for which a median has a 95% interval."""

WITHIN = 1.02
"""A finalist that is slower than the fastest by no more than this factor may win if it is the simplest; rounds go on until it is sure of
each finalist whether it is."""


@dataclass(frozen=True)
class Comparison:
    """How many times faster one is than another: the median of paired ratios and its interval."""

    ratio: float
    low: float
    high: float

    @classmethod
    def of(cls, ratios: Iterable[float]) -> Self:
        """Return the median of ratios and its interval: from the least to the largest where there are fewer than ``MIN_ROUNDS``."""
        ordered = sorted(ratios)
        low, high = median_interval_ranks(len(ordered))
        return cls(median(ordered), ordered[low], ordered[high])


@dataclass(frozen=True)
class Burst:
    """A run of a finalist in one round.

    Attributes:
        seconds: what a run takes without company, by the fastest sample.
        disturbed: whether something disturbed its fastest sample.
        crowded: whether something disturbed most of its samples.
        work: what a run takes by processor time, whether or not its samples were disturbed; None where that is not known.
    """

    seconds: float
    disturbed: bool = False
    crowded: bool = False
    work: float | None = None

    @property
    def by_work(self) -> float:
        """What a run takes by processor time where that is known."""
        return self.seconds if self.work is None else self.work


@dataclass(frozen=True)
class Verdict:
    """The outcome of the finals.

    Attributes:
        winner: name of the winner.
        times: for each name, the seconds in every round that counts.
        against_default: the winner against the default.
        ties: names of the others that are not surely slower than the winner.
        disturbed: whether rounds count that were disturbed, since there were too few others.
    """

    winner: str
    times: Mapping[str, tuple[float, ...]]
    against_default: Comparison
    ties: tuple[str, ...] = ()
    disturbed: bool = False

    @classmethod
    def uncontested(cls, default: str, seconds: float) -> Verdict:
        """Return the verdict where the default has no competitor."""
        return cls(default, {default: (seconds,)}, Comparison(1.0, 1.0, 1.0))


def compare(slower: Sequence[float], faster: Sequence[float]) -> Comparison:
    """Compare two lists of times that were taken in the same rounds; above 1 the second is faster."""
    return Comparison.of(a / b for a, b in zip(slower, faster, strict=True))


def play(
    names: Sequence[str],
    run: Callable[[str], Burst | None],
    default: str,
    rounds: int,
    complexity: Callable[[str], int] = len,
    seconds: float = math.inf,
    clock: Callable[[], float] = time.perf_counter,
    is_eligible: bool = True,
    move: Callable[[], object] = lambda: None,
    places: int = 1,
) -> Verdict | None:
    """Run the finalists in turn and name the winner.

    Args:
        names: the finalists, the default among them.
        run: returns one burst of a finalist; None where it fails, which takes it out. Raises ``TimeOver`` when all time is over: then the
            rounds that were played decide, however few they are.
        default: the name of the default.
        rounds: how many undisturbed rounds to play; more while it is not known which finalists are close to the fastest, but at most four
            times as many in all; at least ``MIN_ROUNDS`` whatever the time.
        complexity: of finalists that beat the default and tie with the fastest, the one with the least complexity wins.
        seconds: no round starts after so long.
        is_eligible: whether the default may win; if not, it only is compared with.
        move: moves operands and results to other memory.
        places: how many places in memory ``rounds`` are spread over.

    Returns:
        None if the default itself failed, or the time was over within the first round.
    """
    started, wanted = clock(), max(rounds, MIN_ROUNDS)
    found: list[dict[str, Burst]] = []
    quiet: list[dict[str, Burst]] = []
    left, stay = dict.fromkeys(names), math.ceil(wanted / places)
    for order in turns(names):
        enough = len(quiet) >= wanted and _settled(_times(quiet, left))
        if enough or len(found) >= PATIENCE * wanted or (len(found) >= MIN_ROUNDS and clock() - started > seconds):
            break
        try:
            if found and len(found) % stay == 0:
                move()
            bursts = {name: run(name) for name in order if name in left}
        except TimeOver:
            break
        one = {name: burst for name, burst in bursts.items() if burst is not None}
        left = {name: None for name in left if name in one}
        if default not in left:
            return None
        found.append(one)
        if not any(burst.disturbed or burst.crowded for burst in one.values()):
            quiet.append(one)
    if not found:
        return None
    counting, disturbed = _counting(found, quiet)
    times = _times(counting, left, disturbed)
    return replace(_judge(times, default, complexity, is_eligible), disturbed=disturbed)


def _counting(found: list[dict[str, Burst]], quiet: list[dict[str, Burst]]) -> tuple[list[dict[str, Burst]], bool]:
    """Return the rounds that count, and whether they were disturbed: the least disturbed kind of rounds of which there are enough."""
    lucky = [one for one in found if not any(burst.disturbed for burst in one.values())]
    enough = min(MIN_ROUNDS, len(found))
    for rounds in (quiet, lucky):
        if len(rounds) >= enough:
            return rounds, False
    return found, True


def _times(rounds: Sequence[Mapping[str, Burst]], names: Iterable[str], by_work: bool = False) -> dict[str, tuple[float, ...]]:
    return {name: tuple(one[name].by_work if by_work else one[name].seconds for one in rounds) for name in names}


def _settled(times: Mapping[str, Sequence[float]]) -> bool:
    """Return whether each finalist is surely slower than the fastest, or surely close to it."""
    fastest = min(times, key=lambda name: median(times[name]))
    against = (compare(found, times[fastest]) for found in times.values())
    return all(one.low > 1 or one.high <= WITHIN for one in against)


def _told(slower: Sequence[float], faster: Sequence[float]) -> Comparison:
    """Compare times of the rounds that count. Fewer than ``MIN_ROUNDS`` tell no difference below ``WITHIN``: a few may agree by chance."""
    found = compare(slower, faster)
    return found if len(slower) >= MIN_ROUNDS else Comparison(found.ratio, found.low / WITHIN, found.high * WITHIN)


def _judge(times: Mapping[str, tuple[float, ...]], default: str, complexity: Callable[[str], int], is_eligible: bool) -> Verdict:
    """Return the winner: among the finalists that surely beat the default (all others where it may not win), the simplest of those that
    tie with the fastest; the default if there are none. A finalist whose median is longer by more than ``WITHIN`` is no tie, however
    uncertain its time is."""
    against_default = {name: _told(times[default], found) for name, found in times.items()}
    better = [name for name in times if against_default[name].low > 1 or (name != default and not is_eligible)]
    winner = default
    if better:
        fastest = max(better, key=lambda name: against_default[name].ratio)
        against_fastest = {name: _told(times[name], times[fastest]) for name in better}
        equals = [name for name, found in against_fastest.items() if found.low <= 1 and found.ratio <= WITHIN]
        winner = min(equals, key=lambda name: (complexity(name), -against_default[name].ratio))
    ties = tuple(name for name in times if name != winner and _told(times[name], times[winner]).low <= 1)
    return Verdict(winner, times, against_default[winner], ties)
