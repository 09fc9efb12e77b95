"""Folders of one process: each is held by a lock that the system lets go with the process, however it ends. So whoever comes next can
remove what a killed process left behind, and never takes away what a living one uses."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
import time
from pathlib import Path
from types import TracebackType

_ABANDONED = 86400.0  # seconds after which a folder counts as left behind where locks say nothing of it
_HOST = f"{os.uname().nodename.replace('/', '-')}-"
"""A part of each name: machines that share a file system need not see each other's locks."""


class Scratch:
    """A new folder that only this user may enter, held until it is removed.

    Args:
        parent: where it is made.
        prefix: of its name; folders with this prefix that nobody holds are what ``sweep`` removes.

    Raises:
        OSError: it cannot be made.
    """

    def __init__(self, parent: Path, prefix: str) -> None:
        while True:
            self.path = Path(tempfile.mkdtemp(prefix=f"{prefix}{_HOST}", dir=parent))
            held = _hold(self.path)
            if held is not None:  # nobody swept it between being made and being held
                self._held = held
                return

    def remove(self) -> None:
        """Remove the folder with what it holds, if it is still there, and let go of it."""
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
    """Remove this user's folders that no living process holds; what cannot be removed stays."""
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
    """Take the lock of a folder and return its descriptor; None where another process holds or has removed it, and -1 where the
    file system has no locks for folders (some that lie on servers)."""
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
