"""When to stop timing: warm-up, repeats until the fastest is confirmed, a race against the best so far in the same window.

The fastest run counts, once a few other runs have come close to it: other work on the machine can only add time, and does not add the same
twice. Samples that were disturbed (``company``) are taken again. A candidate is compared with what the best one takes now, not with what it
took at another time: their samples alternate, and a candidate loses by the ratios of neighbours. The numbers are in ``Policy``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

from .company import Alone, crowded
from .order_statistics import FEWEST, fast_end_rank, median, median_interval_ranks
from .policy import Policy
from .sampling import PATIENCE, Clock, Contestant, Counters, Sample, least, quiet, take_sample

_CONFIRMING = 3  # how many of the fastest runs have to be close together
_LOSSES = 3  # how many pairs a candidate has to lose


@dataclass(frozen=True)
class Timing:
    """The outcome of timing a candidate.

    Attributes:
        samples: of the candidate, in order.
        rival: of what it ran beside, pair by pair; empty where there was none.
        stopped: why there are no more: "confirmed", "repeats", "time", "behind", "losing".
    """

    samples: tuple[Sample, ...]
    rival: tuple[Sample, ...]
    stopped: str

    @property
    def times(self) -> tuple[float, ...]:
        """The seconds a run of every sample."""
        return tuple(sample.seconds for sample in self.samples)

    @property
    def disturbed(self) -> bool:
        """Whether no time is valid by itself: all samples were disturbed, or other programs had a core and shared memory all the time."""
        return not any(quiet(self.samples)) or crowded([sample.company for sample in (*self.samples, *self.rival)])

    @property
    def seconds(self) -> float:
        """The seconds that the fastest run takes without company (``Sample.alone``); the median if all were disturbed."""
        return least(self.samples)

    @property
    def ratio(self) -> float | None:
        """The candidate's time over the rival's, the median of pairs: of undisturbed ones, or of all by processor time."""
        ratios = _ratios(self.samples, self.rival)
        return median(ratios) if ratios else None

    @property
    def interval(self) -> tuple[float, float]:
        """The interval in which the fastest tenth of runs ends with a confidence of 95%; its lower end is the fastest run. If all were
        disturbed, the interval of their median. In seconds."""
        times = sorted(sample.alone for sample in quiet(self.samples) or self.samples)
        if not any(quiet(self.samples)):
            low, high = median_interval_ranks(len(times))
            return times[low], times[high]
        return times[0], times[fast_end_rank(len(times))]

    @property
    def ratio_interval(self) -> tuple[float, float] | None:
        """The interval of the median ratio to the rival, with a confidence of 95% if there are enough pairs."""
        ratios = sorted(_ratios(self.samples, self.rival))
        if not ratios:
            return None
        low, high = median_interval_ranks(len(ratios))
        return ratios[low], ratios[high]


@dataclass(frozen=True)
class Known:
    """What is known before a candidate is timed.

    Attributes:
        first: the sample of the run whose result was checked; a kernel that runs for long is warm after it.
        rival: seconds that the rival took when it was timed itself.
    """

    first: Sample
    rival: float | None = None


def measure(
    candidate: Contestant,
    policy: Policy,
    rival: Contestant | None = None,
    counters: Counters | None = None,
    clock: Clock = time.perf_counter,
    known: Known | None = None,
) -> Timing:
    """Time a candidate under a policy; its first run only warms up and does not count.

    What is known may decide at once: a long run that is hopeless beside the rival, or takes far more than the time that there is, is not
    repeated. If a long rival is hopeless beside the candidate, the candidate is timed alone.

    Args:
        candidate: what is timed.
        rival: the best candidate so far, which runs in turn with it; None: no race.
        counters: tell which samples were disturbed; None: none was.
        clock: seconds, for tests.
        known: of runs before; None: nothing.
    """
    if known is not None and known.first.seconds >= policy.long_seconds:
        if known.rival is not None and known.first.least > policy.hopeless * known.rival:
            return Timing((known.first,), (), "losing")
        if rival is None and known.first.seconds > PATIENCE * policy.max_seconds:
            return Timing((known.first,), (), "time")
    if known is not None and known.rival is not None and known.rival >= policy.long_seconds:
        rival = None if policy.hopeless * known.first.seconds < known.rival else rival
    return _Race(candidate, rival, policy, counters or Alone(), clock, known).timing()


class _Race:
    """A candidate and perhaps a rival, sample by sample."""

    def __init__(
        self, mine: Contestant, rival: Contestant | None, policy: Policy, counters: Counters, clock: Clock, known: Known | None
    ) -> None:
        self._known = known
        self._mine, self._rival, self._policy, self._counters, self._clock = mine, rival, policy, counters, clock
        self._samples: list[Sample] = []
        self._beside: list[Sample] = []

    def timing(self) -> Timing:
        start = self._clock()
        first, beside = self._first_runs()
        if beside is not None and first.seconds >= self._policy.long_seconds and first.least > self._policy.hopeless * beside.seconds:
            return Timing((first,), (beside,), "losing")
        batch, batch_beside = self._batch(first), self._batch(beside)
        if batch == 1 and batch_beside == 1:
            self._keep(first, beside)
        while (reason := self._reason_to_stop(self._clock() - start)) is None:
            self._keep(*self._pair(batch, batch_beside))
        return Timing(tuple(self._samples), tuple(self._beside), reason)

    def _first_runs(self) -> tuple[Sample, Sample | None]:
        """Run both once to warm up (pages, caches, threads), and once more; a long kernel that has run before is not warmed up."""
        beside = None
        if self._rival is not None:
            if self._known is None or (self._known.rival or 0.0) < self._policy.long_seconds:
                self._sample(self._rival, 1)
            beside = self._sample(self._rival, 1)
        if self._known is not None and self._known.first.seconds >= self._policy.long_seconds:
            return self._sample(self._mine, 1), beside
        first = self._sample(self._mine, 1)
        long = self._policy.long_seconds <= first.seconds
        if beside is not None and long and first.least > 2 * self._policy.hopeless * beside.seconds:
            return first, beside
        return self._sample(self._mine, 1), beside

    def _batch(self, first: Sample | None) -> int:
        if first is None or self._policy.is_cold:
            return 1
        return max(1, math.ceil(self._policy.sample_seconds / max(first.seconds, 1e-9)))

    def _pair(self, batch: int, batch_beside: int) -> tuple[Sample, Sample | None]:
        """Take a sample of each; they take turns at being the first."""
        if self._rival is None:
            return self._sample(self._mine, batch), None
        if len(self._samples) % 2:
            sample = self._sample(self._mine, batch)
            return sample, self._sample(self._rival, batch_beside)
        beside = self._sample(self._rival, batch_beside)
        return self._sample(self._mine, batch), beside

    def _sample(self, contestant: Contestant, batch: int) -> Sample:
        return take_sample(contestant, batch, self._counters, self._clock)

    def _keep(self, sample: Sample, beside: Sample | None) -> None:
        self._samples.append(sample)
        if beside is not None:
            self._beside.append(beside)

    def _reason_to_stop(self, elapsed: float) -> str | None:
        policy, undisturbed = self._policy, quiet(self._samples)
        if not self._samples:
            return None
        if self._is_losing():
            return "losing"
        if len(undisturbed) >= policy.max_repeats or len(self._samples) >= 2 * policy.max_repeats:
            return "repeats"
        enough = len(undisturbed) >= policy.min_repeats
        if enough and self._is_behind():
            return "behind"
        times = sorted(sample.seconds for sample in undisturbed)
        confirmed = times[_CONFIRMING - 1 : _CONFIRMING]
        if enough and confirmed and confirmed[0] <= (1 + policy.spread) * times[0]:
            return "confirmed"
        return "time" if elapsed > (1 if enough else PATIENCE) * policy.max_seconds else None

    def _is_losing(self) -> bool:
        """Whether the candidate surely lost three pairs and all undisturbed ones; a candidate that won one may still be as fast."""
        lost = sum(self._is_lost(*pair) for pair in zip(self._samples, self._beside, strict=False))
        return lost >= _LOSSES and all(self._is_lost(*pair) for pair in _quiet_pairs(self._samples, self._beside))

    def _is_behind(self) -> bool:
        """Whether the median ratio of undisturbed pairs is surely larger than ``Policy.behind``."""
        ratios = sorted(mine.seconds / other.seconds for mine, other in _quiet_pairs(self._samples, self._beside))
        low, _ = median_interval_ranks(len(ratios))
        return len(ratios) >= FEWEST and ratios[low] > self._policy.behind

    def _is_lost(self, mine: Sample, other: Sample) -> bool:
        """Whether a sample took too long beside another, however both were disturbed."""
        return mine.least > self._policy.losing * other.seconds


def _quiet_pairs(samples: Sequence[Sample], beside: Sequence[Sample]) -> list[tuple[Sample, Sample]]:
    pairs = zip(samples, beside, strict=False)
    return [pair for pair in pairs if not any(sample.company.disturbed for sample in pair)]


def _ratios(samples: Sequence[Sample], beside: Sequence[Sample]) -> list[float]:
    if pairs := _quiet_pairs(samples, beside):
        return [mine.seconds / other.seconds for mine, other in pairs]
    return [mine.by_work / other.by_work for mine, other in zip(samples, beside, strict=False)]
