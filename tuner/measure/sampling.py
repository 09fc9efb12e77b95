"""One sample: a batch of runs of what is timed, with what else the machine did meanwhile (``company``); and bursts of samples.

A clock reads to some tens of nanoseconds, so that short kernels run in batches. Other programs can only add time: the fastest undisturbed
sample of a burst is what counts.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ..records import SAMPLE
from .company import Alone, Company, Look

Run = Callable[[], Any]
Clock = Callable[[], float]

_LEAST_BATCH = 5e-5  # seconds; a clock reads to a few tens of nanoseconds
_LEAST_BATCHES = 5
_LONG = 0.02  # seconds; programs take turns on a core after some milliseconds
_FURTHER = 0.6  # of what the first thread does, each further one does, where all share one memory
PATIENCE = 4
"""Where samples are disturbed a candidate may take so many times the seconds, and a burst so many times the samples, of a quiet machine."""


@dataclass(frozen=True)
class Contestant:
    """What is timed.

    Attributes:
        run: one call.
        beside: seconds that a call takes beside it, such as converting operands, which every sample counts in.
        before: called before each run, outside of what is timed, such as what empties the caches; None: runs follow each other.
        threads: that share the work of a run.
        device: gives the seconds of so many runs by the clock of a GPU, where operands and result are; None: the processor's clock counts.
    """

    run: Run
    beside: float = 0.0
    before: Run | None = None
    device: Callable[[int], float] | None = None
    threads: int = 1


@dataclass(frozen=True)
class Sample:
    """What a run took.

    Attributes:
        seconds: a run.
        company: what else the machine did meanwhile.
        worked: processor time a run, of all threads of this process; 0 where it is not known. What a call takes beside the run counts for
            all threads, since they wait for it.
        threads: that were to share the work.
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
        """Return the sample of figures of ``records.SAMPLE``."""
        if len(row) < len(SAMPLE):
            return cls(row[0], Company(*row[1:]))
        return cls(row[0], Company(*row[1:-2]), row[-2], int(row[-1]))

    @property
    def least(self) -> float:
        """A lower bound of the seconds that a run would have taken alone: without what its threads waited for a core, on all of them."""
        length = self.company.seconds
        ran = self.seconds * max(0.0, 1 - self.company.waited / length) if length > 0 else self.seconds
        return ran / (1 + self.company.lacked)

    @property
    def alone(self) -> float:
        """The seconds that a run takes without company, by what is known of it.

        Where others keep the cores, a kernel of several threads takes as long as one of a thread, and times would choose the latter for
        good. The processor time that both took does not depend on that, so it decides in a sample that was disturbed: spread over
        the threads as they share a memory, which is less than a kernel gains that computes.
        """
        if not self.company.disturbed or not self.worked:
            return self.seconds
        return min(self.seconds, self.worked / _gain(self.threads))


def _gain(threads: int) -> float:
    """Return how many times faster so many threads are than one."""
    return 1 + _FURTHER * (threads - 1)


class Counters(Protocol):
    """What tells the company of a sample: ``company.Witness``, or ``company.Alone``."""

    def begin(self) -> Look: ...

    def since(self, before: Look) -> Company: ...

    def worked(self) -> float: ...


def quiet(samples: Sequence[Sample]) -> list[Sample]:
    """Return the samples that nothing disturbed."""
    return [sample for sample in samples if not sample.company.disturbed]


def take_sample(contestant: Contestant, batch: int, counters: Counters, clock: Clock = time.perf_counter) -> Sample:
    """Time a batch of runs, and tell what else the machine did."""
    before = counters.begin()
    if contestant.device is not None:
        return Sample(contestant.device(batch) / batch + contestant.beside, counters.since(before))
    if contestant.before is not None:
        seconds = _run_apart(contestant, batch, clock)
        return Sample(seconds / batch + contestant.beside, counters.since(before))
    worked = counters.worked()
    seconds = _run_together(contestant, batch, clock)
    worked = counters.worked() - worked
    company = counters.since(before).within(seconds)
    worked = worked / batch + contestant.beside * _gain(contestant.threads)
    return Sample(seconds / batch + contestant.beside, company, worked, contestant.threads)


def _run_together(contestant: Contestant, batch: int, clock: Clock) -> float:
    start = clock()
    for _ in range(batch):
        contestant.run()
    return clock() - start


def _run_apart(contestant: Contestant, batch: int, clock: Clock) -> float:
    """Return the seconds of a batch of runs, with something before each that does not count."""
    assert contestant.before is not None
    seconds = 0.0
    for _ in range(batch):
        contestant.before()
        start = clock()
        contestant.run()
        seconds += clock() - start
    return seconds


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
    """Return the least over samples of the seconds a run, ``batch`` runs a sample: what other programs do can only add."""
    return least(burst(Contestant(run), batch, samples, clock=clock))


def fastest(samples: Sequence[Sample]) -> Sample:
    """Return the fastest undisturbed sample; if there is none, the middle one by ``Sample.alone``: processor time of other threads is
    counted in turns of the system, so that the least may lack some."""
    if undisturbed := quiet(samples):
        return min(undisturbed, key=lambda sample: sample.seconds)
    return sorted(samples, key=lambda sample: sample.alone)[len(samples) // 2]


def least(samples: Sequence[Sample]) -> float:
    """Return the seconds of ``fastest``, as they are without company."""
    return fastest(samples).alone


def burst_size(seconds: float, expected: float, cold: bool = False) -> tuple[int, int]:
    """Return (runs a batch, batches) of a burst of so many seconds.

    Batches are long enough for a clock to tell them apart. There are five at least of short kernels, two of those that take longer
    than an interruption. Runs in cold caches are taken one by one, and as few as that: emptying the caches takes longer than they do.
    """
    batch = 1 if cold else max(1, math.ceil(_LEAST_BATCH / expected))
    least = _LEAST_BATCHES if expected < _LONG else 2
    if cold:
        return batch, least
    return batch, max(least, round(seconds / (batch * expected)))
