"""The schedule database: one contract for every kind, and trouble."""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import postgres_server
import pytest
from sparsetune.compiler.errors import DatabaseError
from sparsetune.tuner.database import Database, open_database, sql, sqlite_path, studies_folder
from sparsetune.tuner.database.server import ServerConnection
from sparsetune.tuner.records import Measurement, Status, Workload
from tuner_samples import INPUT, WORKLOAD, decision, measurement


def make_version(version: int, execute: Callable[[str], object]) -> Measurement:
    """Make tables as a version had them, with ``decision()`` and a measurement, which is returned; it may know less of it."""
    for statement in (Path(__file__).parents[1] / f"schema_{version}.sql").read_text().split(";"):
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
        _write_together(url, writers=8, transactions=250)
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


class TestSqlite(DatabaseContract):
    @pytest.fixture
    def execute(self, tmp_path: Path) -> Iterator[Callable[[str], object]]:
        (tmp_path / "folder").mkdir()
        with sqlite3.connect(tmp_path / "folder" / "schedules.sqlite", isolation_level=None) as raw:
            yield raw.execute

    @pytest.mark.parametrize("version", [1, 2])
    def test_older_tables_are_read_as_they_are(self, version: int, tmp_path: Path, execute: Callable[[str], object]) -> None:
        old = make_version(version, execute)
        with open_database(tmp_path / "folder" / "schedules.sqlite", read_only=True) as reader:
            assert list(reader.measurements()) == [old]
            assert list(reader.measurements(semiring="min,+")) == []
            assert list(reader.decisions()) == [decision()]
            assert reader.check() == []

    def test_many_bring_tables_to_this_version_at_once(self, tmp_path: Path, execute: Callable[[str], object]) -> None:
        make_version(1, execute)
        path = str(tmp_path / "folder" / "schedules.sqlite")
        program = "import sys; from sparsetune.tuner.database import open_database; open_database(sys.argv[1]).close()"
        openers = [subprocess.Popen([sys.executable, "-c", program, path]) for _ in range(4)]
        assert [opener.wait(600) for opener in openers] == [0] * 4
        with open_database(path) as database:
            assert len(list(database.records())) == 2

    @pytest.fixture
    def reopen(self, tmp_path: Path) -> Callable[[], Database]:
        return lambda: open_database(tmp_path / "folder" / "schedules.sqlite")

    def test_stamp_changes_with_records(self, database: Database) -> None:
        before = database.stamp()
        database.add(measurement())
        assert database.stamp() != before

    def test_read_only_sees_what_is_written(self, database: Database, tmp_path: Path) -> None:
        with open_database(tmp_path / "folder" / "schedules.sqlite", read_only=True) as reader:
            database.add(measurement())
            assert reader.stats()["measurements"] == 1
            with pytest.raises(DatabaseError, match="cannot write"):
                reader.add(decision())


class TestThroughSqlAlchemy(DatabaseContract):
    """The server connection, on the one engine that needs no server."""

    @pytest.fixture
    def reopen(self, tmp_path: Path) -> Callable[[], Database]:
        return lambda: Database(ServerConnection(f"sqlite:///{tmp_path}/server.sqlite"))

    @pytest.fixture
    def execute(self, tmp_path: Path) -> Iterator[Callable[[str], object]]:
        with sqlite3.connect(tmp_path / "server.sqlite", isolation_level=None) as raw:
            yield raw.execute


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    with postgres_server.installed_server() as url:
        yield url


class TestPostgres(DatabaseContract):
    @pytest.fixture
    def reopen(self, postgres: str) -> Iterator[Callable[[], Database]]:
        import psycopg

        yield lambda: open_database(postgres)
        with psycopg.connect(postgres) as connection:
            for table in reversed(sql.TABLE_NAMES):
                connection.execute(f"DROP TABLE IF EXISTS {table}")

    @pytest.fixture
    def execute(self, postgres: str, reopen: object) -> Iterator[Callable[[str], object]]:
        import psycopg

        with psycopg.connect(postgres, autocommit=True) as connection:
            yield connection.execute

    def test_many_open_a_new_one_at_once(self, postgres: str, execute: Callable[[str], object]) -> None:
        def opened(start: threading.Barrier) -> str:
            start.wait()
            with open_database(postgres) as database:
                return " ".join(database.check())

        for _ in range(10):
            for table in reversed(sql.TABLE_NAMES):
                execute(f"DROP TABLE IF EXISTS {table}")
            start = threading.Barrier(6)
            with ThreadPoolExecutor(6) as pool:
                assert list(pool.map(opened, [start] * 6)) == [""] * 6

    def test_check_names_an_index_that_is_not_valid(self, reopen: Callable[[], Database], execute: Callable[[str], object]) -> None:
        reopen().close()
        execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'st_decision_workload'::regclass")
        with reopen() as database:
            assert database.check() == ["the index st_decision_workload is not valid: REINDEX makes it anew"]

    def test_stands_beside_other_tables(self, postgres: str) -> None:
        import psycopg

        with psycopg.connect(postgres) as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS studies (name TEXT)")
        with open_database(postgres) as database:
            assert database.check() == []

    def test_unreachable_server_is_one_line_without_the_password(self) -> None:
        with pytest.raises(DatabaseError) as caught:
            open_database("postgresql://me:secret@127.0.0.1:1/name")
        assert "\n" not in str(caught.value)
        assert "secret" not in str(caught.value)


