"""``results/pruning.md``: whether pruning is safe. All schedules of small spaces run, to see if the fastest is on the frontier.

    python -m sparsetune.tuner.reports.pruning

Schedules with the same code are measured once, since protocols may only repeat what formats say.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from ...compiler.frozen import frozen
from ...compiler.schedule.schedule import Schedule
from ..asymptotic.taco import taco_schedules
from ..exploration import Exploration
from .contest import compiled, different, explored, inputs, least_times, runs_of, work
from .markdown import table
from .partial import Partial, write_rows
from .publishing import publish, results_option
from .records import Taken
from .states import States

COMMAND = "python -m sparsetune.tuner.reports.pruning"
NOISE = 1.1  # on a shared machine, a schedule that takes up to this many times the least time counts as equally fast
SPACES = (("SpMV2", "pigeon", 700), ("SpGEMM", "pigeon", 400), ("SpGEMM2", "pigeon-taco", 300))
"""Kernel, preset, and the dimension of its square inputs."""
PATTERNS = {
    "uniform": "uniform:{size}:density=0.01:seed={seed}",
    "power law": "zipf:{size}:density=0.01:alpha=1.5:seed={seed}",
    "banded": "banded:{size}:bandwidth=3:seed={seed}",
}
SECONDS, FEW = 5.0, 6
"""Seconds for a first race of a whole space on one pattern, and how many of the fastest, on and off the frontier, race again."""


@frozen
class Finding(Taken):
    """The fastest program on the frontier and the fastest off it: their least seconds, and how much work they do.

    ``inside_work`` and ``outside_work`` are counts of ``contest.work``.
    """

    kernel: str
    preset: str
    dimension: int
    pattern: str
    schedules: int
    programs: int
    on_frontier: int
    inside: float
    outside: float
    slowest: float
    inside_work: int
    outside_work: int

    @property
    def ratio(self) -> float:
        """The time of the frontier's best program over that of the fastest of the whole space; 1 if they are the same program."""
        return self.inside / min(self.inside, self.outside)


def measured(kernel: str, preset: str, dimension: int, patterns: Sequence[str]) -> Iterator[Finding]:
    """Yield the findings on a whole space, one for each pattern."""
    found = explored(kernel, preset)
    schedules = _whole(found, preset)
    programs = different(compiled(found, dict.fromkeys(schedules)))
    kept = {kernel.source for kernel in compiled(found, [one.schedule for one in found.frontier])}
    inside_frontier = [kernel.source in kept for kernel in programs]
    for name in patterns:
        operands = inputs(found.formats, found.assignment.target.tensor, dimension, PATTERNS[name])
        runs = runs_of(programs, operands)
        first = least_times(runs, SECONDS)
        order = sorted(range(len(runs)), key=first.__getitem__)
        fastest = [number for side in (True, False) for number in [one for one in order if inside_frontier[one] is side][:FEW]]
        again = dict(zip(fastest, least_times([runs[number] for number in fastest], SECONDS, 200), strict=True))
        times = [min(first[number], again.get(number, first[number])) for number in range(len(runs))]
        inside, outside = (
            min((one for one in fastest if inside_frontier[one] is side), key=times.__getitem__) for side in (True, False)
        )
        yield Finding(
            kernel, preset, dimension, name, len(schedules), len(programs), len(kept),
            times[inside], times[outside], max(times), work(runs[inside]), work(runs[outside]),
        )  # fmt: skip


def _whole(found: Exploration, preset: str) -> list[Schedule]:
    """Return all schedules of a space, equal ones as often as the paper counts them."""
    listed = taco_schedules(found.members) if preset == "pigeon-taco" else iter(found.members)
    return [found.space.spelled(member) for member in listed]


def page(findings: Sequence[Finding]) -> str:
    """Return the table as Markdown."""
    header = ("kernel", "pattern", "dimension", "schedules", "programs", "on the frontier", "frontier's best, ms",
              "best off it, ms", "slowest, ms", "frontier / fastest", "its work", "work off it")  # fmt: skip
    rows = [
        (f"{one.kernel} ({one.preset})", one.pattern, str(one.dimension), str(one.schedules), str(one.programs), str(one.on_frontier),
         f"{1e3 * one.inside:.3g}", f"{1e3 * one.outside:.3g}", f"{1e3 * one.slowest:.3g}", f"{one.ratio:.2f}",
         f"{one.inside_work:,}", f"{one.outside_work:,}")
        for one in findings
    ]  # fmt: skip
    shown = ", ".join(dict.fromkeys(one.kernel for one in findings))
    worse = [one for one in findings if one.ratio > NOISE]
    if worse:
        cases = ", ".join(f"{one.kernel} on {one.pattern} ({one.ratio:.2f})" for one in worse)
        verdict = (
            f"Not shown everywhere: a program off the frontier is faster by more than noise ({NOISE}) for {cases}. The counts of work"
            "\ntell how much of that is due to the program itself, and how much to the C compiler and the machine."
        )
    else:
        verdict = f"In every case the fastest program is on the frontier or within noise of one that is (ratio at most {NOISE})."
    return f"""# Whether pruning to the frontier is safe

Every schedule of some spaces ({shown}) of Ahrens et al., "An asymptotic cost model for autoscheduling sparse tensor programs",
was run on three patterns; exact workspace states, all premises. Schedules whose protocols lead to the same formats are one program.
Times are the least of runs in turn, on one thread, with operands converted before; the {FEW} fastest on and off the frontier
raced again. The machine is shared, so compare ratios and not times. "Work" is that of the fastest program on the frontier
and of the fastest off it, counted by interpreting their loops: elements loaded and stored, passes through loops, keys compared in searches.

{verdict}

    {COMMAND}

{States(findings).text}

{table(header, rows)}

Patterns: {"; ".join(f"{name} `random:{text}`" for name, text in PATTERNS.items())}. Raw: `pruning.csv`.
"""


@click.command()
@results_option
def main(results: Path) -> None:
    """Measure all spaces and write results/pruning.md; goes on where it was interrupted."""
    kept = Partial(results / "pruning.partial.csv", Finding)
    for kernel, preset, dimension in SPACES:
        done = {one.pattern for one in kept.rows if one.kernel == kernel}
        for finding in measured(kernel, preset, dimension, [name for name in PATTERNS if name not in done]):
            kept.add([finding])
            click.echo(f"{kernel}, {finding.pattern} is measured", err=True)
    write_rows(results / "pruning.csv", kept.rows)
    publish(results / "pruning.md", page(kept.rows))
    kept.done()


if __name__ == "__main__":
    main()
