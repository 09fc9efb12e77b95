"""``results/choices.md``: what ``tune`` chooses while other processes come and go, and how fast that is once they are gone.

Each problem is tuned several times on the quiet machine and several times in company, with a new seed each time. Then all chosen schedules
run in turn on the quiet machine, since times that were taken in company say nothing, and in several processes, since the place of data in
memory makes a schedule some percent faster or slower than another.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path

import click

from ...compiler.frozen import frozen
from ...datasets.generate import generate
from ..problem import Problem
from ..session import tune
from .disturbances import coming_and_going
from .markdown import geometric_mean, table
from .partial import Partial
from .publishing import publish, results_option
from .race import Pace
from .races_apart import raced_apart
from .records import Taken
from .states import States
from .workloads import KernelCase, operands_of, problem_of

KEPT_MEAN, KEPT_LEAST = 0.95, 0.85
"""The aim: the share of the quiet choice's speed that choices in company keep, by geometric mean and each of them."""

AGREE, AGREEING = 1.05, 0.9
"""The aim: two choices of the quiet machine differ by less than this factor, in this share of all pairs."""

_COMMAND = "python -m sparsetune.tuner.reports.choices"
_THREADS = 2
_PACE = Pace(seconds=8.0, fewest=15)  # of each process: some 40 rounds
_PROCESSES = 9


@frozen
class Case:
    """A kernel and the input that it is tuned on (a generator's text) in a format."""

    kernel: KernelCase
    source: str
    format: str


def _case(name: str, expression: str, source: str, format: str, dims: Mapping[str, int], result: str | None = None) -> Case:
    sparse = "A" if expression.count("A(") else "T"
    return Case(KernelCase(name, expression, sparse, dims, result, ()), source, format)


CASES: Mapping[str, Case] = {
    case.kernel.name: case
    for case in (
        _case("SpMV", "y(i) = A(i,j) * x(j)", "random:uniform:300000x300000:nnz=3e6", "csr", {}),
        _case("SpMM 32", "Y(i,k) = A(i,j) * X(j,k)", "random:rmat:scale=15:nnz=6e5", "csr", {"k": 32}),
        _case("SpMM 32, by columns", "Y(i,k) = A(i,j) * X(j,k)", "random:uniform:20000x20000:nnz=4e5", "csc", {"k": 32}),
        _case("SDDMM 64", "S(i,j) = A(i,j) * U(i,k) * V(j,k)", "random:rmat:scale=14:nnz=3e5", "csr", {"k": 64}, "csr"),
        _case("MTTKRP 32", "M(j,r) = T(i,j,k) * B(i,r) * C(k,r)", "random:zipf:4000x3000x6000:nnz=4e5", "csf", {"r": 32}),
    )
}  # fmt: skip


@frozen
class Choice(Taken):
    """The choice of one campaign, and its times.

    Attributes:
        company: the share of the time that other processes kept the cores busy.
        number: of the campaign; also its seed.
        campaign: seconds that it took.
        seconds, default: times of the choice and of the default schedule on the quiet machine, medians of all processes.
        against, low, high: the time of the first quiet choice over that of this one: median of all processes, and its 95% interval.
    """

    kernel: str
    company: float
    number: int
    schedule: str
    campaign: float
    seconds: float
    default: float
    against: float
    low: float
    high: float


def choose(problem: Problem, seed: int, company: float, seconds: float, trials: int, folder: Path) -> tuple[str, float]:
    """Return the schedule that a campaign of so many seconds or trials chooses, and the seconds that it took."""
    begin = time.monotonic()
    with coming_and_going(company, seed):
        found = tune(
            problem.expression, dict(problem.operands), str(problem.formats[problem.assignment.target.tensor]),
            trials=trials, time_budget=seconds, threads=problem.threads, seed=seed, verbose=False,
            database=folder / f"{seed}-{company}.sqlite",
        )  # fmt: skip
    return str(found.best), time.monotonic() - begin


Chosen = Mapping[tuple[float, int], tuple[str, float]]
"""By share of company and number of the campaign: the schedule that it chose, and the seconds that it took."""


def _problem(case: Case) -> Problem:
    return problem_of(case.kernel, operands_of(case.kernel, generate(case.source, case.format)), case.kernel.name, _THREADS)


def measured(name: str, seconds: float, trials: int, quiet: int, disturbed: int) -> list[Choice]:
    """Tune a case ``quiet`` times on the quiet machine and ``disturbed`` times in company, and race the choices."""
    problem, chosen = _problem(CASES[name]), dict[tuple[float, int], tuple[str, float]]()
    with tempfile.TemporaryDirectory(prefix="sparsetune-choices-") as folder:
        for company, count in ((0.0, quiet), (0.5, disturbed)):
            for number in range(count):
                chosen[company, number] = choose(problem, number, company, seconds, trials, Path(folder))
                click.echo(f"{name}, {'in company' if company else 'quiet'}, {number + 1}: {chosen[company, number]}", err=True)
    return raced(name, chosen)


