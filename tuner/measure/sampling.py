"""One sample: a batch of runs of what is timed, with what else the machine did meanwhile (``company``); and bursts of samples.

A clock is exact to some tens of nanoseconds, so short kernels run in batches. Other programs can only add time, so the fastest undisturbed
sample of a burst counts.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ..records import SAMPLE
from .company import Alone, Company, Look
from .order_statistics import median

Run = Callable[[], Any]
Clock = Callable[[], float]

_LEAST_BATCH = 5e-5  # seconds; a clock is exact to some tens of nanoseconds
_LEAST_BATCHES = 5
_LONG = 0.02  # seconds; programs take turns on a core after some milliseconds
_FURTHER = 0.6  # work that each further thread does in the time in which the first does 1, since all share one memory
PATIENCE = 4
"""While samples are disturbed, a candidate may take so many times the seconds, and a burst so many times the samples, as otherwise."""


@dataclass(frozen=True)
class Contestant:
    """What is timed.

    Attributes:
        run: one call.
        beside: seconds that a call takes besides the run, such as for converting operands; every sample includes them.
        before: called before each run and not timed, for example to empty the caches; None: runs follow each other directly.
        threads: how many share the work of a run.
        device: returns the seconds of n runs by the clock of a GPU that holds operands and result; None: the processor's clock counts.
    """

    run: Run
    beside: float = 0.0
    before: Run | None = None
    device: Callable[[int], float] | None = None
    threads: int = 1


@dataclass(frozen=True)
class Sample:
    """The measurement of a batch of runs.

    Attributes:
        seconds: time a run.
        company: what else the machine did meanwhile.
        worked: processor time a run, of all threads of this process; 0 where it is not known. What a call takes besides the run counts
            once for every thread, since they all wait for it.
        threads: how many were to share the work.
    """

    seconds: float
    company: Company
    worked: float = 0.0
    threads: int = 1

    def as_row(self) -> list[float]:
        """Return the figures of ``records.SAMPLE``."""
        return [self.seconds, *self.company.as_row(), self.worked, self.threads]

    @classmethod
    def from_row(cls, row: Sequence[float]) -> Sample:
        """Return the sample with these figures (``records.SAMPLE``)."""
        if len(row) < len(SAMPLE):
            return cls(row[0], Company(*row[1:]))
        return cls(row[0], Company(*row[1:-2]), row[-2], int(row[-1]))

    @property
    def least(self) -> float:
        """A lower bound of the seconds that a run would have taken alone: the time that its threads waited for cores is subtracted."""
        length = self.company.seconds
        ran = self.seconds * max(0.0, 1 - self.company.waited / length) if length > 0 else self.seconds
        return ran / (1 + self.company.lacked)

    @property
    def alone(self) -> float:
        """An estimate of the seconds that a run takes without company.

        While others keep the cores, a kernel of several threads takes as long as one of a thread, and by their times the latter would win.
        Processor time does not depend on that, so a disturbed sample counts by its processor time over the speed-up that so many threads
        have where they share one memory (a kernel bound by arithmetic gains more).
        """
        return min(self.seconds, self.by_work) if self.company.disturbed else self.seconds

    @property
    def by_work(self) -> float:
        """The processor time over the speed-up that so many threads have; the seconds where it is not known. Samples in company compare by
        it, those too that had all cores by luck: a short run has that often, a long one never."""
        return self.worked / _gain(self.threads) if self.worked else self.seconds


def _gain(threads: int) -> float:
    """Return how many times faster so many threads are than one."""
    return 1 + _FURTHER * (threads - 1)


class Counters(Protocol):
    """Finds the company of a sample: ``company.Witness``, or ``company.Alone``."""

    def begin(self) -> Look:
        """Return the counters before a sample."""
        ...

    def since(self, before: Look) -> Company:
        """Return what disturbed this process since an earlier look."""
        ...

    def worked(self) -> float:
        """Return the processor time that this process has taken so far, in seconds."""
        ...


def quiet(samples: Sequence[Sample]) -> list[Sample]:
    """Return the samples that nothing disturbed."""
    return [sample for sample in samples if not sample.company.disturbed]


def take_sample(contestant: Contestant, batch: int, counters: Counters, clock: Clock = time.perf_counter) -> Sample:
    """Time a batch of runs, and return the sample with what else the machine did."""
    before = counters.begin()
    if contestant.device is not None:
        return Sample(contestant.device(batch) / batch + contestant.beside, counters.since(before))
    if contestant.before is not None:
        seconds = _run_apart(contestant, batch, clock)
        return Sample(seconds / batch + contestant.beside, counters.since(before))
    worked = counters.worked()
    seconds = _run_together(contestant, batch, clock)
    worked = counters.worked() - worked
    company = counters.since(before).within(seconds).missing(seconds - worked if worked else 0.0)
    worked = worked / batch + contestant.beside * _gain(contestant.threads)
    return Sample(seconds / batch + contestant.beside, company, worked, contestant.threads)


def _run_together(contestant: Contestant, batch: int, clock: Clock) -> float:
    start = clock()
    for _ in range(batch):
        contestant.run()
    return clock() - start


def _run_apart(contestant: Contestant, batch: int, clock: Clock) -> float:
    """Return the seconds of a batch of runs, each after a call of ``before``, which is not timed."""
    assert contestant.before is not None
    seconds = 0.0
    for _ in range(batch):
        contestant.before()
        start = clock()
        contestant.run()
        seconds += clock() - start
    return seconds


def by_work(samples: Sequence[Sample]) -> float | None:
    """Return the median of ``Sample.by_work``; None where processor time is not known."""
    return median([sample.by_work for sample in samples]) if all(sample.worked for sample in samples) else None


def run_once(contestant: Contestant, counters: Counters | None = None, clock: Clock = time.perf_counter) -> tuple[Any, Sample]:
    """Return the result of a run, and what it took."""
    counters = counters or Alone()
    before, start = counters.begin(), clock()
    result = contestant.run()
    seconds = clock() - start if contestant.device is None else contestant.device(1)
    return result, Sample(seconds + contestant.beside, counters.since(before))


def burst(
    contestant: Contestant, batch: int, samples: int, counters: Counters | None = None, clock: Clock = time.perf_counter
) -> tuple[Sample, ...]:
    """Take samples of ``batch`` runs each until so many are undisturbed, or four times as many are there."""
    taken: list[Sample] = []
    while len(taken) < samples or (len(quiet(taken)) < samples and len(taken) < PATIENCE * samples):
        taken.append(take_sample(contestant, batch, counters or Alone(), clock))
    return tuple(taken)


def least_of(run: Run, batch: int, samples: int, clock: Clock = time.perf_counter) -> float:
    """Return the least seconds a run over samples of ``batch`` runs each: other programs can only add time."""
    return least(burst(Contestant(run), batch, samples, clock=clock))


def fastest(samples: Sequence[Sample]) -> Sample:
    """Return the fastest undisturbed sample; if there is none, the median by ``Sample.alone``. (The least would not do: the system counts
    processor time of other threads in steps, so that it may be too small.)"""
    if undisturbed := quiet(samples):
        return min(undisturbed, key=lambda sample: sample.seconds)
    return sorted(samples, key=lambda sample: sample.alone)[len(samples) // 2]


def least(samples: Sequence[Sample]) -> float:
    """Return the seconds that ``fastest`` takes without company."""
    return fastest(samples).alone


def burst_size(seconds: float, expected: float, cold: bool = False) -> tuple[int, int]:
    """Return (runs a batch, batches) of a burst of so many seconds.

    Batches are long enough for a clock to measure. Short kernels run in five batches at least, kernels that take longer than an
    interruption in two. Runs in cold caches are timed one by one and in as few batches, since emptying the caches takes longer than a run.
    """
    batch = 1 if cold else max(1, math.ceil(_LEAST_BATCH / expected))
    least = _LEAST_BATCHES if expected < _LONG else 2
    if cold:
        return batch, least
    return batch, max(least, round(seconds / (batch * expected)))