def test_in_memory() -> None:
    with open_database(":memory:") as database:
        database.add(measurement())
        assert database.stats()["measurements"] == 1


def test_newer_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "newer.sqlite"
    open_database(path).close()
    with sqlite3.connect(path) as raw:
        raw.execute("UPDATE st_meta SET value = '99' WHERE name = 'schema'")
    for read_only in (False, True):
        with pytest.raises(DatabaseError, match=r"version 99, this program knows versions up to 3; upgrade"):
            open_database(path, read_only)


def test_text_file_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("dear diary\n" * 1000)
    for read_only in (False, True):
        with pytest.raises(DatabaseError, match=r"notes\.txt is not a database") as caught:
            open_database(path, read_only)
        assert "\n" not in str(caught.value)
    assert path.read_text() == "dear diary\n" * 1000


def test_database_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    with sqlite3.connect(path) as raw:
        raw.execute("CREATE TABLE albums (title TEXT)")
    with pytest.raises(DatabaseError, match=r"a database of something else .*albums"):
        open_database(path)


def test_damage_is_told_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "damaged.sqlite"
    with open_database(path) as database:
        for number in range(200):
            database.add(measurement(message=str(number) * 50, campaign=str(number)))
    content = bytearray(path.read_bytes())
    content[4096 * 3 : 4096 * 12] = random.Random(0).randbytes(4096 * 9)
    path.write_bytes(bytes(content))

    def use() -> None:
        with open_database(path) as database:
            assert database.check()
            list(database.records())

    with pytest.raises(DatabaseError) as caught:
        use()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("url", ["mysql://host/name", "", "sqlite://"])
def test_unknown_urls(url: str) -> None:
    with pytest.raises(DatabaseError):
        open_database(url)


def test_urls() -> None:
    assert sqlite_path("sqlite:///relative.db") == "relative.db"
    assert sqlite_path("sqlite:////abs/olute.db") == "/abs/olute.db"
    assert sqlite_path("postgresql://host/name") is None
    assert studies_folder("/somewhere/s.sqlite") == Path("/somewhere/studies")
    assert studies_folder(":memory:") is None


def test_folder_in_place_of_file(tmp_path: Path) -> None:
    for read_only in (False, True):
        with pytest.raises(DatabaseError, match=r"is a folder; name a file in it as the database$"):
            open_database(tmp_path, read_only=read_only)


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


def _start_writer(path: Path) -> subprocess.Popen[str]:
    tests = str(Path(__file__).resolve().parents[1])
    return subprocess.Popen([sys.executable, "-c", _WRITER, str(path), tests], stdout=subprocess.PIPE, text=True)


def _write_together(url: str, writers: int, transactions: int) -> None:
    """Have processes write transactions of five records each at the same time."""
    program = _WRITER.replace("range(100000)", f"range(int(sys.argv[3]), int(sys.argv[3]) + {transactions})")
    tests = str(Path(__file__).resolve().parents[1])
    commands = [[sys.executable, "-c", program, url, tests, str(transactions * number)] for number in range(writers)]
    processes = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for command in commands]
    assert [process.wait(600) for process in processes] == [0] * writers


def test_killed_in_the_middle_of_writes(tmp_path: Path) -> None:
    path = tmp_path / "killed.sqlite"
    for _ in range(3):
        writer = _start_writer(path)
        assert writer.stdout is not None
        for _ in range(10):
            told = int(writer.stdout.readline())
        time.sleep(0.003)
        writer.send_signal(signal.SIGKILL)
        rest = writer.stdout.read().split("\n")
        writer.wait()
        told = max([told, *(int(line) for line in rest[:-1] if line)])
        with open_database(path) as database:
            assert database.check() == []
            complete = {record.campaign for record in database.measurements()}
            assert set(map(str, range(told + 1))) <= complete
            assert database.stats()["measurements"] % 5 == 0


def test_many_processes_at_once(tmp_path: Path) -> None:
    path = tmp_path / "shared.sqlite"
    _write_together(str(path), writers=4, transactions=20)
    with open_database(path) as database:
        assert database.stats()["measurements"] == 4 * 20 * 5
        assert database.check() == []


def test_workload_key_depends_on_every_part() -> None:
    changed = [Workload(**{**WORKLOAD.__dict__, name: 7 if name == "threads" else "x"}) for name in WORKLOAD.__dict__]
    assert len({WORKLOAD.key, *(workload.key for workload in changed)}) == 1 + len(changed)
