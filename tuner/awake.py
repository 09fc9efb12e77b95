"""A clock that stands still while this process is suspended: by Ctrl-Z, a signal, or a machine that freezes it.

The system's clocks go on meanwhile, so that time limits would be over as soon as the process continues. Nothing tells a process that it
was suspended, so it looks at the clock every ``TICK`` seconds: if far more than that have passed since the last look, and the process has
not worked meanwhile, it was suspended.
"""

from __future__ import annotations

import time
from collections.abc import Callable

TICK = 1.0
"""Seconds between two looks."""

_MOST = 2 * TICK  # longest time between two looks without a suspension, since a busy machine wakes the process late


class Awake:
    """Counts seconds since it was made, without suspensions; ``look`` has to be called every ``TICK`` seconds.

    Args:
        clock: seconds that pass.
        work: seconds that this process has worked: a call into C may last, and be no suspension.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, work: Callable[[], float] = time.process_time) -> None:
        self._clock, self._work = clock, work
        self._last = clock(), work()
        self._seconds = 0.0

    def look(self) -> float:
        """Return the seconds so far."""
        now = self._clock(), self._work()
        passed, worked = (later - earlier for later, earlier in zip(now, self._last, strict=True))
        self._seconds += passed if passed <= _MOST else min(passed, max(_MOST, worked))
        self._last = now
        return self._seconds
