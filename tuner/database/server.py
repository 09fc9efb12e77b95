"""PostgreSQL, or whatever else SQLAlchemy reaches by URL, for campaigns that many machines share."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ...compiler.errors import DatabaseError

_CHECKS = {
    "postgresql": {
        "SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE c.relname LIKE 'st\\_%' "
        "AND NOT (i.indisvalid AND i.indisready)": "the index {} is not valid: REINDEX makes it anew",
        "SELECT conname FROM pg_constraint WHERE conname LIKE 'st\\_%' AND NOT convalidated": "the constraint {} was never checked",
        "SELECT checksum_failures FROM pg_stat_database WHERE datname = current_database() AND checksum_failures > 0":
            "{} pages of the database are damaged",
    },
    "sqlite": {"PRAGMA integrity_check": "{}"},
}  # fmt: skip
"""By kind of server: queries that give a row for each fault that its engine finds, and the message for a row."""


class ServerConnection:
    """A database server by URL, such as ``postgresql://user:password@host/name``."""

    def __init__(self, url: str) -> None:
        import sqlalchemy.exc

        try:
            self._engine = sqlalchemy.create_engine(_with_driver(url), pool_pre_ping=True)
        except ImportError as error:
            driver = url.partition(":")[0]
            raise DatabaseError(f"the driver for {driver} is not installed ({error}); pip install 'sparsetune[postgres]'") from None
        except sqlalchemy.exc.SQLAlchemyError as error:
            raise DatabaseError(f"cannot understand the database URL: {_first_line(error)}") from None

    @property
    def url(self) -> str:
        return self._engine.url.render_as_string(hide_password=True)

    def rows(self, statement: str, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        import sqlalchemy

        with self._failures("read"), self._engine.connect() as connection:
            return [tuple(row) for row in connection.execute(sqlalchemy.text(statement), dict(parameters))]

    def write(self, statements: Iterable[tuple[str, Mapping[str, Any]]]) -> list[int]:
        import sqlalchemy

        with self._failures("write"), self._engine.begin() as connection:
            return [connection.execute(sqlalchemy.text(statement), dict(parameters)).rowcount for statement, parameters in statements]

    def tables(self) -> frozenset[str]:
        import sqlalchemy

        with self._failures("open"):
            return frozenset(sqlalchemy.inspect(self._engine).get_table_names())

    def problems(self) -> list[str]:
        asked = _CHECKS.get(self._engine.dialect.name, {})
        return [told.format(*row) for query, told in asked.items() for row in self.rows(query, {}) if row != ("ok",)]

    def stamp(self) -> object:
        return None

    def close(self) -> None:
        self._engine.dispose()

    @contextlib.contextmanager
    def _failures(self, action: str) -> Iterator[None]:
        import sqlalchemy.exc

        try:
            yield
        except sqlalchemy.exc.SQLAlchemyError as error:
            raise DatabaseError(f"cannot {action} the database {self.url}: {_first_line(error)}") from error


def _with_driver(url: str) -> str:
    """Name psycopg 3, which the extra ``postgres`` installs, where the URL names no driver."""
    scheme, separator, rest = url.partition("://")
    return f"postgresql+psycopg{separator}{rest}" if scheme in ("postgresql", "postgres") else url


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
