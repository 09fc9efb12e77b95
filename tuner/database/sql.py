"""The tables of the schedule database, in SQL that SQLite and PostgreSQL both take (parameters by name, ``:machine``).

Workloads, inputs and environments are stored once, under the digest of their content; measurements and decisions point to
them. Keys being digests, adding a record twice (an import repeated) changes nothing.
"""

from __future__ import annotations

TABLES: tuple[str, ...] = (
    "CREATE TABLE IF NOT EXISTS st_meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    """CREATE TABLE IF NOT EXISTS st_workload (
        key TEXT PRIMARY KEY, machine TEXT NOT NULL, kernel TEXT NOT NULL, formats TEXT NOT NULL, dtype TEXT NOT NULL,
        target TEXT NOT NULL, threads INTEGER NOT NULL, semiring TEXT NOT NULL)""",
    "CREATE TABLE IF NOT EXISTS st_input (key TEXT PRIMARY KEY, name TEXT NOT NULL, content TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS st_environment (key TEXT PRIMARY KEY, content TEXT NOT NULL)",
    """CREATE TABLE IF NOT EXISTS st_measurement (
        key TEXT PRIMARY KEY, workload TEXT NOT NULL REFERENCES st_workload (key), input TEXT NOT NULL REFERENCES st_input (key),
        environment TEXT NOT NULL REFERENCES st_environment (key), campaign TEXT NOT NULL, role TEXT NOT NULL,
        schedule TEXT NOT NULL, status TEXT NOT NULL, seconds DOUBLE PRECISION, low DOUBLE PRECISION, high DOUBLE PRECISION,
        samples TEXT NOT NULL, disturbed INTEGER NOT NULL, origin TEXT NOT NULL, parameters TEXT NOT NULL, compiler TEXT NOT NULL,
        flags TEXT NOT NULL, message TEXT NOT NULL, source TEXT NOT NULL, build_seconds DOUBLE PRECISION, policy TEXT NOT NULL,
        load DOUBLE PRECISION, code TEXT NOT NULL, created TEXT NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS st_decision (
        key TEXT PRIMARY KEY, workload TEXT NOT NULL REFERENCES st_workload (key), input TEXT NOT NULL REFERENCES st_input (key),
        environment TEXT NOT NULL REFERENCES st_environment (key), campaign TEXT NOT NULL, schedule TEXT NOT NULL,
        seconds DOUBLE PRECISION NOT NULL, default_seconds DOUBLE PRECISION NOT NULL, speedup_low DOUBLE PRECISION NOT NULL,
        speedup_high DOUBLE PRECISION NOT NULL, ties TEXT NOT NULL, policy TEXT NOT NULL, compiler TEXT NOT NULL, flags TEXT NOT NULL,
        code TEXT NOT NULL, created TEXT NOT NULL)""",
    "CREATE INDEX IF NOT EXISTS st_measurement_workload ON st_measurement (workload, input)",
    "CREATE INDEX IF NOT EXISTS st_decision_workload ON st_decision (workload)",
)

TABLE_NAMES = ("st_meta", "st_workload", "st_input", "st_environment", "st_measurement", "st_decision")

INSERT_VERSION = "INSERT INTO st_meta (name, value) VALUES ('schema', :version) ON CONFLICT (name) DO NOTHING"
SELECT_VERSION = "SELECT value FROM st_meta WHERE name = 'schema'"

WORKLOAD_COLUMNS = ("machine", "kernel", "formats", "dtype", "target", "threads", "semiring")
MEASUREMENT_COLUMNS = ("campaign", "role", "schedule", "status", "seconds", "low", "high", "samples", "disturbed", "origin", "parameters",
                       "compiler", "flags", "message", "source", "build_seconds", "policy", "load", "code", "created")
DECISION_COLUMNS = ("campaign", "schedule", "seconds", "default_seconds", "speedup_low", "speedup_high", "ties", "policy", "compiler",
                    "flags", "code", "created")
JSON_COLUMNS = frozenset(("samples", "parameters", "policy", "ties"))
"""Columns that hold JSON."""


_ADDED: dict[int, dict[str, dict[str, str]]] = {
    2: {
        "st_measurement": {"low": "DOUBLE PRECISION", "high": "DOUBLE PRECISION", "disturbed": "INTEGER NOT NULL DEFAULT 0",
                           "origin": "TEXT NOT NULL DEFAULT ''", "parameters": "TEXT NOT NULL DEFAULT '{}'",
                           "compiler": "TEXT NOT NULL DEFAULT ''", "flags": "TEXT NOT NULL DEFAULT ''"},
        "st_decision": {"ties": "TEXT NOT NULL DEFAULT '[]'", "policy": "TEXT NOT NULL DEFAULT '{}'",
                        "compiler": "TEXT NOT NULL DEFAULT ''", "flags": "TEXT NOT NULL DEFAULT ''"},
    },
    3: {"st_workload": {"semiring": "TEXT NOT NULL DEFAULT '+,*'"}},
}  # fmt: skip
"""The columns, with their types, that each version added."""

_RENAMED: dict[int, dict[str, dict[str, str]]] = {2: {"st_measurement": {"samples": "times"}}}
"""The columns that each version renamed, with their old names."""


def migration(version: str) -> tuple[str, ...]:
    """Return the statements that bring tables of an older version to this one, in one transaction."""
    renamed = [
        f"ALTER TABLE {table} RENAME COLUMN {old} TO {new}"
        for tables in _since(version, _RENAMED) for table, names in tables.items() for new, old in names.items()
    ]  # fmt: skip
    added = [
        f"ALTER TABLE {table} ADD COLUMN {name} {kind}"
        for tables in _since(version, _ADDED) for table, names in tables.items() for name, kind in names.items()
    ]  # fmt: skip
    return (*renamed, *added, "UPDATE st_meta SET value = :version WHERE name = 'schema'")


def _since(version: str, changes: dict[int, dict[str, dict[str, str]]]) -> list[dict[str, dict[str, str]]]:
    """Return what later versions changed."""
    return [tables for later, tables in changes.items() if later > int(version)]


def _stored(version: str, table: str, column: str, alias: str = "r") -> str:
    """Return the SQL that reads a column from tables of some version."""
    for tables in _since(version, _RENAMED):
        if column in tables.get(table, {}):
            return f"{alias}.{tables[table][column]}"
    for tables in _since(version, _ADDED):
        if column in tables.get(table, {}):
            return tables[table][column].partition("DEFAULT ")[2] or "NULL"
    return f"{alias}.{column}"


def _insert(table: str, columns: tuple[str, ...]) -> str:
    values = ", ".join(f":{column}" for column in columns)
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({values}) ON CONFLICT (key) DO NOTHING"


INSERT_WORKLOAD = _insert("st_workload", ("key", *WORKLOAD_COLUMNS))
INSERT_INPUT = _insert("st_input", ("key", "name", "content"))
INSERT_ENVIRONMENT = _insert("st_environment", ("key", "content"))
INSERT_MEASUREMENT = _insert("st_measurement", ("key", "workload", "input", "environment", *MEASUREMENT_COLUMNS))
INSERT_DECISION = _insert("st_decision", ("key", "workload", "input", "environment", *DECISION_COLUMNS))

FILTERS = (*WORKLOAD_COLUMNS, "workload", "input", "campaign", "role", "status", "schedule")
"""The fields that records can be selected by."""


def select(table: str, columns: tuple[str, ...], filters: tuple[str, ...], version: str) -> str:
    """Return the query for records of ``st_measurement`` or ``st_decision`` with what they point to, oldest first.

    The first column is the record's key. What it points to is null where it is missing. ``version`` is that of the tables.
    """
    place = {column: _stored(version, "st_workload", column, "w") for column in WORKLOAD_COLUMNS}
    chosen = ["r.key", *(_stored(version, table, column) for column in columns), *place.values(), "i.name", "i.content", "e.content"]
    conditions = " AND ".join(f"{place.get(name, 'r.' + name)} = :{name}" for name in filters)
    return (
        f"SELECT {', '.join(chosen)} FROM {table} r LEFT JOIN st_workload w ON w.key = r.workload LEFT JOIN st_input i ON i.key = r.input "
        f"LEFT JOIN st_environment e ON e.key = r.environment {'WHERE ' + conditions if conditions else ''} ORDER BY r.created, r.key"
    )


COUNTS = {
    "records": "SELECT (SELECT count(*) FROM st_measurement) + (SELECT count(*) FROM st_decision)",
    "measurements": "SELECT count(*) FROM st_measurement",
    "decisions": "SELECT count(*) FROM st_decision",
    "kernels": "SELECT count(DISTINCT kernel) FROM st_workload",
    "machines": "SELECT count(DISTINCT machine) FROM st_workload",
    "inputs": "SELECT count(*) FROM st_input",
    "failed": "SELECT count(*) FROM st_measurement WHERE status <> 'ok'",
}
