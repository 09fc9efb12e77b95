"""Campaigns of several machines on one PostgreSQL database: each for itself, and one that dies costs the others nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import postgres_server
import pytest
from mpi_runs import launcher
from sparsetune.compiler.native.toolchain import available_compilers
from sparsetune.tuner.database import open_database

pytestmark = [pytest.mark.cc, pytest.mark.slow, pytest.mark.skipif(not available_compilers(), reason="needs a C compiler")]
COMMAND = "import os, sys; os.cpu_count = lambda: {cores}; from sparsetune.tuner.cli import main; main()"
"""The command line of a machine that differs from this one by its number of cores, as far as records know."""
TRIALS = 6
SUITE = f"""
[suite]
trials = {TRIALS}
search = "quick"
threads = [1]
[[kernel]]
name = "spmv"
expression = "y(i) = A(i,j) * x(j)"
operand = "A"
order = 2
[[input]]
name = "small"
source = "random:uniform:200x100:nnz=800"
order = 2
[[input]]
name = "smaller"
source = "random:uniform:100x100:nnz=300"
order = 2
"""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres_server.installed_server() as url:
        yield url


def start(folder: Path, database: str, cores: int, *options: str) -> subprocess.Popen[str]:
    """Start the campaign of a machine, on two ranks."""
    (folder / "mine.toml").write_text(SUITE)
    words = ["suite", str(folder / "mine.toml"), "--mpi", "--json", "--db", database, *options]
    command = [launcher(), "-n", "2", sys.executable, "-c", COMMAND.format(cores=cores), *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder)


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
    assert max(after.values()) == 2 * TRIALS
    assert all(after[machine] >= count for machine, count in before.items())
    again = start(tmp_path, server, 1002, "--resume")
    _, error = again.communicate(timeout=300)
    assert again.returncode == 0, error
    assert set(trials(server).values()) == {2 * TRIALS}
    with open_database(server) as store:
        assert store.check() == []
