"""Interrupts that arrive: Python drops what is raised in finalizers and in callbacks of its garbage collector, Ctrl-C among it."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from .alarm import AGAIN, is_heard


@contextmanager
def heard_interrupts() -> Iterator[None]:
    """Raise ``KeyboardInterrupt`` for an interrupt again and again, until it ends what is inside.

    Where another thread runs this, or interrupts are ignored or handled by somebody else, nothing changes.
    """
    main, before = threading.main_thread(), signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not main or before is not signal.default_int_handler:
        yield
        return

    waiting: list[threading.Timer] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        rings_again = bool(waiting)
        while waiting:
            waiting.pop().cancel()
        if rings_again and is_heard(KeyboardInterrupt):
            return
        timer = threading.Timer(AGAIN, signal.pthread_kill, (main.ident, signal.SIGINT))
        timer.daemon = True
        waiting.append(timer)
        timer.start()
        signal.default_int_handler(number, frame)

    told = sys.unraisablehook

    def tell(dropped: Any) -> None:
        if dropped.exc_type is not KeyboardInterrupt:  # which comes again
            told(dropped)

    signal.signal(signal.SIGINT, interrupt)
    sys.unraisablehook = tell
    try:
        yield
    finally:
        while waiting:
            waiting.pop().cancel()
        signal.signal(signal.SIGINT, before)
        sys.unraisablehook = told
