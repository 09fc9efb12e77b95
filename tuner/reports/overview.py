"""The picture at the head of the README: untuned and tuned kernels beside other libraries on real data.

    python -m sparsetune.tuner.reports.overview

Every kernel is tuned on every real input that is at hand (the folder that ``SPARSETUNE_DATA`` names); then the tuned kernel, the
choice of the static model, SciPy and MKL run in turn on the same operands. TACO and SPLATT are no Python packages: their times over
ours are those of ``scheduling_peers.csv``, measured earlier on another machine, in turn with our kernels of that time; they are drawn
hollow. A run that was
stopped goes on with what it has not measured.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import click

from ...compiler.errors import SparsetuneError
from ...compiler.frozen import frozen
from ...compiler.native.machine import available_cores, this_machine
from ...compiler.storage.tensor import Tensor
from ..comparison import OURS, OURS_BY_DEFAULT, OURS_UNTUNED, compare_with_peers
from ..environment import commit
from ..peers import Peer, choose_peers
from ..session import tune
from ..settings import Settings
from .drawings import Dots, dot_chart
from .markdown import geometric_mean, table
from .partial import Partial, read_rows, write_rows
from .publishing import publish, results_option
from .scheduling_page import Outside, read_outside
from .workloads import KERNELS, SYNTHETIC, KernelCase, load_input, operands_of, problem_of

COMMAND = "python -m sparsetune.tuner.reports.overview"
SQUARES = ("copter2", "cage10", "bcsstk33")
SPGEMM = KernelCase("SpGEMM", "C(i,j) = A(i,k) * A(k,j)", "A", {}, "csr", SQUARES)
CASES = (*(KERNELS[name] for name in ("SpMV", "SpMM 32", "SDDMM 128")), SPGEMM,
         *(KERNELS[name] for name in ("TTV", "TTM 32", "MTTKRP 32")))  # fmt: skip
LIBRARIES = {"scipy": ("SciPy, one thread", "#e08a1e"), "mkl": ("MKL", "#3a923a")}
UNTUNED = ("sparsetune, untuned", "#4a7fb5")
OUTSIDE = {"TACO": "#c03d3e", "SPLATT": "#8a5fb0"}


@frozen
class Point:
    """One library on one input.

    Attributes:
        seconds: median of a run.
        ratio, low, high: its time over that of the tuned kernel, the median of paired rounds with its 95% interval.
        schedule: that of our kernels; empty: the default.
        load: load average when the race began.
    """

    kernel: str
    input: str
    threads: int
    library: str
    seconds: float
    ratio: float
    low: float
    high: float
    schedule: str
    load: float
    machine: str
    date: str
    commit: str


@click.command()
@results_option
@click.option("--time-budget", default=12.0, help="seconds for tuning a kernel on an input")
@click.option("--threads", type=int, default=None, help="threads of all but SciPy (default: all cores)")
@click.option("--input", "inputs", multiple=True, help="only these inputs")
@click.option("--page", "only_page", is_flag=True, help="measure nothing: page and picture of the rows that there are")
def main(results: Path, time_budget: float, threads: int | None, inputs: tuple[str, ...], only_page: bool) -> None:
    """Measure what results/overview.md and the picture of the README show, and write both; goes on where it was interrupted."""
    file = results / "overview.csv"
    if only_page:
        _write(read_rows(file, Point), results)
        return
    kept = Partial(results / "overview.partial.csv", Point)
    peers = choose_peers(tuple(LIBRARIES))
    done = {(point.kernel, point.input) for point in kept.rows}
    with tempfile.TemporaryDirectory() as folder:
        for case, name, load in _cases(inputs):
            if (case.name, name) in done or (source := load()) is None:
                continue
            try:
                points = measured(case, name, source, threads or available_cores(), time_budget, peers, Path(folder) / "tuned.db")
            except SparsetuneError as error:
                click.echo(f"{case.name}, {name}: left out: {str(error).splitlines()[0]}", err=True)
                continue
            kept.add(points)
            click.echo(f"{case.name}, {name}: " + ", ".join(f"{one.library} {one.ratio:.2f}" for one in points), err=True)
    if not kept.rows:
        raise click.ClickException("no input is here: SPARSETUNE_DATA names their folder")
    write_rows(file, kept.rows)
    _write(kept.rows, results)
    kept.done()


def _cases(inputs: Sequence[str]) -> Iterator[tuple[KernelCase, str, Callable[[], Tensor | None]]]:
    """Yield kernels and names of real inputs, with a function that loads the input."""
    for case in CASES:
        for name in case.inputs:
            if name not in SYNTHETIC and (not inputs or name in inputs):
                yield case, name, lambda name=name: load_input(name)


def measured(
    case: KernelCase, name: str, source: Tensor, threads: int, time_budget: float, peers: Sequence[Peer], database: Path
) -> list[Point]:
    """Tune a kernel on an input, then run it in turn with everything that it is compared with."""
    operands = operands_of(case, source)
    best = tune(case.expression, operands, case.result, time_budget=time_budget, threads=threads, database=database).best
    load = os.getloadavg()[0]
    found = compare_with_peers(problem_of(case, operands, name, threads), best, peers, Settings())
    if found.wrong:
        raise SparsetuneError(f"{case.name} on {name}: {', '.join(found.wrong)} and ours disagree")
    state = (str(best), load, this_machine().model, time.strftime("%Y-%m-%d"), commit())
    ratios = {OURS: (1.0, 1.0, 1.0), **found.ratios}
    return [Point(case.name, name, threads, library, seconds, *ratios[library], *state) for library, seconds in found.times.items()]


def ratios_of(points: Sequence[Point], library: str) -> dict[str, list[float]]:
    """Return the times of a library over those of the tuned kernels, by kernel."""
    found: dict[str, list[float]] = {}
    for point in points:
        if point.library == library:
            found.setdefault(point.kernel, []).append(point.ratio)
    return found


def untuned(points: Sequence[Point]) -> list[Point]:
    """Return the points of untuned kernels: the static model's choice, else the default."""
    chosen = {(point.kernel, point.input) for point in points if point.library == OURS_UNTUNED}
    return [
        point for point in points
        if point.library == OURS_UNTUNED or (point.library == OURS_BY_DEFAULT and (point.kernel, point.input) not in chosen)
    ]  # fmt: skip