def raced(name: str, chosen: Chosen) -> list[Choice]:
    """Run the chosen schedules in turn, in several processes."""
    texts = dict.fromkeys(["", *(schedule for schedule, _ in chosen.values())])
    races = raced_apart(partial(_problem, CASES[name]), list(texts), _PACE, _PROCESSES)
    first, _ = chosen[0.0, 0]

    def choice(company: float, number: int, schedule: str, took: float) -> Choice:
        found = races.over(first, schedule)
        seconds, default = races.median(schedule), races.median("")
        return Choice(name, company, number, schedule, round(took, 1), seconds, default, found.ratio, found.low, found.high)

    return [choice(*campaign, *outcome) for campaign, outcome in chosen.items()]


def raced_again(choices: Sequence[Choice]) -> list[Choice]:
    """Return choices that were made before, with the times of a new race."""
    found: list[Choice] = []
    for name in dict.fromkeys(choice.kernel for choice in choices):
        chosen = {(one.company, one.number): (one.schedule, one.campaign) for one in choices if one.kernel == name}
        found += raced(name, chosen)
    return found


def agreeing(choices: Sequence[Choice]) -> tuple[int, int]:
    """Return how many pairs of quiet choices differ by less than ``AGREE``, and how many pairs there are: each campaign with the next
    one of the same kernel."""
    pairs = [
        (one, other)
        for one, other in pairwise(choices)
        if one.kernel == other.kernel and not one.company and not other.company
    ]
    return sum(max(one.against / other.against, other.against / one.against) < AGREE for one, other in pairs), len(pairs)


def page(choices: Sequence[Choice]) -> str:
    """Return the page of the figures."""
    disturbed = [choice.against for choice in choices if choice.company]
    kept = f"{geometric_mean(disturbed):.3f} of {len(disturbed)}, at least {min(disturbed, default=math.nan):.3f}"
    same, pairs = agreeing(choices)
    header = ("kernel", "input", "quiet choice over default", "further quiet choices", "campaigns in company", "kept, mean", "kept, least",
              "campaign, s")
    return f"""# Choices in company

Each kernel was tuned with {_THREADS} threads on the quiet machine and while one process per core ran and paused, about half
of the time; every campaign had its own seed and database. Then all choices ran in turn on the quiet machine, into the same memory where
the result is dense, in {_PROCESSES} processes that took turns, round by round, since places in memory differ by some percent. What
converts operands does so in every call, as it counted when it was chosen. All ratios are medians of the processes. "Kept" is the time of
the first quiet choice over that of a choice made in company: by geometric mean {kept}
(wanted: {KEPT_MEAN} and {KEPT_LEAST}). "Further quiet choices" has the same of the quiet choices after the first, with its 95%
interval. Of {pairs} pairs of campaigns in a row on the quiet machine {same} differ by less than {AGREE - 1:.0%} (wanted:
{AGREEING:.0%} of them).

{States(choices).text}

{table(header, [_row(name, choices) for name in CASES if any(choice.kernel == name for choice in choices)])}

Made by `{_COMMAND}` from `choices.csv`, which has the schedules; `--race` races these again.
"""


def _row(name: str, choices: Sequence[Choice]) -> list[str]:
    mine = [choice for choice in choices if choice.kernel == name]
    disturbed = [choice for choice in mine if choice.company]
    kept = [choice.against for choice in disturbed]
    gain = mine[0].default / mine[0].seconds
    length = sorted(choice.campaign for choice in disturbed)[len(disturbed) // 2]
    source = f"{CASES[name].source}, {CASES[name].format}"
    further = ", ".join(f"{one.against:.3f} ({one.low:.3f} to {one.high:.3f})" for one in mine if not one.company and one.number)
    return [name, source, f"{gain:.2f}", further, str(len(kept)), f"{geometric_mean(kept):.3f}", f"{min(kept):.3f}", f"{length:.0f}"]


@click.command()
@results_option
@click.option("--seconds", default=40.0, show_default=True, help="of each campaign")
@click.option("--trials", default=200, show_default=True, help="of each campaign at most, where it has the time")
@click.option("--quiet", type=click.IntRange(1), default=3, show_default=True, help="campaigns on the quiet machine, of each kernel")
@click.option("--disturbed", type=click.IntRange(1), default=4, show_default=True, help="campaigns in company, of each kernel")
@click.option("--kernel", "kernels", multiple=True, type=click.Choice(list(CASES)), help="only these, anew; the rows of others stay")
@click.option("--race", "again", is_flag=True, help="tune nothing, but race what choices.csv has anew, on the quiet machine")
def main(results: Path, seconds: float, trials: int, quiet: int, disturbed: int, kernels: tuple[str, ...], again: bool) -> None:
    """Tune in company and without, and write results/choices.md.

    About five minutes a kernel; kernels that choices.csv has already are measured again only where they are named.
    """
    kept = Partial(results / "choices.csv", Choice)
    if again:
        made = raced_again(kept.rows)
        kept.rows.clear()
        kept.add(made)
    for name in () if again else kernels or CASES:
        if name in kernels or all(choice.kernel != name for choice in kept.rows):
            made = measured(name, seconds, trials, quiet, disturbed)
            kept.rows = [choice for choice in kept.rows if choice.kernel != name]
            kept.add(made)
    shown = page(kept.rows)
    publish(results / "choices.md", shown)
    click.echo(shown)


if __name__ == "__main__":
    main()
