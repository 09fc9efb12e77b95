"""The default database: one SQLite file, through the standard library alone.

Write-ahead logging with full synchronisation: a record that was added is on disk, a process killed in the middle of adding
leaves no trace of it, and readers do not wait for the writer.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ...compiler.errors import DatabaseError
from ..urls import IN_MEMORY, file_stamp

BUSY_SECONDS = 30.0
"""How long to wait for another process's write; one takes milliseconds."""


class SqliteConnection:
    """A file (made if it is missing, unless read only), or ``:memory:``."""

    def __init__(self, path: str | Path, read_only: bool = False) -> None:
        self._path = str(path) if str(path) == IN_MEMORY else os.path.abspath(os.path.expanduser(path))
        self._database = self._open(read_only)
        self._database.text_factory = _text

    @property
    def url(self) -> str:
        return f"sqlite:///{self._path}"

    def rows(self, statement: str, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        with self._failures("read"):
            return self._database.execute(statement, dict(parameters)).fetchall()

    def write(self, statements: Iterable[tuple[str, Mapping[str, Any]]]) -> list[int]:
        with self._failures("write"):
            self._database.execute("BEGIN IMMEDIATE")
            try:
                rows = [self._database.execute(statement, dict(parameters)).rowcount for statement, parameters in statements]
                self._database.execute("COMMIT")
                return rows
            except BaseException:
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
                raise

    def tables(self) -> frozenset[str]:
        return frozenset(name for (name,) in self.rows("SELECT name FROM sqlite_master WHERE type = 'table'", {}))

    def problems(self) -> list[str]:
        found = [str(line) for (line,) in self.rows("PRAGMA integrity_check", {})]
        return [] if found == ["ok"] else found

    def stamp(self) -> object:
        return file_stamp(self._path)

    def close(self) -> None:
        self._database.close()

    def _open(self, read_only: bool) -> sqlite3.Connection:
        if self._path == IN_MEMORY:
            return sqlite3.connect(IN_MEMORY, isolation_level=None)
        if os.path.isdir(self._path):
            raise DatabaseError(f"{self._path} is a folder; name a file in it as the database")
        if read_only and not os.path.exists(self._path):
            raise DatabaseError(f"there is no database {self._path}")
        with self._failures("open"):
            if not read_only:
                Path(self._path).parent.mkdir(parents=True, exist_ok=True)
                database = sqlite3.connect(self._path, timeout=BUSY_SECONDS, isolation_level=None)
                self._set_up(database)
                return database
            try:
                return _connect_read_only(self._path, "mode=ro")
            except sqlite3.OperationalError:  # the folder cannot be written, and the shared-memory file needs a place in it
                return _connect_read_only(self._path, "mode=ro&immutable=1")

    def _set_up(self, database: sqlite3.Connection) -> None:
        """Switch to write-ahead logging; the switch itself does not wait for others, so it is tried again."""
        deadline = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                database.execute("PRAGMA journal_mode = WAL")
                database.execute("PRAGMA synchronous = FULL")
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    database.close()
                    raise
                time.sleep(0.02)
            except sqlite3.DatabaseError:
                database.close()
                raise

    @contextlib.contextmanager
    def _failures(self, action: str) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise DatabaseError(_explain(self._path, action, error)) from error
        except OSError as error:
            raise DatabaseError(f"cannot {action} the database {self._path}: {error.strerror or error}") from error


def _text(stored: bytes) -> str:
    """Return a stored text. SQLite may hold text that is not UTF-8; for that, return a text that no field accepts."""
    return stored.decode("utf-8", "surrogateescape")


def _connect_read_only(path: str, options: str) -> sqlite3.Connection:
    database = sqlite3.connect(f"file:{quote(os.fsencode(path))}?{options}", uri=True, timeout=BUSY_SECONDS, isolation_level=None)
    try:
        database.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error:
        database.close()
        raise
    return database


def _explain(path: str, action: str, error: sqlite3.Error) -> str:
    text = str(error)
    if "not a database" in text:
        return f"{path} is not a database; give another file, or move it away and a new one is made"
    if "malformed" in text:
        return f"the database {path} is damaged ({text}); move it away, and import what 'tune-kernel db export' saved"
    if "locked" in text:
        return f"the database {path} is locked by another process for more than {BUSY_SECONDS:.0f} s"
    return f"cannot {action} the database {path}: {text}"
