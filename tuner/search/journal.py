"""The file in which Optuna keeps studies, for later processes and others that search at the same time."""

from __future__ import annotations

import fcntl
import os
import socket
from pathlib import Path
from typing import IO

from optuna.storages import BaseStorage, InMemoryStorage, JournalStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock
from optuna.study import Study
from optuna.trial import Trial, TrialState

from ...compiler.errors import DatabaseError

_OWNER = "owner"


def open_storage(journal: Path | None) -> BaseStorage:
    """Return the storage of a journal file, made if missing; None: in memory. Raises ``DatabaseError``: it cannot be written."""
    if journal is None:
        return InMemoryStorage()
    try:
        journal.parent.mkdir(parents=True, exist_ok=True)
        return JournalStorage(JournalFileBackend(str(journal), lock_obj=_JournalLock(journal)))
    except OSError as error:
        raise DatabaseError(f"cannot keep the study in {journal}: {error.strerror or error}") from None


def own(trial: Trial) -> None:
    """Record that this process will report the outcome of a trial."""
    trial.set_user_attr(_OWNER, f"{socket.gethostname()}:{os.getpid()}")


def fail_orphans(study: Study) -> None:
    """Fail the trials that dead processes left running."""
    for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
        if not _lives(str(trial.user_attrs.get(_OWNER, ""))):
            study.tell(trial.number, state=TrialState.FAIL, skip_if_finished=True)


class _JournalLock(JournalFileOpenLock):
    """Lets one process write at a time. The system releases the lock of a killed process. If that has left half a line, the half is cut
    off, since with another line behind it the file could never be read again."""

    def __init__(self, journal: Path) -> None:
        super().__init__(str(journal))
        self._journal = journal
        self._held: list[IO[bytes]] = []

    def acquire(self) -> bool:
        file = self._journal.open("r+b")
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            self._cut_off_half_a_line(file)
        except BaseException:
            file.close()
            raise
        self._held.append(file)
        return True

    def release(self) -> None:
        self._held.pop().close()

    @staticmethod
    def _cut_off_half_a_line(file: IO[bytes]) -> None:
        size = place = file.seek(0, os.SEEK_END)
        while place:
            start = max(0, place - 4096)
            file.seek(start)
            line_end = file.read(place - start).rfind(b"\n")
            if line_end >= 0:
                place = start + line_end + 1
                break
            place = start
        if place < size:
            file.truncate(place)


def _lives(owner: str) -> bool:
    """Return whether the process that asked for a trial may still report it; one on another machine is assumed to live."""
    host, _, number = owner.rpartition(":")
    if host != socket.gethostname() or not number.isdigit():
        return bool(host)
    if int(number) == os.getpid():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
