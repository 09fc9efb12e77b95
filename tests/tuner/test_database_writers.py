"""Several processes that write into one database, and one that is killed while it writes."""

from __future__ import annotations

import signal
import time
from pathlib import Path

from database_contract import start_writer, write_together
from sparsetune.tuner.database import open_database


def test_killed_in_the_middle_of_writes(tmp_path: Path) -> None:
    path = tmp_path / "killed.sqlite"
    for _ in range(3):
        writer = start_writer(path)
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
    write_together(str(path), writers=4, transactions=20)
    with open_database(path) as database:
        assert database.stats()["measurements"] == 4 * 20 * 5
        assert database.check() == []
