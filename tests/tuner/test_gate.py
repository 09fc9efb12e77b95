"""Records without meaning, from files and from tables: refused in a line that names them, and nothing else is lost."""

from __future__ import annotations

import contextlib
import json
import math
import random
import sqlite3
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import postgres_server
import pytest
import record_mutations
from sparsetune.compiler.errors import DatabaseError
from sparsetune.compiler.schedule.schedule import Schedule
from sparsetune.tuner.database import open_database, sql
from sparsetune.tuner.database.gate import from_json
from sparsetune.tuner.database.interchange import import_json_lines
from sparsetune.tuner.features import distance
from sparsetune.tuner.records import Decision, Measurement, Record, Status, to_json
from tuner_samples import INPUT, WORKLOAD, decision, measurement


def admitted(lines: Iterator[Any]) -> list[Record]:
    """Return the records among lines, after checking that refusals are one line for people."""
    found = []
    for line in lines:
        try:
            found.append(from_json(line))
        except DatabaseError as error:
            message = str(error)
            assert message.isprintable(), (message, line)
            assert len(message) < 1000, line
    return found


def assert_meaningful(record: Record) -> None:
    """Check, by other means than the gate, what those who read records rely on."""
    times = [record.seconds] if isinstance(record, Measurement) else [record.seconds, record.default_seconds]
    times += record.times if isinstance(record, Measurement) else [record.speedup_low, record.speedup_high, record.speedup]
    assert all(time is None or (type(time) is float and math.isfinite(math.log(time))) for time in times)
    if isinstance(record, Measurement):
        assert (record.seconds is not None) == (record.status is Status.OK)
    assert math.isfinite(distance(record.input, INPUT))
    assert 1 <= record.workload.threads < 2**31
    assert all(type(extent) is int and 0 <= extent < 2**63 for _, extent in record.input.extents)
    assert "/" not in str(Schedule(record.schedule))
    assert from_json(json.loads(json.dumps(to_json(record)))) == record


def test_of_a_sample_only_what_others_ran_may_be_negative() -> None:
    """It is a difference of two counts."""
    figures = (0.002, 0.002, 0.0, 0.0, 0.0, -0.004, 1.0)
    record = replace(measurement(), samples=(figures,))
    assert from_json(json.loads(json.dumps(to_json(record)))) == record
    with pytest.raises(DatabaseError, match="samples"):
        from_json(to_json(replace(record, samples=((0.002, -0.002, *figures[2:]),))))


def test_20000_random_and_mutated_records() -> None:
    found = admitted(record_mutations.lines(17, 20_000))
    assert 1_000 < len(found) < 10_000  # the changes are neither all harmless nor all fatal
    for record in found:
        assert_meaningful(record)
    with open_database(":memory:") as database:
        database.add(*found)
        assert {repr(_beside_input(record)) for record in database.records()} == {repr(_beside_input(record)) for record in found}
        assert database.check() == []


def _beside_input(record: Record) -> Record:
    """Inputs of equal sizes and patterns are stored once, with the features and the name of the first."""
    return replace(record, input=replace(INPUT, extents=record.input.extents, pattern=record.input.pattern))


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(10))
def test_more_random_and_mutated_records(seed: int) -> None:
    for record in admitted(record_mutations.lines(seed, 20_000)):
        assert_meaningful(record)


