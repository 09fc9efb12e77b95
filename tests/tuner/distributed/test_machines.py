"""Campaigns of several machines on one PostgreSQL database: each for itself, and one that dies costs the others nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import mpi_campaigns
import postgres_server
import pytest
from sparsetune.compiler.native.toolchain import available_compilers
from sparsetune.tuner.database import open_database

pytestmark = [pytest.mark.cc, pytest.mark.slow, pytest.mark.skipif(not available_compilers(), reason="needs a C compiler")]
TRIALS, INPUTS = 6, ("200x100", "100x100")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres_server.installed_server() as url:
        yield url


def start(folder: Path, database: str, cores: int, *options: str) -> subprocess.Popen[str]:
    """Start the campaign of a machine, on two ranks."""
    return mpi_campaigns.start(folder, database, TRIALS, *options, ranks=2, inputs=INPUTS, cores=cores)


def trials(database: str) -> dict[str, int]:
    """Return how many candidates each machine has measured."""
    with open_database(database) as store:
        machines = [found.workload.machine for found in store.measurements() if found.role != "final"]
    return {machine: machines.count(machine) for machine in machines}


def test_a_machine_that_dies_costs_the_others_nothing(server: str, tmp_path: Path) -> None:
    first, second = (start(tmp_path, server, cores) for cores in (1001, 1002))
    while len(trials(server)) < 2 and first.poll() is None and second.poll() is None:
        time.sleep(0.1)
    before = trials(server)
    os.kill(second.pid, signal.SIGKILL)
    _, error = first.communicate(timeout=300)
    assert first.returncode == 0, error
    second.communicate(timeout=60)
    after = trials(server)
    assert len(before) == len(after) == 2
    assert max(after.values()) == len(INPUTS) * TRIALS
    assert all(after[machine] >= count for machine, count in before.items())
    again = start(tmp_path, server, 1002, "--resume")
    _, error = again.communicate(timeout=300)
    assert again.returncode == 0, error
    assert set(trials(server).values()) == {len(INPUTS) * TRIALS}
    with open_database(server) as store:
        assert store.check() == []
