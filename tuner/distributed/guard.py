"""A guard process for each rank, which holds its place in MPI if it is killed, so that the other ranks of a campaign go on.

MPI's launchers end all ranks when one dies; that of MPICH notices it at the socket between the rank and itself. So a rank that only
measures is a child of the process that was launched: when the child is killed, the parent keeps that socket open until rank 0 is done.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

from ..measure.lifeline import end_with_parent

_RANK, _SOCKET = "PMI_RANK", "PMI_FD"


def guarded() -> Callable[[], None]:
    """Continue in a child of this process, and return a function for the child to call once rank 0 knows it. Call this before MPI starts.

    The parent ends as the child does. If the child is killed after it was known, the parent waits for the launcher to end it; if before,
    it ends at once, since rank 0 would wait for the child. Rank 0 itself, ranks of other launchers and a program that no launcher
    started have no guard.
    """
    if os.environ.get(_RANK, "0") == "0" or _SOCKET not in os.environ:
        return lambda: None
    known, tell = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(known)
        end_with_parent()
        return lambda: _told(tell)
    os.close(tell)
    _guard(child, known)
    raise AssertionError("a guard ends with its child")


def _told(tell: int) -> None:
    os.write(tell, b"1")
    os.close(tell)


def _guard(child: int, known: int) -> None:
    """Wait for the child: end as it does, or hold its place if it is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the child gets it too
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status < 0 and os.read(known, 1):
        signal.sigwait(())
    os._exit(status if status >= 0 else 128 - status)
