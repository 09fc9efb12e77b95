"""``results/company.md``: kernels with two threads beside the same kernels with one, while something disturbs them.

Each kernel runs in a process of its own, in which calls with one thread and with two take turns in random order, so that both are disturbed
alike.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from ...compiler.evaluate import compile_kernel
from ...compiler.frozen import frozen
from ...datasets.generate import generate
from ..environment import commit, describe_environment
from .disturbances import Disturbance, busy, nothing, quota, quota_works, stopped
from .markdown import table
from .publishing import publish, results_option

THREADS = 2
MEDIAN, LATE = 1.5, 3.0
"""The aim: times of calls with two threads over those with one are below these, at the median and at the 95th percentile."""

SIZES = {"0.1 ms": 1e-4, "1 ms": 1e-3, "20 ms": 20e-3}
DISTURBANCES: Mapping[str, Disturbance] = {
    "nothing": nothing,
    "three busy processes a core": busy(3),
    "a quota of one core": quota(1.0),
    "stopped 50 of every 100 ms": stopped(50, 100),
}
_COMMAND = "python -m sparsetune.tuner.reports.company"
_ROWS = 1000  # rows of the input from which the right size is estimated
_PARALLEL = "parallelize(i, cpu_thread, no_races, dynamic, 16)"


@frozen
class Times:
    """Medians and 95th percentiles of the times of calls, in seconds.

    Attributes:
        one, two: with one thread, and with two.
        at_most: ``one`` with two standard errors added, since it is known from so many calls only.
        calls: how many there were.
    """

    one: tuple[float, float]
    two: tuple[float, float]
    at_most: tuple[float, float]
    calls: int

    @property
    def ratios(self) -> tuple[float, float]:
        """Times with two threads over those with one, at both percentiles."""
        return self.two[0] / self.one[0], self.two[1] / self.one[1]

    @property
    def suffers(self) -> bool:
        """Whether two threads certainly took too long. The uncertainty of the times counts: calls either keep their core or wait for a
        long time, so chance alone may move the median of some hundred calls from one kind to the other."""
        return self.two[0] > MEDIAN * self.at_most[0] or self.two[1] > LATE * self.at_most[1]


def _spmm(rows: int) -> tuple[str, dict[str, str], dict[str, Any], str]:
    matrix = generate(f"random:uniform:{rows}x{rows}:nnz={10 * rows}", "csr")
    return "Y(i,k) = A(i,j) * X(j,k)", {"A": "csr"}, {"A": matrix, "X": np.ones((rows, 17))}, _PARALLEL


def _spgemm(rows: int) -> tuple[str, dict[str, str], dict[str, Any], str]:
    matrix = generate(f"random:uniform:{rows}x{rows}:nnz={5 * rows}", "csr")
    return "C(i,j) = A(i,k) * B(k,j)", {"A": "csr", "B": "csr", "C": "csr"}, {"A": matrix, "B": matrix}, _PARALLEL


def _mttkrp(rows: int) -> tuple[str, dict[str, str], dict[str, Any], str]:
    tensor = generate(f"random:uniform:{rows}x{rows}x{rows}:nnz={10 * rows}", "csf")
    factors = {"C": np.ones((rows, 16)), "D": np.ones((rows, 16))}
    return "A(i,r) = B(i,j,k) * C(j,r) * D(k,r)", {"B": "csf"}, {"B": tensor, **factors}, _PARALLEL


KERNELS: Mapping[str, Callable[[int], tuple[str, dict[str, str], dict[str, Any], str]]] = {
    "SpMM": _spmm,
    "SpGEMM": _spgemm,
    "MTTKRP": _mttkrp,
}


def measure(kernel: str, size: str, disturbance: Disturbance, seconds: float) -> Times:
    """Return the times of a kernel whose calls with one thread take about as long as the size says, undisturbed."""
    words = ["--calls", kernel, "--size", size, "--seconds", str(seconds), "--results", tempfile.gettempdir()]  # it writes nothing there
    command = [sys.executable, "-m", __spec__.name if __spec__ else __name__, *words]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        rows = process.stdout.readline()
        with disturbance(process.pid):
            process.stdin.write(rows)
            process.stdin.close()
            found = json.loads(process.stdout.read())
    return Times(tuple(found["one"]), tuple(found["two"]), tuple(found["at_most"]), found["calls"])


def _bound(kernel: str, rows: int, threads: int) -> Callable[[], Any]:
    expression, formats, operands, schedule = KERNELS[kernel](rows)
    return compile_kernel(expression, formats, schedule=schedule).bind(**operands, threads=threads)


def _seconds(call: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def _calls(kernel: str, size: float, seconds: float) -> None:
    """Run as the disturbed process: find an input of the right size, wait for company, and call in turns."""
    rows = _ROWS
    for _ in range(3):
        call = _bound(kernel, rows, 1)
        rows = max(20, int(rows * size / min(_seconds(call) for _ in range(5))))
    print(rows, flush=True)
    sys.stdin.read()
    time.sleep(0.2)
    one, two = _bound(kernel, rows, 1), _bound(kernel, rows, THREADS)  # binding looks at the quota
    times: dict[str, list[float]] = {"one": [], "two": []}
    for call in (one, two):
        call()
    end = time.monotonic() + seconds
    order = random.Random(0)
    while time.monotonic() < end or len(times["one"]) < 20:
        # in random order: in a fixed one, the turns of the system's scheduler might always end in the same call
        for name, call in order.sample((("one", one), ("two", two)), 2):
            times[name].append(_seconds(call))
    print(json.dumps({**_percentiles(times["one"], times["two"]), "calls": len(times["one"])}))


def _percentiles(one: Sequence[float], two: Sequence[float]) -> dict[str, list[float]]:
    wanted = np.array((50.0, 95.0))
    further = np.minimum(100, wanted + 2 * np.sqrt(wanted * (100 - wanted) / len(one)))
    found = {"one": (one, wanted), "two": (two, wanted), "at_most": (one, further)}
    return {name: np.percentile(times, places).tolist() for name, (times, places) in found.items()}


def page(rows: Sequence[Sequence[str]], environment: Mapping[str, Any], commit: str) -> str:
    """Return the page of the figures."""
    header = ("kernel", "disturbed by", "one thread", "two threads", "median", "95 of 100", "calls")
    return f"""# Threads in company