def test_what_is_in_files_of_random_lines(tmp_path: Path) -> None:
    texts = [json.dumps(line, default=str)[:100_000] for line in record_mutations.lines(5, 1_000)]
    texts += [text[: len(text) // 2] for text in texts]
    (tmp_path / "random.jsonl").write_text("\n".join(texts), errors="surrogatepass")
    told: list[str] = []
    with open_database(":memory:") as database:
        _, new = import_json_lines(database, tmp_path / "random.jsonl", told.append)
        assert len(list(database.records())) <= new
    assert all(line.isprintable() for line in told)


# Tables edited by hand

WHERE = {"st_workload": "threads = 7", "st_input": "name = 'edited'", "st_environment": "length(content) < 25",
         "st_measurement": "campaign = 'edited'", "st_decision": "campaign = 'edited'"}  # fmt: skip
EDITED = {
    "st_workload": sql.WORKLOAD_COLUMNS,
    "st_input": ("name", "content"),
    "st_environment": ("content",),
    "st_measurement": ("workload", "input", "environment", *sql.MEASUREMENT_COLUMNS),
    "st_decision": ("workload", "input", "environment", *sql.DECISION_COLUMNS),
}
OWN = [
    record(workload=replace(WORKLOAD, threads=7), campaign="edited", input=replace(INPUT, pattern="other", name="edited"), environment={})
    for record in (measurement, decision)
]


def edit_and_read(url: str | Path, execute: Callable[[str, Sequence[Any]], object], edits: Sequence[tuple[str, str, Any]]) -> int:
    """Make edits of one row each in turn, with others beside it that are left alone; return how many made a record meaningless."""
    spoiled = 0
    with open_database(url) as database:
        for table, column, value in edits:
            for name in reversed(sql.TABLE_NAMES[1:]):
                execute(f"DELETE FROM {name}", ())
            database.add(measurement(), decision(), *OWN)
            execute(f"UPDATE {table} SET {column} = %s WHERE {WHERE[table]}", (value,))
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                found = list(database.records())
            problems = database.check()
            assert len(found) + len(problems) == 4, (table, column, value)
            assert len(caught) == len(problems)
            assert all(line.isprintable() for line in problems)
            assert {repr(measurement()), repr(decision())} <= {repr(record) for record in found}
            for record in found:
                assert_meaningful(record)
            spoiled += len(problems)
    return spoiled


def random_edits(seed: int, count: int, values: Sequence[Any]) -> list[tuple[str, str, Any]]:
    rng = random.Random(seed)
    tables = [(table, column) for table, columns in EDITED.items() for column in columns]
    return [(*rng.choice(tables), rng.choice(values)) for _ in range(count)]


def test_rows_edited_in_sqlite(tmp_path: Path) -> None:
    path = tmp_path / "edited.sqlite"
    values = [value for value in record_mutations.VALUES if isinstance(value, (str, float)) or (type(value) is int and abs(value) < 2**63)]
    values = [value.encode(errors="surrogateescape") if isinstance(value, str) and "\udcff" in value else value for value in values]
    values += [b"", b"\xff\xfe", b"abc", "[" * 10_000, "1" * 6_000, '{"extents": [["i0", 1e999]], "features": [], "pattern": ""}']
    values = [value for value in values if not isinstance(value, str) or value.isascii() or "\ud800" not in value]
    open_database(path).close()
    raw = sqlite3.connect(path, isolation_level=None)
    raw.execute("PRAGMA synchronous = OFF")

    def execute(statement: str, parameters: Sequence[Any]) -> None:
        with contextlib.suppress(sqlite3.IntegrityError):  # NaN is null to SQLite, which most columns do not take
            raw.execute(statement.replace("%s", "?"), parameters)

    assert edit_and_read(path, execute, random_edits(3, 400, values)) > 300
    raw.execute("UPDATE st_measurement SET message = CAST(x'ff' AS TEXT) WHERE campaign = 'edited'")
    raw.execute("DELETE FROM st_workload WHERE key <> ?", (WORKLOAD.key,))
    with open_database(path) as database:
        assert len(database.check()) == 2
        assert sum("its workload is missing" in line for line in database.check()) == 2


def test_rows_edited_in_postgresql() -> None:
    psycopg = pytest.importorskip("psycopg", reason="needs psycopg: pip install 'sparsetune[postgres]'")
    texts = [value for value in record_mutations.TEXTS if "\0" not in value and not any("\ud800" <= letter <= "\udfff" for letter in value)]
    numbers = {"seconds", "low", "high", "build_seconds", "load", "default_seconds", "speedup_low", "speedup_high"}
    others = {*numbers, "disturbed", "threads", "workload", "input", "environment"}
    edits = [edit for edit in random_edits(4, 300, texts) if edit[1] not in others]
    floats = [value for value in record_mutations.NUMBERS if isinstance(value, float) and (value == 0 or abs(value) > 1e-300)]
    edits += [edit for edit in random_edits(5, 400, floats) if edit[1] in numbers]
    edits += [("st_workload", "threads", value) for value in (0, -1, 2**31 - 1)]
    with postgres_server.installed_server() as url:
        open_database(url).close()
        with psycopg.connect(url, autocommit=True) as raw:
            raw.execute("ALTER SYSTEM SET synchronous_commit = off")
            raw.execute("SELECT pg_reload_conf()")
            assert edit_and_read(url, raw.execute, random.Random(6).sample(edits, 100)) > 50


@pytest.mark.parametrize("table", sql.TABLE_NAMES[1:])
def test_a_table_that_is_missing(tmp_path: Path, table: str) -> None:
    path = tmp_path / "lacking.sqlite"
    open_database(path).close()
    with sqlite3.connect(path) as raw:
        raw.execute(f"DROP TABLE {table}")
    for read_only in (False, True):
        with pytest.raises(DatabaseError, match=f"lacks the table {table}"):
            open_database(path, read_only)


@pytest.mark.parametrize("version", ["²", "1" * 5_000, "", "-1", "0", "abc", "\x1b[2J", b"\xff"])
def test_a_version_that_is_none(tmp_path: Path, version: object) -> None:
    path = tmp_path / "odd.sqlite"
    open_database(path).close()
    with sqlite3.connect(path) as raw:
        raw.execute("UPDATE st_meta SET value = ?", (version,))
    with pytest.raises(DatabaseError, match="upgrade sparsetune") as caught:
        open_database(path)
    assert str(caught.value).isprintable()


def test_decisions_of_a_kernel_are_not_lost_with_one_of_them(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    with open_database(path) as database:
        database.add(decision(), decision(campaign="bad", schedule="reorder(i0, i9)"), decision(campaign="worse", speedup_low=0.0))
        with pytest.warns(RuntimeWarning, match=r"decision '[0-9a-f]{16}': .*; it is ignored") as caught:
            (found,) = database.decisions()
        assert isinstance(found, Decision)
        assert found.campaign == "c1"
        assert len(caught) == 2


def test_no_record_takes_long_to_judge() -> None:
    """Work grows with the third power of the number of directives, and doubles with every factor that is a sum."""
    splits = "; ".join(f"split({'i0' if number == 0 else f'a{number}'}, b{number + 1}, a{number + 1}, 2)" for number in range(500))
    with pytest.raises(DatabaseError, match="500 directives, more than 128"):
        from_json(to_json(decision(schedule=splits)))
    kernel = "T0 = " + " * ".join(f"(T1(i{number}) + T2(i{number}))" for number in range(40))
    workload = replace(WORKLOAD, kernel=kernel, formats="dense | compressed | compressed")
    with pytest.raises(DatabaseError, match="compute it in parts"):
        from_json(to_json(decision(workload=workload, schedule="")))
