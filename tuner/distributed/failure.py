"""The failure of one rank ends all ranks, with one line that says why.

An error in what every rank does alike is raised on every rank. An error of a single rank, such as a lack of memory, would leave the others
waiting for it; so unless all ranks fail within a moment, the one that failed ends them all. If a rank is killed, the launcher ends the
others.
"""

from __future__ import annotations

import fcntl
import os
import stat
import sys
import termios
import time
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from ...compiler.errors import BuildError, ResourceError, SparsetuneError

_ALL_FAIL_WITHIN = 2.0  # seconds to wait for the failure of all ranks
_READ_WITHIN = 2.0  # seconds to wait until the launcher has read what a rank printed
_HANDED_ON_WITHIN = 0.05  # seconds in which the launcher prints what it has read

Result = TypeVar("Result")


def watch(comm: Any) -> None:
    """Make an error that nobody catches end all ranks."""
    quietly = comm.Dup()

    def ended(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        shared = _happens_everywhere(quietly)
        if not shared or quietly.Get_rank() == 0:
            _tell(kind, error, trace, None if shared else f"rank {quietly.Get_rank()} of {quietly.Get_size()}")
        if not shared:
            wait_until_read(2, _READ_WITHIN)  # the end of the rank would lose what is still in the pipe
            time.sleep(_HANDED_ON_WITHIN)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # MPI would say once more that this rank ends the others
            comm.Abort(status_of(error))

    sys.excepthook = ended


def agreed(comm: Any, work: Callable[[], Result]) -> Result:
    """Return the result of some work on this rank.

    Raises:
        SparsetuneError: on every rank, if the work failed on one: the error of the first such rank, which the message names.
    """
    result, error = None, None
    try:
        result = work()
    except SparsetuneError as caught:
        error = caught
    except MemoryError as caught:
        error = ResourceError(f"there is not enough memory{f': {caught}' if str(caught) else ''}")
    if comm.Get_size() == 1:
        if error is not None:
            raise error
        return result  # type: ignore[return-value]  # it was made
    told = comm.allgather(None if error is None else (type(error), str(error)))
    failed = [(rank, *found) for rank, found in enumerate(told) if found is not None]
    if failed:
        rank, kind, message = failed[0]
        everywhere = len(failed) == len(told) and all(found == told[0] for found in told)
        raise kind(message if everywhere else f"rank {rank} of {len(told)}: {message}")
    return result  # type: ignore[return-value]  # it was made


def status_of(error: BaseException) -> int:
    """Return the status that a process ends with for an error: 3 where something is missing on its machine."""
    return 3 if isinstance(error, (BuildError, ResourceError, MemoryError)) else 1


def wait_until_read(descriptor: int, seconds: float) -> bool:
    """Wait until the reader of a pipe has taken all that was written into it, at most so many seconds.

    Returns:
        Whether nothing is left; files and terminals keep what they are given.
    """
    if not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
        return True
    end = time.monotonic() + seconds
    while left := int.from_bytes(fcntl.ioctl(descriptor, termios.FIONREAD, bytes(4)), sys.byteorder):
        if time.monotonic() > end:
            break
        time.sleep(0.001)
    return not left


def _happens_everywhere(comm: Any) -> bool:
    """Whether every rank gets here within a moment."""
    here, end = comm.Ibarrier(), time.monotonic() + _ALL_FAIL_WITHIN
    while not (found := bool(here.Test())) and time.monotonic() < end:
        time.sleep(0.01)
    return found


def _tell(kind: type[BaseException], error: BaseException, trace: TracebackType | None, whose: str | None) -> None:
    """Print an error: in one line if it is meant for users, else with Python's traceback."""
    if isinstance(error, (SparsetuneError, MemoryError)):
        first = next(iter(str(error).splitlines()), "there is not enough memory")
        shown = f"sparsetune: error: {f'{whose}: ' if whose else ''}{kind.__name__}: {first}\n"
    else:
        shown = "".join(traceback.format_exception(kind, error, trace))
    sys.stderr.write(shown)
    sys.stderr.flush()