def outside_ratios(outside: Sequence[Outside], points: Sequence[Point], peer: str) -> dict[str, list[float]]:
    """Return the times of a program that ran on another machine over those of our kernels there, by kernel, for the inputs and threads of
    the points."""
    asked = {(point.kernel, point.input, point.threads) for point in points}
    found: dict[str, list[float]] = {}
    for one in outside:
        if one.peer == peer and (one.kernel, one.input, one.threads) in asked:
            found.setdefault(one.kernel, []).append(one.peer_ms / one.ours_ms)
    return found


def picture(points: Sequence[Point], outside: Sequence[Outside]) -> str:
    """Return the picture as SVG."""
    label, color = UNTUNED
    series = [Dots(label, color, _by_kernel(untuned(points)))]
    series += [Dots(label, color, ratios_of(points, name)) for name, (label, color) in LIBRARIES.items()]
    series += [Dots(f"{peer}, measured elsewhere", color, outside_ratios(outside, points, peer), True) for peer, color in OUTSIDE.items()]
    first = points[0]
    kernels = list(dict.fromkeys(point.kernel for point in points))
    title = f"A dot is a real matrix or tensor, a bar their geometric mean.\n{first.machine}, {_threads(first)}, {first.date}."
    return dot_chart(kernels, series, "time over that of the tuned kernel (right of 1: the tuned kernel is faster)", title)


def _threads(point: Point) -> str:
    return f"{point.threads} thread{'s' if point.threads > 1 else ''}"


def _by_kernel(points: Sequence[Point]) -> dict[str, list[float]]:
    return {kernel: [one.ratio for one in points if one.kernel == kernel] for kernel in dict.fromkeys(one.kernel for one in points)}


def page(points: Sequence[Point], outside: Sequence[Outside]) -> str:
    """Return the page of the picture."""
    first = points[0]
    states = sorted({(one.machine, one.date, one.commit) for one in points})
    loads = [one.load for one in points]
    means = []
    for kernel in dict.fromkeys(point.kernel for point in points):
        own = [point for point in points if point.kernel == kernel]
        columns = [_by_kernel(untuned(own)), *(ratios_of(own, name) for name in LIBRARIES)]
        columns += [outside_ratios(outside, own, peer) for peer in OUTSIDE]
        means.append((kernel, str(len({point.input for point in own})), *(_mean(column.get(kernel, [])) for column in columns)))
    header = ("kernel", "inputs", "untuned", "SciPy", "MKL", *(f"{peer} (elsewhere)" for peer in OUTSIDE))
    rows = [
        (one.kernel, one.input, one.library, f"{1e3 * one.seconds:.3g}", f"{one.ratio:.2f} [{one.low:.2f}, {one.high:.2f}]",
         f"`{one.schedule}`" if one.library == OURS and one.schedule else "")
        for one in points
    ]  # fmt: skip
    return f"""# Tuned and untuned beside other libraries, on real data

{"; ".join(f"{machine}, {date}, commit {code}" for machine, date, code in states)}. {_threads(first)}, SciPy one (it has no more).
Load average when the races began: {min(loads):.1f} to {max(loads):.1f}.

float64 values, int32 coordinates. Each kernel was tuned on each input, with an empty database; then the tuned kernel, the default
schedule, what the static model chooses without measuring, SciPy and MKL ran in turn on the same operands, after their results had been
compared. Ratios are times over that of the tuned kernel, medians of paired rounds with a 95% interval: above 1 the tuned kernel is
faster. Of MKL only its products of a sparse and a dense operand ran. TACO and SPLATT were not part of this run: their columns are
the ratios of `scheduling_peers.csv` ([what schedules are worth](scheduling.md)) for the same inputs and threads, taken in turn with
our kernels of that time on an AMD EPYC (Zen 5).

    {COMMAND}

![the picture](overview.svg)

Geometric means, with the least in brackets:

{table(header, means)}

Every row; raw: `overview.csv`.

{table(("kernel", "input", "library", "median, ms", "times the tuned kernel's", "schedule"), rows)}
"""


def _mean(values: Sequence[float]) -> str:
    return f"{geometric_mean(values):.2f} ({min(values):.2f})" if values else ""


def _write(points: Sequence[Point], results: Path) -> None:
    outside = read_outside(results / "scheduling_peers.csv")
    publish(results / "overview.md", page(points, outside))
    publish(results / "overview.svg", picture(points, outside))
    click.echo(f"wrote {results / 'overview.md'} and {results / 'overview.svg'}", err=True)


if __name__ == "__main__":
    main()
