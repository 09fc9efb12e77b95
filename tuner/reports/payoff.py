"""``results/payoff.md``: the speed of the asymptotic frontier's best schedule over the default's, by dimension and density.

    python -m sparsetune.tuner.reports.payoff

After Ahrens et al., Figure 7: uniformly sparse square inputs; the dimension grows until the default takes 0.1 seconds. Times
are the least of runs in turn, of kernels alone: operands are converted before. A run that was stopped goes on with the kernels
that it has not measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from ...compiler.frozen import frozen
from ...compiler.kernel import Kernel
from ..asymptotic.model import CostClass
from ..exploration import Exploration
from .contest import KERNELS, Operands, alphabetical, compiled, different, explored, inputs, least_times, runs_of, spread
from .drawings import line_chart
from .markdown import table
from .partial import Partial, write_rows
from .publishing import publish, results_option
from .records import Taken
from .states import States

COMMAND = "python -m sparsetune.tuner.reports.payoff"
DENSITY, ENOUGH, GROWTH = 0.01, 0.1, 1.5
PARTS, DENSITIES = (0.125, 0.25, 0.5, 1.0), (0.0025, 0.005, 0.02)
"""Dimensions, as shares of the largest; densities for half the largest."""
MOST_BYTES, ENTRY = 240e6, 12
"""Most bytes of an operand of the growing inputs, at 8 a value and 4 a coordinate; making one takes several times as many."""
MOST, SECONDS = 6, 0.5
"""How many programs of one frontier are built (at least one of every cost); seconds for every point."""


@frozen
class Point(Taken):
    """One measurement: the least seconds of the default and of the best of the frontier."""

    kernel: str
    sweep: str
    dimension: int
    density: float
    default: float
    best: float
    programs: int

    @property
    def speedup(self) -> float:
        """How many times as fast the best of the frontier is as the default."""
        return self.default / self.best


def measured(kernel: str) -> list[Point]:
    """Return the points of one kernel: dimensions at density 0.01, then other densities at half the largest dimension."""
    found = explored(kernel)
    share = max(1, MOST // len(found.classes))
    chosen = [kernel for one in found.classes for kernel in spread(_kernels(found, one), share)]
    field = [*compiled(found, [alphabetical(found)]), *different(chosen)]
    largest = _grown(found, field[0])

    def point(sweep: str, dimension: int, density: float) -> Point:
        times = least_times(runs_of(field, _uniform(found, dimension, density)), SECONDS)
        best = min(range(1, len(field)), key=times.__getitem__)
        return Point(kernel, sweep, dimension, density, times[0], times[best], len(field) - 1)

    points = [point("dimension", max(16, round(largest * part)), DENSITY) for part in PARTS]
    return points + [point("density", max(16, largest // 2), density) for density in DENSITIES]


def _kernels(found: Exploration, costs: CostClass) -> list[Kernel]:
    return different(compiled(found, (found.space.spelled(member) for member in costs.schedules)))


def _uniform(found: Exploration, dimension: int, density: float) -> Operands:
    pattern = f"uniform:{{size}}:density={density}:seed={{seed}}"
    return inputs(found.formats, found.assignment.target.tensor, dimension, pattern)


def _grown(found: Exploration, default: Kernel) -> int:
    """Return the first tried dimension at which the default takes long enough."""
    dimension, order = 32, max(map(len, found.formats.values()))
    largest = int((MOST_BYTES / ENTRY / DENSITY) ** (1 / order))
    while dimension < largest:
        (seconds,) = least_times(runs_of([default], _uniform(found, dimension, DENSITY)), 0.0)
        if seconds >= ENOUGH:
            break
        dimension = round(dimension * (2.0 if seconds < ENOUGH / 20 else GROWTH))
    return min(dimension, largest)


def page(points: Sequence[Point]) -> str:
    """Return the table as Markdown."""
    header = ("kernel", "sweep", "dimension", "density", "default, ms", "best of frontier, ms", "speedup", "programs")
    rows = [
        (one.kernel, one.sweep, str(one.dimension), f"{one.density:g}", f"{1e3 * one.default:.3g}", f"{1e3 * one.best:.3g}",
         f"{one.speedup:.3g}", str(one.programs))
        for one in points
    ]  # fmt: skip
    late = [one for one in points if one.sweep == "dimension" and one.default < ENOUGH]
    largest = {one.kernel: one for one in late if one.dimension == max(other.dimension for other in points if other.kernel == one.kernel)}
    short = "".join(
        f" {name} takes {1e3 * one.default:.0f} ms there; {ENOUGH} s would need about {_bytes_needed(one) / 1e9:.1f} GB."
        for name, one in largest.items()
        if one.default < ENOUGH / GROWTH
    )
    return f"""# What the asymptotic frontier is worth

After Figure 7 of Ahrens et al., "An asymptotic cost model for autoscheduling sparse tensor programs". Inputs are square and
uniformly sparse; the largest dimension is the first tried at which the default takes {ENOUGH} s, or at which an operand takes
{MOST_BYTES / 1e6:.0f} MB.{short} The default nests its loops in alphabetical order and has no workspace (a scalar accumulates a reduction
into a sparse result); operands stored in another order are converted before. It is compiled as that program, not by `reorder`,
since the default of this compiler has workspaces already. Both sides are timed without conversions, on one thread; times are the
least of runs in turn on a shared machine, so read the speedups, not the times. The frontier is that of the paper's space (least
depth) under the exact model; of large frontiers a selection was built, some of every cost at equal distances (column programs):
the whole frontier could only do better. The best of several least times is taken, which favours the frontier slightly.

    {COMMAND}

{States(points).text}

{table(header, rows)}

Plot: `payoff.svg` (speedup over dimension, density {DENSITY}). Raw: `payoff.csv`.
"""


def _bytes_needed(point: Point) -> float:
    """Return the bytes of a matrix with which the default would take long enough, if its time is proportional to the entries."""
    return ENOUGH / point.default * DENSITY * point.dimension**2 * ENTRY


def plot(points: Sequence[Point]) -> str:
    """Return speedup over dimension, both logarithmic, one line a kernel, as SVG."""
    lines: dict[str, list[tuple[float, float]]] = {}
    for one in points:
        if one.sweep == "dimension":
            lines.setdefault(one.kernel, []).append((one.dimension, one.speedup))
    return line_chart(lines, "dimension", "speedup")


@click.command()
@click.argument("kernels", nargs=-1, type=click.Choice(list(KERNELS)))
@results_option
def main(kernels: Sequence[str], results: Path) -> None:
    """Measure KERNELS, all if none are named, and write results/payoff.md; goes on where it was interrupted."""
    kept = Partial(results / "payoff.partial.csv", Point)
    for kernel in kernels or KERNELS:
        if all(point.kernel != kernel for point in kept.rows):
            kept.add(measured(kernel))
            click.echo(f"{kernel} is measured", err=True)
    _write(kept.rows, results)
    kept.done()


def _write(points: Sequence[Point], results: Path) -> None:
    write_rows(results / "payoff.csv", points)
    publish(results / "payoff.md", page(points))
    publish(results / "payoff.svg", plot(points))


if __name__ == "__main__":
    main()
