"""How long an enumeration may go on: what grows with every operand ends with what it has found, and says so."""

from __future__ import annotations

import math
import time
from collections.abc import Callable


class TimeOver(Exception):
    """The time of an enumeration is over; who started it goes on with what was found."""


class Steps:
    """A clock that goes on by the same time whenever it is read, which enumerations do at every step: what they find until a deadline by it
    depends neither on the machine nor on what else this does.

    Args:
        seconds: of a step, on a usual machine.
        slack: where steps take so many times as long as that, in processor time of this thread, time counts after all.
        clock: of the processor.
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
        seconds: of the clock, from now on; None: without end.
        clock: ``time.thread_time`` counts the processor time of this thread, so that a busy machine finds about what an idle one finds;
            ``Steps`` count steps, so that it finds the same; ``time.monotonic`` is for times that a user gave.
    """

    def __init__(self, seconds: float | None = None, clock: Callable[[], float] = time.thread_time) -> None:
        self._clock = clock
        self._end = math.inf if seconds is None else clock() + seconds
        self._found_over = False
        self._parts: list[Deadline] = []

    @property
    def left(self) -> float:
        """Seconds until the end, of the clock; 0 after it."""
        return max(0.0, self._end - self._clock())

    @property
    def over(self) -> bool:
        """Whether the time is over."""
        self._found_over = self._found_over or self.left == 0.0
        return self._found_over

    @property
    def cut(self) -> bool:
        """Whether something found the time over, the whole or that of a part, and so was not finished."""
        return self._found_over or any(part.cut for part in self._parts)

    def part(self, share: float) -> Deadline:
        """Return the deadline of one of several steps: after a share of the time that is left."""
        self._parts.append(Deadline(None if math.isinf(self._end) else share * self.left, self._clock))
        return self._parts[-1]

    def spared(self, share: float, most: float) -> Deadline:
        """Return the deadline of a step that is not missed where it is cut short: after a share of the time that is left, or so many
        seconds, of the same clock."""
        return Deadline(min(most, share * self.left), self._clock)

    def watch(self) -> None:
        """Raise ``TimeOver`` once the time is over; what enumerates calls it at every step."""
        if self.over:
            raise TimeOver
