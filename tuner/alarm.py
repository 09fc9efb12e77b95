"""A limit of time on whatever runs in the main thread."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from .awake import TICK, Awake


class TooLong(BaseException):
    """Something ran past its limit. It may come up anywhere, and nothing that expects failures of its own may take it for one of these."""


@contextmanager
def limited(seconds: float | None, message: str) -> Iterator[None]:
    """Raise ``TooLong`` with a message once so many seconds are over, those not counted in which the process was suspended.

    Nothing is limited outside of the main thread, where no signal arrives; a call into C is not interrupted, but what follows it is.
    """
    if seconds is None or threading.current_thread() is not threading.main_thread():
        yield
        return

    awake = Awake()

    def ring(_number: int, _frame: FrameType | None) -> None:
        if (left := seconds - awake.look()) <= 0:
            raise TooLong(message)
        signal.setitimer(signal.ITIMER_REAL, min(left, TICK))

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, min(seconds, TICK))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
