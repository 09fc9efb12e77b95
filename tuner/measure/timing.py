"""When to stop timing: warm-up, repeats until the fastest is confirmed, and racing against the best so far.

What counts is the fastest run: whatever else a machine does can only add time, and does not do so the same way twice. It counts once a
few other runs have come close to it. The policy is a value that is stored with every measurement. Times are of warm caches: a kernel
is run on the same operands again and again, as an iterative solver would.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

Name = TypeVar("Name")

_CONFIRMING = 3  # runs that have to lie close together at the fast end
_LEAST_BATCH = 5e-5  # seconds; a clock reads to a few tens of nanoseconds
_LEAST_BATCHES = 5
_LONG = 0.02  # seconds; programs take turns on a core after some milliseconds


@dataclass(frozen=True, kw_only=True)
class Policy:
    """How one candidate is timed. It runs at least 1 + ``min_repeats`` times, unless it is losing.

    Attributes:
        min_repeats, max_repeats: samples to take.
        max_seconds: stop after this long, once ``min_repeats`` are there (twice as long: even if they are not).
        sample_seconds: shorter kernels run several times a sample, so that a sample takes about this long.
        spread: stop when three runs lie within this part of the fastest.
        hopeless: stop when no run so far took less than this many times the best so far: after the first run if it is
            ``long_seconds`` or longer, else after three, since a short one may just have been interrupted.
        losing: stop after three samples when the fastest of them is this many times the best so far.
    """

    min_repeats: int = 5
    max_repeats: int = 100
    max_seconds: float = 0.5
    sample_seconds: float = 5e-4
    spread: float = 0.02
    hopeless: float = 3.0
    long_seconds: float = 0.1
    losing: float = 1.25

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Timing:
    """Samples in seconds a run, and why there are no more: "confirmed", "repeats", "time", "losing"."""

    times: tuple[float, ...]
    stopped: str

    @property
    def seconds(self) -> float:
        """The fastest run."""
        return min(self.times)


def measure(run: Callable[[], object], policy: Policy, best: float | None = None, clock: Callable[[], float] = time.perf_counter) -> Timing:
    """Time ``run`` under a policy.

    Args:
        run: what is timed; it has not run yet, or it has, it does not matter.
        best: seconds of the best candidate so far; None: no race.
        clock: seconds, for tests.
    """
    start = clock()
    _sample(run, 1, clock)  # warm-up: pages, caches, threads
    first = _sample(run, 1, clock)
    singles = [first]
    while best is not None and min(singles) > policy.hopeless * best:
        if len(singles) == 3 or first >= policy.long_seconds:
            return Timing(tuple(singles), "losing")
        singles.append(_sample(run, 1, clock))
    first = min(singles)
    batch = max(1, math.ceil(policy.sample_seconds / max(first, 1e-9)))
    times = singles if batch == 1 else []
    while True:
        if (reason := _reason_to_stop(times, clock() - start, policy, best)) is not None:
            return Timing(tuple(times), reason)
        times.append(_sample(run, batch, clock))


def least_of(run: Callable[[], object], batch: int, samples: int, clock: Callable[[], float] = time.perf_counter) -> float:
    """Return the least over samples of the seconds a run, ``batch`` runs a sample: what other programs do can only add."""
    return min(_sample(run, batch, clock) for _ in range(samples))


def burst_size(seconds: float, expected: float) -> tuple[int, int]:
    """Return (runs a batch, batches) of a burst of so many seconds.

    Batches are long enough for a clock to tell them apart. There are five at least of short kernels, two of those that take longer
    than an interruption.
    """
    batch = max(1, math.ceil(_LEAST_BATCH / expected))
    least = _LEAST_BATCHES if expected < _LONG else 2
    return batch, max(least, round(seconds / (batch * expected)))


def median(values: Sequence[float]) -> float:
    """Return the median; of an even number of values, the mean of the middle two."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def _sample(run: Callable[[], object], batch: int, clock: Callable[[], float]) -> float:
    start = clock()
    for _ in range(batch):
        run()
    return (clock() - start) / batch


def _reason_to_stop(times: list[float], elapsed: float, policy: Policy, best: float | None) -> str | None:
    if not times:
        return None
    if best is not None and len(times) >= 3 and min(times) > policy.losing * best:
        return "losing"
    if len(times) >= policy.max_repeats:
        return "repeats"
    enough = len(times) >= policy.min_repeats
    if elapsed > (1 if enough else 2) * policy.max_seconds:
        return "time"
    confirmed = sorted(times)[_CONFIRMING - 1 : _CONFIRMING]
    return "confirmed" if enough and confirmed and confirmed[0] <= (1 + policy.spread) * min(times) else None


def turns(names: Iterable[Name]) -> Iterator[list[Name]]:
    """Yield one order of contestants after another, without end and the same every time.

    Each is shuffled, so that none always follows the same other, and none begins with what the one before ended with: what runs
    twice in a row finds its own data in the caches.
    """
    draw, order = random.Random(0), list(names)
    last: Name | None = None
    while True:
        draw.shuffle(order)
        if len(order) > 1 and order[0] == last:
            order.append(order.pop(0))
        last = order[-1] if order else None
        yield list(order)
