"""The schedule database: measurements and decisions, by machine, kernel and input.

``open_database`` takes a path, ``sqlite:///path`` or the URL of a PostgreSQL server; ``default_url`` says where schedules are
kept when nothing is said. Reading from SQLite needs the standard library alone.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

from ...compiler.errors import DatabaseError
from .sqlite import IN_MEMORY, SqliteConnection
from .store import Database

__all__ = ["Database", "default_url", "open_database", "sqlite_path", "studies_folder"]


def default_url() -> str:
    """Return $SPARSETUNE_DATABASE, or the file ``schedules.sqlite`` of the platform's user data folder."""
    if chosen := _set_to("SPARSETUNE_DATABASE"):
        return chosen
    return _default_file(_set_to("XDG_DATA_HOME"), _set_to("HOME"))


def _set_to(name: str) -> str | None:
    """Return a variable of the environment; every plain call asks for some that are seldom set, of which ``get`` takes twice as long."""
    return os.environ[name] if name in os.environ else None  # noqa: SIM401


@lru_cache(16)
def _default_file(*_what_folders_depend_on: str | None) -> str:
    return str(_data_folder() / "schedules.sqlite")


def sqlite_path(url: str) -> str | None:
    """Return the file that a URL means, or None where it means a server.

    Raises:
        DatabaseError: the URL is of a kind that is not supported.
    """
    scheme, separator, rest = url.partition("://")
    if not separator:
        if not url:
            raise DatabaseError("the database is named by an empty text; give a path, sqlite:///path or postgresql://host/name")
        return url
    if scheme == "sqlite":
        path = rest.removeprefix("/")
        if not path:
            raise DatabaseError(f"{url} names no file; write sqlite:///path or sqlite:////absolute/path")
        return path
    if scheme.partition("+")[0] in ("postgresql", "postgres"):
        return None
    raise DatabaseError(f"{scheme}:// is no kind of database that is supported; give a path, sqlite:///path or postgresql://host/name")


def open_database(url: str | os.PathLike[str] | None = None, read_only: bool = False) -> Database:
    """Open the schedule database at a URL (None: the default one), making it if it is missing unless read only.

    Raises:
        DatabaseError: it cannot be opened, is no schedule database, or one of a newer version.
    """
    text = database_url(url)
    path = sqlite_path(text)
    if path is not None:
        return Database(SqliteConnection(path, read_only), create=not read_only)
    from .server import ServerConnection

    return Database(ServerConnection(text), create=not read_only)


def studies_folder(url: str | os.PathLike[str] | None = None) -> Path | None:
    """Return the folder of Optuna's journals: beside a database file, in the user data folder for a server, none in memory."""
    path = sqlite_path(database_url(url))
    if path == IN_MEMORY:
        return None
    if path is None:
        return _data_folder() / "studies"
    return Path(os.path.abspath(os.path.expanduser(path))).parent / "studies"


def database_url(url: str | os.PathLike[str] | None) -> str:
    """Return a path or URL as text, for None that of the default database. Raises ``DatabaseError`` for what is neither."""
    if url is not None and not isinstance(url, (str, os.PathLike)):
        raise DatabaseError(f"a schedule database is a path or a URL, not {type(url).__name__}")
    return default_url() if url is None else os.fspath(url)


def _data_folder() -> Path:
    import platformdirs

    return Path(platformdirs.user_data_dir("sparsetune"))
