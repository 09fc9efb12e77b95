"""Paths and URLs of schedule databases, and how to tell that a file's records have changed.

Nothing is opened here, and little imported: every call asks for this.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

from ..compiler.errors import DatabaseError
from ..compiler.native.folders import user_folder
from .sources import ROOT

SHIPPED = "SPARSETUNE_SHIPPED"
"""Environment variable: a file in place of the schedules that ship with the package; if it is empty, none ship."""

IN_MEMORY = ":memory:"
"""The path that means a database in memory."""

_SHIPPED_FILE = ROOT / "results" / "schedules.jsonl"


def default_url() -> str:
    """Return $SPARSETUNE_DATABASE, or the file ``schedules.sqlite`` of the platform's user data folder."""
    if chosen := _set_to("SPARSETUNE_DATABASE"):
        return chosen
    return _default_file(_set_to("XDG_DATA_HOME"), _set_to("HOME"))


def _set_to(name: str) -> str | None:
    """Return a variable of the environment. ``get`` takes twice as long for one that is not set, and every call asks for some."""
    return os.environ[name] if name in os.environ else None  # noqa: SIM401


@lru_cache(16)
def _default_file(*_what_folders_depend_on: str | None) -> str:
    return str(user_folder("data") / "schedules.sqlite")


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


def database_url(url: str | os.PathLike[str] | None) -> str:
    """Return a path or URL as text, for None that of the default database. Raises ``DatabaseError`` for what is neither."""
    if url is not None and not isinstance(url, (str, os.PathLike)):
        raise DatabaseError(f"a schedule database is a path or a URL, not {type(url).__name__}")
    return default_url() if url is None else os.fspath(url)


def shipped_file() -> Path | None:
    """Return the file of the schedules that ship with the package; None if they are switched off."""
    chosen = os.environ.get(SHIPPED)
    if chosen is None:
        return _SHIPPED_FILE
    return Path(chosen) if chosen else None


def file_stamp(path: str) -> tuple[int, ...] | None:
    """Return sizes and times of change of a database file and its log: they change whenever records are added."""
    try:
        status = os.stat(path)
    except OSError:
        return None  # a log without its database holds no records
    stamp = status.st_size, status.st_mtime_ns
    try:
        status = os.stat(path + "-wal")
    except OSError:
        return stamp
    return (*stamp, status.st_size, status.st_mtime_ns) if status.st_size else stamp  # a reader makes an empty one
