"""Commands that are killed with signal 9 at random moments, and what they leave behind: ``python kills.py FOLDER COUNT SEED``."""

from __future__ import annotations

import fcntl
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from sparsetune.tuner.database import open_database

SHARED_MEMORY, SHARED = Path("/dev/shm"), "sparsetune-*"
ENTRY = {"kernel.c", "sha256"}
SUITE = """[suite]
trials = 4
time_budget = 2.0
search = "quick"
[[kernel]]
name = "spmv"
expression = "y(i) = A(i,j) * x(j)"
operand = "A"
order = 2
[[kernel]]
name = "doubled"
expression = "y(i) = 2 * A(i,j) * x(j)"
operand = "A"
order = 2
[[input]]
name = "uniform"
order = 2
source = "random:uniform:300x200:nnz=2000"
"""


class Victims:
    """Commands on one cache, one database and one temporary folder of their own.

    Args:
        folder: where these are made; its name tells their processes from others.
        seed: of what is killed when.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self.cache, self.database, self.temporary = folder / "cache", folder / "s.sqlite", folder / "tmp"
        self.temporary.mkdir(parents=True)
        self._suite = folder / "mine.toml"
        self._suite.write_text(SUITE)
        self._random = random.Random(seed)
        self._there = set(SHARED_MEMORY.glob(SHARED))  # files that others have left there
        self._seconds: dict[str, float] = {}
        self.environment = {
            **os.environ, "SPARSETUNE_CACHE": str(self.cache), "SPARSETUNE_DATABASE": str(self.database),
            "TMPDIR": str(self.temporary), "SPARSETUNE_THREADS": "1",
        }  # fmt: skip

    def commands(self, kind: str, seed: int) -> list[list[str]]:
        """Return the commands of a kind; campaigns of another seed must be measured anew."""
        given = ["-i", "A=random:uniform:300x200:nnz=2000", "--seed", str(seed)]
        search = [*given, "--trials", "4", "--time-budget", "2"]
        match kind:
            case "tune":
                return [["tune", "y(i) = A(i,j) * x(j)", *search]]
            case "two tunings":
                return [["tune", f"y(i) = {factor} * A(i,j) * x(j)", *search] for factor in (3, 5)]
            case "suite":
                return [["suite", str(self._suite), "--seed", str(seed), "--resume"]]
            case _:
                return [["run", "y(i,k) = A(i,j) * x(j,k)", *given, "--dim", "k=7", "--schedule", "default"]]

    def finish(self, kind: str, seed: int = 0) -> None:
        """Run commands of a kind to their end."""
        started = time.monotonic()
        for process in self._start(kind, seed):
            assert process.wait() == 0, kind
        self._seconds.setdefault(kind, time.monotonic() - started)

    def kill(self, kind: str, seed: int) -> None:
        """Start commands of a kind, with or without the objects that others have compiled, and kill them, mostly midway."""
        if self._random.random() < 0.5:
            for entries in self.cache.glob("[0-9a-f][0-9a-f]"):
                shutil.rmtree(entries)
        processes = self._start(kind, seed)
        for process in processes:
            time.sleep(self._seconds[kind] * min(max(self._random.gauss(0.5, 0.2), 0.0), 1.0) / len(processes))
            process.send_signal(signal.SIGKILL)
            process.wait()

    def _start(self, kind: str, seed: int) -> list[subprocess.Popen[bytes]]:
        program = [sys.executable, "-c", "from sparsetune.tuner.cli import main; main()"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": self.environment}
        return [subprocess.Popen([*program, *command], **quiet) for command in self.commands(kind, seed)]

    def alive(self) -> list[str]:
        """Return the command lines of processes that belong to these commands."""
        return [line for process in Path("/proc").glob("[0-9]*") if (line := self._command_line(process))]

    def _command_line(self, process: Path) -> str:
        try:
            if f"SPARSETUNE_CACHE={self.cache}\0".encode() not in (process / "environ").read_bytes():
                return ""
            return (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            return ""

    def records(self) -> int:
        if not self.database.exists():
            return 0
        with open_database(self.database) as store:
            return store.stats()["measurements"]

    def problems(self) -> list[str]:
        with open_database(self.database) as store:
            return store.check()

    def remnants(self) -> Iterator[Path]:
        """Yield files and folders that only killed commands leave behind."""
        for path in self.cache.iterdir():
            for entry in path.iterdir() if len(path.name) == 2 else ():
                names = {file.name for file in entry.iterdir()}
                if names not in (ENTRY | {"kernel.so"}, ENTRY | {"called.o"}, ENTRY | {"loader"}, ENTRY | {"interface.py"}):
                    yield entry
            if len(path.name) != 2 or not any(path.iterdir()):
                yield path
        yield from self.temporary.iterdir()
        yield from (folder for folder in set(SHARED_MEMORY.glob(SHARED)) - self._there if not is_held(folder))


def is_held(folder: Path) -> bool:
    """Whether a living process holds the lock of a folder, such as another campaign that runs meanwhile, or has just removed it."""
    try:
        opened = os.open(folder, os.O_RDONLY)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(opened)
    return not folder.exists()


KINDS = ("tune", "run", "suite", "two tunings")


def rehearse(folder: Path, count: int, seed: int, kinds: tuple[str, ...] = KINDS) -> Victims:
    """Kill commands ``count`` times. Check after each that no process and all records are left, and after good runs that no files are
    left."""
    victims, seeds = Victims(folder, seed), random.Random(seed)
    for kind in kinds:
        victims.finish(kind, 10_000)
    records = victims.records()
    for number in range(count):
        kind = kinds[number % len(kinds)]
        victims.kill(kind, seeds.randrange(1000))
        killed = time.monotonic()
        while (alive := victims.alive()) and time.monotonic() < killed + 2:
            time.sleep(0.05)
        assert not alive, f"two seconds after kill {number} of {kind} there still run {alive}"
        now = victims.records()
        assert now >= records, f"kill {number} of {kind} lost {records - now} records"
        records = now
        print(f"kill {number + 1} of {count}, {kind}: {records} records", flush=True)
    for kind in kinds:
        victims.finish(kind, 20_000)
    victims.finish("run", 20_000)  # campaigns whose time is up end compilers too; the next command removes what these leave
    assert victims.problems() == []
    left = list(victims.remnants())
    assert not left, f"there is left {left}"
    return victims


if __name__ == "__main__":
    rehearse(Path(sys.argv[1]).absolute(), int(sys.argv[2]), int(sys.argv[3]))
