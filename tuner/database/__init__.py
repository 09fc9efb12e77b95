"""The schedule database: measurements and decisions, by machine, kernel and input.

``open_database`` takes a path, ``sqlite:///path`` or the URL of a PostgreSQL server; ``default_url`` says where schedules are
kept when nothing is said. Reading from SQLite needs the standard library alone.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...compiler.native.folders import user_folder
from ..urls import IN_MEMORY, database_url, default_url, sqlite_path

if TYPE_CHECKING:
    from .store import Database

__all__ = ["Database", "default_url", "open_database", "sqlite_path", "studies_folder"]


def __getattr__(name: str) -> Any:
    if name != "Database":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .store import Database

    return Database


def open_database(url: str | os.PathLike[str] | None = None, read_only: bool = False) -> Database:
    """Open the schedule database at a URL (None: the default one), making it if it is missing unless read only.

    Raises:
        DatabaseError: it cannot be opened, is no schedule database, or one of a newer version.
    """
    from .store import Database  # imported here, since a lookup without a database does without

    text = database_url(url)
    path = sqlite_path(text)
    if path is not None:
        from .sqlite import SqliteConnection  # with the standard library's driver

        return Database(SqliteConnection(path, read_only), create=not read_only)
    from .server import ServerConnection

    return Database(ServerConnection(text), create=not read_only)


def studies_folder(url: str | os.PathLike[str] | None = None) -> Path | None:
    """Return the folder of Optuna's journals: beside a database file, in the user data folder for a server, none in memory."""
    path = sqlite_path(database_url(url))
    if path == IN_MEMORY:
        return None
    if path is None:
        return user_folder("data") / "studies"
    return Path(os.path.abspath(os.path.expanduser(path))).parent / "studies"
