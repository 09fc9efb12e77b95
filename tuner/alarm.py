"""A limit of time on whatever runs in the main thread."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from .awake import TICK, Awake

AGAIN = 0.05
"""Seconds after which an alarm rings again that nobody has heard."""


class TooLong(BaseException):
    """Something ran past its limit. It may come up anywhere, and nothing that expects failures of its own may take it for one of these."""


@contextmanager
def limited(seconds: float | None, message: str) -> Iterator[None]:
    """Raise ``TooLong`` with a message once so many seconds are over, those not counted in which the process was suspended.

    Nothing is limited outside of the main thread, where no signal arrives; a call into C is not interrupted, but what follows it is.
    The alarm may ring in a finalizer or a callback of the collector, which drop what is raised in them: it rings again until it is heard.
    """
    if seconds is None or threading.current_thread() is not threading.main_thread():
        yield
        return

    awake = Awake()

    def ring(_number: int, _frame: FrameType | None) -> None:
        left = seconds - awake.look()
        signal.setitimer(signal.ITIMER_REAL, min(left, TICK) if left > 0 else AGAIN)
        if left <= 0 and not _is_heard():
            raise TooLong(message)

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, min(seconds, TICK))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _is_heard() -> bool:
    """Whether what runs now cleans up after an alarm."""
    error = sys.exc_info()[1]
    while error is not None and not isinstance(error, TooLong):
        error = error.__context__
    return error is not None
