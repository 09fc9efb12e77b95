"""What every kind of schedule database does."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sparsetune.tuner.database import Database
from sparsetune.tuner.records import Measurement, Status
from tuner_samples import INPUT, WORKLOAD, decision, measurement


def make_version(version: int, execute: Callable[[str], object]) -> Measurement:
    """Make tables as a version had them, with ``decision()`` and a measurement, which is returned; it may know less of it."""
    for statement in (Path(__file__).parent / f"schema_{version}.sql").read_text().split(";"):
        if statement.strip():
            execute(statement)
    return measurement(samples=((0.002,), (0.0021,)), policy={}) if version == 1 else measurement()


class DatabaseContract:
    """What every kind of database does; a subclass has fixtures ``reopen``, which opens one, and opens it again, and ``execute``, which
    runs SQL in it."""

    @pytest.fixture
    def database(self, reopen: Callable[[], Database]) -> Iterator[Database]:
        with reopen() as database:
            yield database

    def test_new_is_empty_and_sound(self, database: Database) -> None:
        assert list(database.records()) == []
        assert database.check() == []
        assert set(database.stats().values()) == {0}

    def test_records_come_back_equal(self, reopen: Callable[[], Database]) -> None:
        failed = measurement(status=Status.CRASH, seconds=None, samples=(), message="signal 11", load=None, build_seconds=None)
        with reopen() as database:
            database.add(measurement(), failed, decision())
        with reopen() as database:
            assert set(map(repr, database.measurements())) == {repr(measurement()), repr(failed)}
            assert [repr(record) for record in database.decisions()] == [repr(decision())]

    def test_adding_twice_changes_nothing(self, database: Database) -> None:
        assert [database.add(measurement(), decision()) for _ in range(2)] == [2, 0]
        assert [database.stats()[name] for name in ("records", "measurements", "decisions")] == [2, 1, 1]
        assert len(list(database.records())) == 2

    def test_filters(self, database: Database) -> None:
        other = replace(WORKLOAD, machine="other", threads=1)
        database.add(measurement(), measurement(workload=other), measurement(campaign="c2", status=Status.WRONG, seconds=None))
        assert len(list(database.measurements(machine="abcd"))) == 2
        assert len(list(database.measurements(threads=1))) == 1
        assert len(list(database.measurements(workload=WORKLOAD.key, input=INPUT.key, campaign="c2"))) == 1
        assert [found.status for found in database.measurements(status="wrong")] == [Status.WRONG]

    def test_oldest_first(self, database: Database) -> None:
        times = [f"2026-01-0{day}T00:00:00.000+00:00" for day in (3, 1, 2)]
        database.add(*(decision(created=created) for created in times))
        assert [found.created for found in database.decisions()] == sorted(times)

    def test_stats(self, database: Database) -> None:
        database.add(measurement(), measurement(workload=replace(WORKLOAD, machine="m2", kernel="a = b"), status=Status.TIMEOUT))
        assert database.stats() == {"records": 2, "measurements": 2, "decisions": 0, "kernels": 2, "machines": 2, "inputs": 1, "failed": 1}

    def test_check_names_what_is_damaged(self, reopen: Callable[[], Database], execute: Callable[[str], object]) -> None:
        with reopen() as database:
            database.add(measurement(), measurement(campaign="c2"), decision())
        execute("UPDATE st_measurement SET samples = '{' WHERE campaign = 'c2'")
        execute("UPDATE st_decision SET schedule = 'no_such_directive(i0)'")
        with reopen() as database:
            first, second = database.check()
            assert first.startswith(f"measurement '{measurement(campaign='c2').key}': samples is ")
            assert second.startswith(f"decision '{decision().key}': schedule: ")
        execute("ALTER TABLE st_decision DROP COLUMN flags")
        with reopen() as database:
            assert [line.split(":")[0] for line in database.check()] == [f"measurement '{measurement(campaign='c2').key}'", "decisions"]

    @pytest.mark.nightly
    def test_eight_writers_with_ten_thousand_records(self, reopen: Callable[[], Database]) -> None:
        with reopen() as database:
            url = database.url
        write_together(url, writers=8, transactions=250)
        with reopen() as database:
            assert database.stats()["measurements"] == 10_000
            assert database.check() == []

    def test_any_text_survives(self, database: Database) -> None:
        text = "it's \"quoted\"; :name %s \\ \n \x7f é 漢"
        database.add(measurement(message=text, input=replace(INPUT, name=text)))
        found = next(database.measurements())
        assert (found.message, found.input.name) == (text, text)

    def test_text_that_no_database_holds_is_written_without_it(self, database: Database) -> None:
        database.add(measurement(message="a\0b\udcffc"))
        assert next(database.measurements()).message == "a?b?c"


    @pytest.mark.parametrize("version", [1, 2])
    def test_older_tables_are_brought_to_this_version(
        self, version: int, reopen: Callable[[], Database], execute: Callable[[str], object]
    ) -> None:
        old, new = make_version(version, execute), measurement(workload=replace(WORKLOAD, semiring="min,+"), campaign="c2")
        with reopen() as database:
            assert list(database.measurements()) == [old]
            assert list(database.decisions()) == [decision()]
            database.add(old, decision(), new)
            assert (database.stats()["measurements"], database.stats()["decisions"]) == (2, 1), "old records have the keys that they had"
        with reopen() as database:
            assert list(database.measurements(schedule=old.schedule, input=INPUT.key)) in ([old, new], [new, old])
            assert list(database.measurements(semiring="+,*")) == [old]
            assert list(database.measurements(semiring="min,+")) == [new]
            assert database.check() == []


_WRITER = """
import sys
from dataclasses import replace
from sparsetune.tuner.database import open_database
sys.path.insert(0, sys.argv[2])
from tuner_samples import measurement
with open_database(sys.argv[1]) as database:
    for number in range(100000):
        database.add(*(measurement(campaign=f"{number}", message=f"{part} of 5") for part in range(5)))
        print(number, flush=True)
"""


def start_writer(path: Path) -> subprocess.Popen[str]:
    tests = str(Path(__file__).resolve().parent)
    return subprocess.Popen([sys.executable, "-c", _WRITER, str(path), tests], stdout=subprocess.PIPE, text=True)


def write_together(url: str, writers: int, transactions: int) -> None:
    """Have processes write transactions of five records each at the same time."""
    program = _WRITER.replace("range(100000)", f"range(int(sys.argv[3]), int(sys.argv[3]) + {transactions})")
    tests = str(Path(__file__).resolve().parent)
    commands = [[sys.executable, "-c", program, url, tests, str(transactions * number)] for number in range(writers)]
    processes = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for command in commands]
    assert [process.wait(600) for process in processes] == [0] * writers
