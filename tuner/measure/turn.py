"""Campaigns on one machine take turns at timing."""

from __future__ import annotations

import contextlib
from pathlib import Path
from types import TracebackType

import filelock

from ...compiler.native.folders import user_folder

WAIT_SECONDS = 60.0
"""Seconds to wait for a turn: a turn takes a second or two, so a process that holds it longer hangs."""


class Turn:
    """A lock on the machine, held while something is timed; the system lets go of it when its process dies.

    It is one file for each user, whatever caches and databases a campaign works with. If it cannot be made, nobody waits.

    Attributes:
        wait: most seconds to wait for it.
    """

    def __init__(self, path: Path | None = None, wait: float = WAIT_SECONDS) -> None:
        self._path = path or user_folder("cache") / "measuring.lock"
        self.wait = wait
        self._lock = filelock.FileLock(self._path)

    def __enter__(self) -> bool:
        """Wait for the turn; return whether this process has it."""
        with contextlib.suppress(OSError, filelock.Timeout):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(timeout=self.wait, poll_interval=0.005)
        return self._lock.is_locked

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._lock.release()
