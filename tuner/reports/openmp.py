"""``results/openmp.md``: loops of short kernels on the team of threads (csrc/st_team.c) and on OpenMP's threads.

A kernel is compiled once; only the threads that run its pieces change between two blocks of calls.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from ...compiler.evaluate import compile_kernel
from ...compiler.frozen import frozen
from ...compiler.native.library import foreign_interface, load_source
from ...compiler.native.toolchain import default_flags, find_compiler
from ...compiler.targets.c import load_kernel
from ...datasets.generate import generate
from ..measure.finals import compare
from ..measure.order_statistics import median
from .markdown import table
from .partial import Partial
from .publishing import publish, results_option
from .records import Taken
from .states import States

THREADS, COLUMNS = 2, 16
ROWS = (100, 300, 1000, 2000, 6000, 20_000)
"""Rows of the matrices, whose products take 5 to 1000 microseconds with one thread."""

WANTED = 1.03
"""The aim: the team's time over that of OpenMP's threads is at most this."""

_PAUSE, _FIRST = 0.01, 30
"""Before each block: a pause in seconds, in which waiting threads fall asleep, and a number of calls that are not timed."""

_SETTLED = 0.2
"""Seconds of calls in turn before they are timed: by then the team knows of OpenMP's threads, which spin."""
_TURNS = 20
"""Calls in turn for each block of calls."""

_BLOCK = 2e-3
"""Seconds of a block, of 50 calls at least."""

_COMPARED = ("team", "OpenMP", "team over OpenMP", "95% interval")

_COMMAND = "python -m sparsetune.tuner.reports.openmp"
_DECLARATION = "void st_openmp_run(void);"


@frozen
class Loop(Taken):
    """Calls in a loop.

    Attributes:
        rows: how many the matrix has.
        serial, team, openmp: seconds a call: with one thread, with two of the team, with two of OpenMP; medians over blocks.
        ratio, low, high: the team's time over OpenMP's in the same rounds, with its 95% interval.
        team_in_turn, openmp_in_turn, ratio_in_turn, low_in_turn, high_in_turn: the same where one call of each follows the other's.
    """

    rows: int
    serial: float
    team: float
    openmp: float
    ratio: float
    low: float
    high: float
    team_in_turn: float
    openmp_in_turn: float
    ratio_in_turn: float
    low_in_turn: float
    high_in_turn: float


def measured(rows: int, rounds: int) -> Loop:
    """Time blocks of calls of SpMM, in a new order each round."""
    matrix = generate(f"random:uniform:{rows}x{rows}:nnz={8 * rows}", "csr")
    operands = {"A": matrix, "X": np.ones((rows, COLUMNS))}
    kernel = compile_kernel("Y(i,k) = A(i,j) * X(j,k)", {"A": "csr"}, schedule="parallelize(i, cpu_thread, no_races, static)")
    serial, parallel = (kernel.bind(**operands, threads=threads) for threads in (1, THREADS))
    library = load_kernel(kernel.source, find_compiler(None), default_flags())  # the object that the kernel has loaded
    openmp = load_source("", _DECLARATION, flags=(*default_flags(), "-fopenmp"), files=("st_openmp.c",))
    runners = {"one": library.st_team, "team": library.st_team}
    runners["openmp"] = foreign_interface("extern void *st_team;").cast("void *", openmp.st_openmp_run)
    calls = {"one": serial, "team": parallel, "openmp": parallel}
    times: dict[str, list[float]] = {name: [] for name in calls}
    order = random.Random(0)
    try:
        for _ in range(rounds):
            for name in order.sample(list(calls), len(calls)):
                library.st_team = runners[name]
                times[name].append(_block(calls[name]))
        turns = _in_turn({name: partial(setattr, library, "st_team", runners[name]) for name in ("team", "openmp")}, parallel, rounds)
    finally:
        library.st_team = runners["team"]
    apart, mixed = compare(times["team"], times["openmp"]), compare(turns["team"], turns["openmp"])
    one, team, beside = (median(times[name]) for name in calls)
    return Loop(
        rows, one, team, beside, apart.ratio, apart.low, apart.high,
        median(turns["team"]), median(turns["openmp"]), mixed.ratio, mixed.low, mixed.high,
    )  # fmt: skip


def _in_turn(switches: dict[str, Callable[[], None]], call: Callable[[], Any], rounds: int) -> dict[str, list[float]]:
    """Return the seconds of calls that alternate between runners; those of the first 0.2 s are left out."""
    times: dict[str, list[float]] = {name: [] for name in switches}
    settled = time.perf_counter() + _SETTLED
    while min(map(len, times.values())) < _TURNS * rounds:
        if time.perf_counter() < settled:
            times = {name: [] for name in switches}
        for name, switch in switches.items():
            switch()
            begin = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - begin)
    return times


def _block(call: Callable[[], Any]) -> float:
    time.sleep(_PAUSE)
    begin = time.perf_counter()
    for _ in range(_FIRST):
        call()
    count = max(50, round(_BLOCK / ((time.perf_counter() - begin) / _FIRST)))
    begin = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - begin) / count


def page(loops: list[Loop]) -> str:
    """Return the page of the figures."""
    header = ("rows", "one thread", *_COMPARED, *(f"{name} in turn" for name in _COMPARED))
    return f"""# Short calls beside OpenMP

SpMM with {COLUMNS} columns, {THREADS} threads, rows of 8 entries: microseconds per call in a loop, with the time that
Python takes. Before each block of calls all threads sleep for {1e3 * _PAUSE:.0f} ms, and its first {_FIRST} calls are not timed. Blocks
with one thread, with the team of this package and with OpenMP's threads take turns in one process; the object code is the same. Wanted: at
most {WANTED} of OpenMP's time. *In turn*: a call of the team follows each call of OpenMP, whose threads spin for some milliseconds then and
keep the team's from their cores; workers ask for shorter turns once they know that. Calls that
are over before a sleeping worker is awake gain nothing.

{States(loops).text}

{table(header, [_row(loop) for loop in loops])}

Made by `{_COMMAND}` on an idle machine, from `openmp.csv`.
"""


def _row(loop: Loop) -> list[str]:
    apart = _compared(loop.team, loop.openmp, loop.ratio, loop.low, loop.high)
    in_turn = _compared(loop.team_in_turn, loop.openmp_in_turn, loop.ratio_in_turn, loop.low_in_turn, loop.high_in_turn)
    return [str(loop.rows), f"{1e6 * loop.serial:.1f}", *apart, *in_turn]


def _compared(team: float, openmp: float, ratio: float, low: float, high: float) -> list[str]:
    return [f"{1e6 * team:.1f}", f"{1e6 * openmp:.1f}", f"{ratio:.2f}", f"{low:.2f} to {high:.2f}"]


@click.command()
@results_option
@click.option("--rounds", default=60, show_default=True, help="blocks of each kind")
def main(results: Path, rounds: int) -> None:
    """Time short kernels beside OpenMP's threads, and write results/openmp.md: about 20 seconds."""
    kept = Partial(results / "openmp.csv", Loop)
    kept.rows.clear()
    kept.add(measured(rows, rounds) for rows in ROWS)
    shown = page(kept.rows)
    publish(results / "openmp.md", shown)
    click.echo(shown)


if __name__ == "__main__":
    main()
