"""The schedule database: records in, records out, over one connection of whatever kind.

Every call is one short transaction; nothing is kept open between calls, so that processes that share a database wait for each
other for milliseconds at most.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol, Self

from ...compiler.errors import DatabaseError
from ..records import SCHEMA_VERSION, Decision, Input, Measurement, Record, Status, Workload, digest
from . import sql

Row = tuple[Any, ...]


class Connection(Protocol):
    """One kind of server or file. Failures of the driver are raised as ``DatabaseError``."""

    @property
    def url(self) -> str:
        """Where the database is, without a password."""
        ...

    def rows(self, statement: str, parameters: Mapping[str, Any]) -> list[Row]:
        """Return what a query gives."""
        ...

    def write(self, statements: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
        """Run statements in one transaction: all or none of them last, whatever happens to the process."""
        ...

    def tables(self) -> frozenset[str]:
        """Return the names of the tables there are."""
        ...

    def problems(self) -> list[str]:
        """Return what the engine's own check finds wrong, a line each."""
        ...

    def stamp(self) -> object:
        """Return a value that changes when records are added; None where that cannot be told cheaply."""
        ...

    def close(self) -> None: ...


class Database:
    """Append-only store of measurements and decisions; without ``create``, one that has no tables yet reads as empty.

    Raises:
        DatabaseError: what is there is no schedule database, or one of a newer version, or cannot be made.
    """

    def __init__(self, connection: Connection, create: bool = True) -> None:
        self._connection = connection
        self._has_tables = True
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
        self._connection.close()

    def stamp(self) -> object:
        """Return a value that changes when records are added, or None."""
        return self._connection.stamp()

    def add(self, *records: Record) -> None:
        """Add records, all or none; one that is there already is left as it is."""
        self._connection.write([statement for record in records for statement in _statements(record)])

    def measurements(self, **filters: Any) -> Iterator[Measurement]:
        """Yield measurements, oldest first, that equal all filters (``sql.FILTERS``)."""
        for row in self._select("st_measurement", sql.MEASUREMENT_COLUMNS, filters):
            yield _read_measurement(row)

    def decisions(self, **filters: Any) -> Iterator[Decision]:
        """Yield decisions, oldest first, that equal all filters (``sql.FILTERS``)."""
        for row in self._select("st_decision", sql.DECISION_COLUMNS, filters):
            yield _read_decision(row)

    def records(self) -> Iterator[Record]:
        """Yield everything, measurements first."""
        yield from self.measurements()
        yield from self.decisions()

    def stats(self) -> dict[str, int]:
        """Return how many records, decisions, kernels, machines, inputs and failed trials there are."""
        return {name: self._count(query) for name, query in sql.COUNTS.items()}

    def check(self) -> list[str]:
        """Return everything that is wrong with the database, a line each; empty if it is sound."""
        problems = self._connection.problems()
        if problems:
            return problems
        for name, query in sql.ORPHANS.items():
            if count := self._count(query):
                problems.append(f"{count} {name}")
        try:
            for _ in self.records():
                pass
        except DatabaseError as error:
            problems.append(str(error))
        return problems

    def _prepare(self, create: bool) -> None:
        tables = self._connection.tables()
        if "st_meta" not in tables:
            if tables - {"alembic_version"} and not tables & set(sql.TABLE_NAMES) and not self._shared_server():
                raise DatabaseError(f"{self.url} is a database of something else (tables: {', '.join(sorted(tables)[:3])}); give another")
            if not create:
                self._has_tables = False
                return
            self._connection.write([*((table, {}) for table in sql.TABLES), (sql.INSERT_VERSION, {"version": str(SCHEMA_VERSION)})])
        found = self._connection.rows(sql.SELECT_VERSION, {})
        version = str(found[0][0]) if found else "unknown"
        if not version.isdigit() or int(version) > SCHEMA_VERSION:
            raise DatabaseError(
                f"{self.url} is a schedule database of version {version}, this program knows versions up to {SCHEMA_VERSION}; "
                "upgrade sparsetune or give another database"
            )

    def _select(self, table: str, columns: tuple[str, ...], filters: Mapping[str, Any]) -> list[Row]:
        return self._connection.rows(sql.select(table, columns, tuple(filters)), filters) if self._has_tables else []

    def _count(self, query: str) -> int:
        return int(self._connection.rows(query, {})[0][0]) if self._has_tables else 0

    def _shared_server(self) -> bool:
        """Whether other programs' tables may stand beside ours, as they may on a database server."""
        return not self.url.startswith("sqlite")


def _statements(record: Record) -> list[tuple[str, Mapping[str, Any]]]:
    workload, entry = record.workload, record.input
    environment = digest(dict(record.environment))
    pointers = {"key": record.key, "workload": workload.key, "input": entry.key, "environment": environment}
    shared: list[tuple[str, Mapping[str, Any]]] = [
        (sql.INSERT_WORKLOAD, {"key": workload.key, **{column: getattr(workload, column) for column in sql.WORKLOAD_COLUMNS}}),
        (sql.INSERT_INPUT, {"key": entry.key, "name": entry.name, "content": _dump_input(entry)}),
        (sql.INSERT_ENVIRONMENT, {"key": environment, "content": json.dumps(dict(record.environment))}),
    ]
    if isinstance(record, Decision):
        return [*shared, (sql.INSERT_DECISION, {**pointers, **{column: getattr(record, column) for column in sql.DECISION_COLUMNS}})]
    fields = {column: getattr(record, column) for column in sql.MEASUREMENT_COLUMNS}
    fields |= {"status": str(record.status), "times": json.dumps(record.times), "policy": json.dumps(dict(record.policy))}
    return [*shared, (sql.INSERT_MEASUREMENT, {**pointers, **fields})]


def _dump_input(entry: Input) -> str:
    return json.dumps({"extents": entry.extents, "features": entry.features, "pattern": entry.pattern})


def _read_measurement(row: Row) -> Measurement:
    fields, workload, entry, environment = _read_common(row, sql.MEASUREMENT_COLUMNS)
    try:
        fields["status"] = Status(fields["status"])
        fields["times"] = tuple(json.loads(fields["times"]))
        fields["policy"] = json.loads(fields["policy"])
    except ValueError as error:
        raise DatabaseError(f"a damaged measurement (created {fields['created']}): {error}") from None
    return Measurement(workload=workload, input=entry, environment=environment, **fields)


def _read_decision(row: Row) -> Decision:
    fields, workload, entry, environment = _read_common(row, sql.DECISION_COLUMNS)
    return Decision(workload=workload, input=entry, environment=environment, **fields)


def _read_common(row: Row, columns: tuple[str, ...]) -> tuple[dict[str, Any], Workload, Input, dict[str, Any]]:
    count, width = len(columns), len(sql.WORKLOAD_COLUMNS)
    fields = dict(zip(columns, row[:count], strict=True))
    workload = Workload(*row[count : count + width])
    name, content, environment = row[count + width :]
    try:
        given = json.loads(content)
        extents = tuple((str(index), int(extent)) for index, extent in given["extents"])
        features = tuple((str(feature), float(value)) for feature, value in given["features"])
        return fields, workload, Input(extents, features, given["pattern"], name), json.loads(environment)
    except (ValueError, KeyError, TypeError) as error:
        raise DatabaseError(f"a damaged record (created {fields['created']}): {error}") from None
