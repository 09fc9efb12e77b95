"""The schedule database: records in, records out, over one connection of whatever kind.

Every call is one short transaction; nothing is kept open between calls, so that processes that share a database wait for each
other for milliseconds at most.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol, Self

from ...compiler.errors import DatabaseError
from ...compiler.source import quoted
from ...compiler.warn import warn
from ..records import SCHEMA_VERSION, Decision, Input, Measurement, Record, digest
from . import sql
from .fields import shown
from .gate import from_json, read_json, told

Row = tuple[Any, ...]

COLUMNS = {"measurement": sql.MEASUREMENT_COLUMNS, "decision": sql.DECISION_COLUMNS}
"""The columns of each kind of record, without its key and what it points to."""

_READABLE = frozenset(str(version) for version in range(1, SCHEMA_VERSION + 1))


class Connection(Protocol):
    """One kind of server or file. Failures of the driver are raised as ``DatabaseError``."""

    @property
    def url(self) -> str:
        """Where the database is, without a password."""
        ...

    def rows(self, statement: str, parameters: Mapping[str, Any]) -> list[Row]:
        """Return what a query gives."""
        ...

    def write(self, statements: Iterable[tuple[str, Mapping[str, Any]]]) -> list[int]:
        """Run statements in one transaction: all or none of them last, whatever happens to the process.

        Returns:
            How many rows each has added or changed.
        """
        ...

    def tables(self) -> frozenset[str]:
        """Return the names of the tables there are."""
        ...

    def problems(self) -> list[str]:
        """Return what the engine's own check finds wrong, a line each."""
        ...

    def stamp(self) -> object:
        """Return a value that changes when records are added; None where finding that out is expensive."""
        ...

    def close(self) -> None:
        """Close the connection; nothing can be asked of it afterwards."""
        ...


class Database:
    """Append-only store of measurements and decisions; without ``create``, one that has no tables yet reads as empty.

    Raises:
        DatabaseError: what is there is no schedule database, or one of a newer version, or cannot be made.
    """

    def __init__(self, connection: Connection, create: bool = True) -> None:
        self._connection = connection
        self._has_tables = True
        self._version = str(SCHEMA_VERSION)  # of the tables
        try:
            self._prepare(create)
        except BaseException:
            connection.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_details: object) -> None:
        self.close()

    @property
    def url(self) -> str:
        return self._connection.url

    def close(self) -> None:
        """Close the connection to the database. A ``with`` statement does so at its end."""
        self._connection.close()

    def stamp(self) -> object:
        """Return a value that changes when records are added, or None."""
        return self._connection.stamp()

    def add(self, *records: Record) -> int:
        """Add records, all or none; one that is there already stays as it is. Return how many were new."""
        statements = [statement for record in records for statement in _statements(record)]
        rows = self._connection.write(statements)
        own = (sql.INSERT_MEASUREMENT, sql.INSERT_DECISION)
        return sum(count for (statement, _), count in zip(statements, rows, strict=True) if statement in own)

    def measurements(self, **filters: Any) -> Iterator[Measurement]:
        """Yield measurements that match all filters (``sql.FILTERS``), oldest first; a warning names records without meaning."""
        yield from told(self._read("measurement", filters), self._tell)

    def decisions(self, **filters: Any) -> Iterator[Decision]:
        """Yield decisions, as ``measurements`` does."""
        yield from told(self._read("decision", filters), self._tell)

    def records(self) -> Iterator[Record]:
        """Yield everything, measurements first."""
        yield from self.measurements()
        yield from self.decisions()

    def stats(self) -> dict[str, int]:
        """Return how many records there are, of these measurements and decisions, and how many kernels, machines, inputs, failed trials."""
        return {name: self._count(query) for name, query in sql.COUNTS.items()}

    def check(self) -> list[str]:
        """Return everything that is wrong with the database, a line each; empty if it is sound."""
        problems = self._connection.problems()
        if problems:
            return problems
        for kind in COLUMNS:
            try:
                problems += [found for found in self._read(kind, {}) if isinstance(found, str)]
            except DatabaseError as error:  # a column is missing, or a page cannot be read
                problems.append(f"{kind}s: {error}")
        return problems

    def _prepare(self, create: bool) -> None:
        tables = self._connection.tables()
        missing = sorted(set(sql.TABLE_NAMES) - tables)
        if "st_meta" in missing:
            if tables - {"alembic_version"} and len(missing) == len(sql.TABLE_NAMES) and not self._shared_server():
                raise DatabaseError(f"{self.url} is a database of something else (tables: {', '.join(sorted(tables)[:3])}); give another")
            if not create:
                self._has_tables = False
                return
            self._make_tables()
        elif missing:
            raise DatabaseError(f"{self.url} lacks the table {missing[0]}; give another, and import what 'tune-kernel db export' saved")
        found = self._connection.rows(sql.SELECT_VERSION, {})
        version = str(found[0][0]) if found else "unknown"
        if version not in _READABLE:
            raise DatabaseError(
                f"{self.url} is a schedule database of version {quoted(version, 20)[1:-1]}, this program knows versions up to "
                f"{SCHEMA_VERSION}; upgrade sparsetune or give another database"
            )
        self._version = self._migrated(version) if create and version != str(SCHEMA_VERSION) else version

    def _make_tables(self) -> None:
        """Make the tables. If two processes do so at the same time, PostgreSQL refuses one of them, which then finds the other's tables."""
        statements = [*((table, {}) for table in sql.TABLES), (sql.INSERT_VERSION, {"version": str(SCHEMA_VERSION)})]
        try:
            self._connection.write(statements)
        except DatabaseError:
            if "st_meta" not in self._connection.tables():
                raise
            self._connection.write(statements)

    def _migrated(self, version: str) -> str:
        """Bring tables of an older version to this one; another process may do so at the same time."""
        try:
            self._connection.write([(statement, {"version": str(SCHEMA_VERSION)}) for statement in sql.migration(version)])
        except DatabaseError:
            found = self._connection.rows(sql.SELECT_VERSION, {})
            if not found or str(found[0][0]) != str(SCHEMA_VERSION):
                raise
        return str(SCHEMA_VERSION)

    def _read(self, kind: str, filters: Mapping[str, Any]) -> Iterator[Record | str]:
        """Yield records, and where a row is none, a line that names it."""
        if not self._has_tables:
            return
        for row in self._connection.rows(sql.select(f"st_{kind}", COLUMNS[kind], tuple(filters), self._version), filters):
            try:
                yield from_json(_line(kind, row))
            except DatabaseError as error:
                yield f"{kind} {shown(row[0])}: {error}"

    def _tell(self, line: str) -> None:
        warn(f"{self.url}: {line} ('tune-kernel db check' lists all)")

    def _count(self, query: str) -> int:
        return int(self._connection.rows(query, {})[0][0]) if self._has_tables else 0

    def _shared_server(self) -> bool:
        """Whether other programs' tables may stand beside ours, as they may on a database server."""
        return not self.url.startswith("sqlite")


