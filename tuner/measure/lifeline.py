"""A process that does not outlive the one that started it."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys

_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG, prctl(2)


def end_with_parent() -> None:
    """Ask the system to kill this process when its parent dies. On systems other than Linux it ends when its standard input ends.

    If the parent has died already, that shows as the end of standard input too.
    """
    if sys.platform != "linux":
        return
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    poll = select.poll()
    poll.register(0, 0)
    if any(event & select.POLLHUP for _, event in poll.poll(0)):
        os._exit(1)
