"""The schedule database: one contract for every kind, and trouble."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import postgres_server
import pytest
from database_contract import DatabaseContract, make_version
from sparsetune.compiler.errors import DatabaseError
from sparsetune.tuner.database import Database, open_database, sql, sqlite_path, studies_folder
from sparsetune.tuner.database.server import ServerConnection
from sparsetune.tuner.records import Workload
from tuner_samples import WORKLOAD, decision, measurement


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


def test_workload_key_depends_on_every_part() -> None:
    changed = [Workload(**{**WORKLOAD.__dict__, name: 7 if name == "threads" else "x"}) for name in WORKLOAD.__dict__]
    assert len({WORKLOAD.key, *(workload.key for workload in changed)}) == 1 + len(changed)
