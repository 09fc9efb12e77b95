"""How long an enumeration may take. Enumerations that grow quickly with the operands stop at a deadline, with what they have found."""

from __future__ import annotations

import math
import time
from collections.abc import Callable


class TimeOver(Exception):
    """The time of an enumeration is over; the caller goes on with what was found."""


class Steps:
    """A clock that advances by a fixed amount whenever it is read, which enumerations do once a step. What they find before a deadline on
    this clock depends neither on the speed of the machine nor on its load.

    Args:
        seconds: what a step takes on a usual machine.
        slack: if steps take more than this many times as long, processor time divided by ``slack`` counts instead.
        clock: gives processor time.
    """

    def __init__(self, seconds: float, slack: float = 2.0, clock: Callable[[], float] = time.thread_time) -> None:
        self._seconds, self._slack, self._clock = seconds, slack, clock
        self._count, self._begin = 0, clock()

    def __call__(self) -> float:
        self._count += 1
        return max(self._count * self._seconds, (self._clock() - self._begin) / self._slack)


class Deadline:
    """The end of an enumeration.

    Args:
        seconds: time from now on, by the clock; None: no end.
        clock: with ``time.thread_time``, the processor time of this thread, a busy machine finds about the same as an idle one; with
            ``Steps`` it finds exactly the same; ``time.monotonic`` is for times that a user gave.
    """

    def __init__(self, seconds: float | None = None, clock: Callable[[], float] = time.thread_time) -> None:
        self._clock = clock
        self._end = math.inf if seconds is None else clock() + seconds
        self._found_over = False
        self._parts: list[Deadline] = []

    @property
    def left(self) -> float:
        """Seconds until the end, by the clock; 0 after it."""
        return max(0.0, self._end - self._clock())

    @property
    def over(self) -> bool:
        """Whether the time is over."""
        self._found_over = self._found_over or self.left == 0.0
        return self._found_over

    @property
    def cut(self) -> bool:
        """Whether some step was cut short because the time was over: the whole time, or that of a part."""
        return self._found_over or any(part.cut for part in self._parts)

    def part(self, share: float) -> Deadline:
        """Return the deadline of one of several steps, which gets a share of the time that is left."""
        self._parts.append(Deadline(None if math.isinf(self._end) else share * self.left, self._clock))
        return self._parts[-1]

    def spared(self, share: float, most: float) -> Deadline:
        """Return the deadline of an optional step: a share of the time that is left, but at most ``most`` seconds. If that step is cut
        short, ``cut`` does not say so."""
        return Deadline(min(most, share * self.left), self._clock)

    def watch(self) -> None:
        """Raise ``TimeOver`` once the time is over. Enumerations call it at every step."""
        if self.over:
            raise TimeOver