Machine: {environment["processor"]}, {environment["available_cores"]} cores; commit {commit}, {time.strftime("%Y-%m-%d")}.

Kernels with {THREADS} threads beside the same kernels with one. Calls take turns, in random order, in one process, which is disturbed
all the while. Medians are in milliseconds. The next columns are times with two threads over times with one,
which half of the calls and 95 of 100 do not exceed: the aim is below {MEDIAN} and {LATE} under each of these disturbances.

{table(header, rows)}

Made by `{_COMMAND}`.
"""


def _row(kernel: str, size: str, name: str, times: Times) -> list[str]:
    medians = [f"{1e3 * found[0]:.3g}" for found in (times.one, times.two)]
    return [f"{kernel}, {size}", name, *medians, *(f"{ratio:.2f}" for ratio in times.ratios), str(times.calls)]


@click.command()
@results_option
@click.option("--seconds", default=6.0, show_default=True, help="of each measurement")
@click.option("--kernel", "kernels", multiple=True, type=click.Choice(list(KERNELS)), help="only these, and the page is left as it is")
@click.option("--calls", hidden=True)
@click.option("--size", hidden=True)
def main(results: Path, seconds: float, kernels: tuple[str, ...], calls: str | None, size: str | None) -> None:
    """Measure kernels with two threads in company, and write results/company.md.

    One kernel takes about two minutes (--kernel SpMM: products with 17 columns), all of them six.
    """
    if calls and size:
        _calls(calls, SIZES[size], seconds)
        return
    rows = []
    for name, disturbance in DISTURBANCES.items():
        if disturbance is DISTURBANCES["a quota of one core"] and not quota_works():
            click.echo("quotas are left out: no control group can be made here", err=True)
            continue
        for kernel in kernels or KERNELS:
            for length in SIZES:
                rows.append(_row(kernel, length, name, measure(kernel, length, disturbance, seconds)))
                click.echo(" | ".join(rows[-1]))
    shown = page(rows, describe_environment({}), commit() or "unknown")
    if kernels:
        click.echo(shown)
        return
    publish(results / "company.md", shown)


if __name__ == "__main__":
    main()
