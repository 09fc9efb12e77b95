"""A time limit for code that runs in the main thread."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from .awake import TICK, Awake

AGAIN = 0.05
"""Seconds after which an alarm, or an interrupt, comes again if its exception was swallowed."""


class TooLong(BaseException):
    """The time limit is over. Not an ``Exception``: it may be raised anywhere, and code that expects failures would catch it."""


@contextmanager
def limited(seconds: float | None, message: str) -> Iterator[None]:
    """Raise ``TooLong`` with a message after so many seconds, not counting those in which the process was suspended.

    Nothing is limited outside of the main thread, where no signal arrives; a call into C is not interrupted, but what follows it is.
    Finalizers and callbacks of the garbage collector drop what is raised in them, so the alarm rings again until it is heard.
    """
    if seconds is None or threading.current_thread() is not threading.main_thread():
        yield
        return

    awake = Awake()

    def ring(_number: int, _frame: FrameType | None) -> None:
        left = seconds - awake.look()
        signal.setitimer(signal.ITIMER_REAL, min(left, TICK) if left > 0 else AGAIN)
        if left <= 0 and not is_heard(TooLong):
            raise TooLong(message)

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, min(seconds, TICK))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def is_heard(kind: type[BaseException]) -> bool:
    """Whether what runs now cleans up after an exception of a kind."""
    error = sys.exc_info()[1]
    while error is not None and not isinstance(error, kind):
        error = error.__context__
    return error is not None