def _statements(record: Record) -> list[tuple[str, Mapping[str, Any]]]:
    return [(statement, {name: _storable(value) for name, value in parameters.items()}) for statement, parameters in _inserts(record)]


def _storable(value: Any) -> Any:
    """Return a value that every database can hold: file names and the output of compilers may have characters that are not Unicode."""
    if isinstance(value, bool):
        return int(value)
    return value.encode("utf-8", "replace").decode().replace("\0", "?") if isinstance(value, str) else value


def _inserts(record: Record) -> list[tuple[str, Mapping[str, Any]]]:
    workload, entry = record.workload, record.input
    environment = digest(dict(record.environment))
    pointers = {"key": record.key, "workload": workload.key, "input": entry.key, "environment": environment}
    shared: list[tuple[str, Mapping[str, Any]]] = [
        (sql.INSERT_WORKLOAD, {"key": workload.key, **{column: getattr(workload, column) for column in sql.WORKLOAD_COLUMNS}}),
        (sql.INSERT_INPUT, {"key": entry.key, "name": entry.name, "content": _dump_input(entry)}),
        (sql.INSERT_ENVIRONMENT, {"key": environment, "content": json.dumps(dict(record.environment))}),
    ]
    if isinstance(record, Decision):
        return [*shared, (sql.INSERT_DECISION, {**pointers, **_columns(record, sql.DECISION_COLUMNS)})]
    fields = {**_columns(record, sql.MEASUREMENT_COLUMNS), "status": str(record.status)}
    return [*shared, (sql.INSERT_MEASUREMENT, {**pointers, **fields})]


def _columns(record: Record, columns: tuple[str, ...]) -> dict[str, Any]:
    fields = {column: getattr(record, column) for column in columns}
    return {name: json.dumps(value) if name in sql.JSON_COLUMNS else value for name, value in fields.items()}


def _dump_input(entry: Input) -> str:
    return json.dumps({"extents": entry.extents, "features": entry.features, "pattern": entry.pattern})


def _line(kind: str, row: Row) -> dict[str, Any]:
    """Return the JSON object of the record in a row, whatever the row holds."""
    columns = COLUMNS[kind]
    count = 1 + len(columns)
    fields = dict(zip(columns, row[1:count], strict=True))
    workload: dict[str, Any] = dict(zip(sql.WORKLOAD_COLUMNS, row[count:-3], strict=True))
    name, content, environment = row[-3:]
    for what, part in (("workload", workload["machine"]), ("input", content), ("environment", environment)):
        if part is None:
            raise DatabaseError(f"its {what} is missing")
    texts = {"input": content, "environment": environment, **{column: fields[column] for column in columns if column in sql.JSON_COLUMNS}}
    for what, text in texts.items():
        try:
            fields[what] = read_json(text)
        except DatabaseError as error:
            raise DatabaseError(f"{what} is {error}") from None
    if isinstance(fields["input"], dict):
        fields["input"]["name"] = name
    workload["expression"], fields["generator"] = workload.pop("kernel"), fields.pop("code")
    return {"schema": SCHEMA_VERSION, "record": kind, **workload, **fields}
