"""Disturbing a process on purpose: other processes on its cores, a quota of a control group, stopping it."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from ...compiler.native.machine import allowed_cores

Disturbance = Callable[[int], AbstractContextManager[None]]
"""A function that takes the id of a process and returns a context; the process is disturbed as long as that is open."""

_BUSY = """
import os, sys
while os.getppid() == int(sys.argv[1]):  # and no longer: who disturbs may be killed
    for _ in range(10**6): pass
"""
_PERIOD = 100_000  # microseconds: the period of a quota
_V1, _V2 = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")


@contextlib.contextmanager
def nothing(_process: int) -> Iterator[None]:
    """Leave the process alone."""
    yield


def busy(a_core: int) -> Disturbance:
    """Return the disturbance by ``a_core`` busy processes for each core that this process may use."""

    @contextlib.contextmanager
    def disturb(_process: int) -> Iterator[None]:
        count = a_core * len(allowed_cores())
        others = [subprocess.Popen([sys.executable, "-S", "-c", _BUSY, str(os.getpid())]) for _ in range(count)]
        try:
            yield
        finally:
            for other in others:
                other.kill()
                other.wait()

    return disturb


def quota_works() -> bool:
    """Return whether control groups with quotas can be made here, for which root and the cpu controller are needed."""
    try:
        with _group(1.0):
            return True
    except OSError:
        return False


def quota(cores: float) -> Disturbance:
    """Return the disturbance by a quota of so many cores, in a control group of version 1 or 2 of its own.

    Raises (when used):
        OSError: no group can be made here.
    """

    @contextlib.contextmanager
    def disturb(process: int) -> Iterator[None]:
        with _group(cores) as folder:
            (folder / "cgroup.procs").write_text(str(process))
            yield

    return disturb


def stopped(milliseconds: int, of: int) -> Disturbance:
    """Return the disturbance by stopping the whole process for ``milliseconds`` of every ``of`` milliseconds."""

    def disturb(process: int) -> AbstractContextManager[None]:
        def run(over: threading.Event) -> None:
            while not over.wait((of - milliseconds) / 1000):
                os.kill(process, signal.SIGSTOP)
                over.wait(milliseconds / 1000)
                os.kill(process, signal.SIGCONT)

        return _meanwhile(run)

    return disturb


def coming_and_going(share: float, seed: int) -> AbstractContextManager[None]:
    """Keep every core busy for some seconds now and then, a share of the time (0 to 1), as long as the context is open."""
    draw = random.Random(seed)

    def run(over: threading.Event) -> None:
        while share and not over.wait(draw.uniform(1, 9) * (1 - share)):
            with busy(1)(0):
                over.wait(draw.uniform(1, 9) * share)

    return _meanwhile(run)


@contextlib.contextmanager
def _meanwhile(run: Callable[[threading.Event], None]) -> Iterator[None]:
    """Run a function in a thread as long as the context is open; the event that it gets is set when it has to end."""
    over = threading.Event()
    thread = threading.Thread(target=run, args=(over,))
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextlib.contextmanager
def _group(cores: float) -> Iterator[Path]:
    """Make a control group with a quota, and remove it at the end; processes that are still in it move to its parent."""
    root = _V1 if (_V1 / "cpu.cfs_quota_us").exists() else _V2
    folder = Path(tempfile.mkdtemp(prefix="sparsetune-", dir=root))
    try:
        limit = int(cores * _PERIOD)
        if root is _V1:
            (folder / "cpu.cfs_period_us").write_text(str(_PERIOD))
            (folder / "cpu.cfs_quota_us").write_text(str(limit))
        else:
            (folder / "cpu.max").write_text(f"{limit} {_PERIOD}")
        yield folder
    finally:
        for process in (folder / "cgroup.procs").read_text().split():
            with contextlib.suppress(OSError):  # the process may have ended
                (root / "cgroup.procs").write_text(process)
        _remove(folder)


def _remove(group: Path) -> None:
    """Remove a group once the system has noticed that the processes in it have ended."""
    deadline = time.monotonic() + 10
    while True:
        try:
            group.rmdir()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
