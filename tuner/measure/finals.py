"""Finalists measured in turn, A B A B, and judged by paired ratios.

Two times taken minutes apart on a shared machine say little; two taken one after the other, again and again, say which is faster
whatever the machine does meanwhile. The interval of the median ratio comes from order statistics (the sign test), so that it
assumes nothing about the noise.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from .order_statistics import median, median_interval_ranks
from .timing import turns

MIN_ROUNDS = 6
"""Fewer rounds have no 95% interval of a median at all."""


@dataclass(frozen=True)
class Comparison:
    """How many times faster one is than another: the median of paired ratios and its interval."""

    ratio: float
    low: float
    high: float


@dataclass(frozen=True)
class Verdict:
    """The outcome of the finals.

    Attributes:
        winner: name of the winner.
        times: name -> seconds, one a round.
        against_default: the winner against the default.
        ties: names of the others that are not surely slower than the winner.
    """

    winner: str
    times: Mapping[str, tuple[float, ...]]
    against_default: Comparison
    ties: tuple[str, ...] = ()

    @classmethod
    def uncontested(cls, default: str, seconds: float) -> Verdict:
        """Return the verdict where the default has no competitor."""
        return cls(default, {default: (seconds,)}, Comparison(1.0, 1.0, 1.0))


def compare(slower: Sequence[float], faster: Sequence[float]) -> Comparison:
    """Compare two lists of times that were taken in the same rounds; above 1 the second is faster."""
    ratios = sorted(a / b for a, b in zip(slower, faster, strict=True))
    low, high = median_interval_ranks(len(ratios))
    return Comparison(median(ratios), ratios[low], ratios[high])


def play(
    names: Sequence[str],
    run: Callable[[str], float | None],
    default: str,
    rounds: int,
    complexity: Callable[[str], int] = len,
    seconds: float = math.inf,
    clock: Callable[[], float] = time.perf_counter,
    is_eligible: bool = True,
) -> Verdict | None:
    """Run the finalists in turn and name the winner.

    Args:
        names: the finalists, the default among them.
        run: seconds of one burst of a finalist; None where it fails, which takes it out.
        default: the name of the default.
        rounds: at most so many; at least ``MIN_ROUNDS`` whatever the time.
        complexity: of finalists that beat the default and tie with the fastest the simplest wins.
        seconds: start no round after so long.
        is_eligible: whether the default may win, or is there to compare with alone.

    Returns:
        None if the default itself failed.
    """
    started = clock()
    times: dict[str, list[float]] = {name: [] for name in names}
    for number, order in zip(range(max(rounds, MIN_ROUNDS)), turns(names), strict=False):
        if number >= MIN_ROUNDS and clock() - started > seconds:
            break
        for name in filter(times.__contains__, order):
            found = run(name)
            if found is None:
                del times[name]
            else:
                times[name].append(found)
        if default not in times:
            return None
    return _judge({name: tuple(found) for name, found in times.items()}, default, complexity, is_eligible)


def _judge(times: Mapping[str, tuple[float, ...]], default: str, complexity: Callable[[str], int], is_eligible: bool) -> Verdict:
    """Of those that surely beat the default, or of all others where it may not win, return the simplest that ties with the fastest; the
    default if there are none."""
    against_default = {name: compare(times[default], found) for name, found in times.items()}
    better = [name for name in times if against_default[name].low > 1 or (name != default and not is_eligible)]
    winner = default
    if better:
        fastest = max(better, key=lambda name: against_default[name].ratio)
        equals = [name for name in better if compare(times[name], times[fastest]).low <= 1]
        winner = min(equals, key=lambda name: (complexity(name), -against_default[name].ratio))
    ties = tuple(name for name in times if name != winner and compare(times[name], times[winner]).low <= 1)
    return Verdict(winner, times, against_default[winner], ties)
