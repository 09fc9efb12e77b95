"""Temporary folders of one process. Each is held by a lock, which the system releases when the process ends in any way. So later
processes can remove folders of killed ones, and never those of running ones."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
import time
from pathlib import Path
from types import TracebackType

_ABANDONED = 86400.0  # age in seconds after which a folder counts as abandoned, if locks do not tell
_HOST = f"{os.uname().nodename.replace('/', '-')}-"
"""The part of each name that identifies the machine: machines that share a file system may not see each other's locks."""


class Scratch:
    """A new folder that only this user may enter, held until it is removed.

    Args:
        parent: the folder in which it is made.
        prefix: the prefix of its name. ``sweep`` removes the folders with this prefix that no process holds.

    Raises:
        OSError: it cannot be made.
    """

    def __init__(self, parent: Path, prefix: str) -> None:
        while True:
            self.path = Path(tempfile.mkdtemp(prefix=f"{prefix}{_HOST}", dir=parent))
            held = _hold(self.path)
            if held is not None:  # no other process has swept it before it was locked
                self._held = held
                return

    def remove(self) -> None:
        """Remove the folder with its contents, if it is still there, and release its lock."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._held >= 0:
            os.close(self._held)
            self._held = -1

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.remove()


def new_scratch(parent: Path, prefix: str) -> Scratch:
    """Sweep and return a new folder. Raises ``OSError``."""
    sweep(parent, prefix)
    return Scratch(parent, prefix)


def sweep(parent: Path, prefix: str) -> None:
    """Remove this user's folders that no running process holds; folders that cannot be removed stay."""
    try:
        with os.scandir(parent) as entries:
            names = [entry.name for entry in entries if entry.name.startswith(prefix)]
    except OSError:
        return
    for name in names:
        _remove_if_left(parent / name, name.startswith(f"{prefix}{_HOST}"))


def _remove_if_left(folder: Path, locks_tell: bool) -> None:
    try:
        status = os.lstat(folder)
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
            return
        held = _hold(folder)
    except OSError:
        return
    if held is None:
        return
    if (locks_tell and held >= 0) or time.time() - status.st_mtime > _ABANDONED:
        shutil.rmtree(folder, ignore_errors=True)
    if held >= 0:
        os.close(held)


def _hold(folder: Path) -> int | None:
    """Lock a folder and return the descriptor; None if another process holds or has removed it, -1 if the file system (as some network
    ones) has no locks for folders."""
    try:
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(opened), os.stat(folder)):
            return opened
    except (BlockingIOError, FileNotFoundError):
        pass
    except OSError:
        os.close(opened)
        return -1
    os.close(opened)
    return None
