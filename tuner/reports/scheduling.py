"""Makes the figures of the scheduling language: ``python -m sparsetune.tuner.reports.scheduling --help``."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable
from pathlib import Path

import click

from ...compiler.errors import DataError
from ...compiler.frozen import frozen
from .publishing import publish, results_option
from .race import Pace
from .records import Races, Row, read_chosen
from .rule_cases import RULE_CASES
from .rule_loss import rule_losses
from .rule_records import read_losses, write_losses
from .schedule_races import SKEW_SCHEDULES, SKEWED, SKEWS, SPMSPV_INPUTS, skew_race, spmspv_race
from .scheduling_page import Figures, page, read_outside
from .skew_section import imbalance_chart
from .workloads import KERNELS, load_input
from .yardstick import FUNCTIONS, hand_library, hand_race

PARTS = ("rules", "skew", "spmspv", "hand", "page")


@frozen
class Plan:
    """The options of a run: the folder of its files, its times, and whether rows that exist are measured again."""

    folder: Path
    seconds: float
    rule_seconds: float
    fresh: bool
    kernels: tuple[str, ...]
    inputs: tuple[str, ...]
    hand: Path | None

    @property
    def pace(self) -> Pace:
        return Pace(self.seconds)

    def wants(self, kernel: str, name: str = "") -> bool:
        """Return whether a kernel, and an input if it is named, is to be measured."""
        return (not self.kernels or kernel in self.kernels) and (not name or not self.inputs or name in self.inputs)

    def file(self, name: str) -> Path:
        """Return the path of a file of the results."""
        return self.folder / name


@click.command()
@click.option("--only", multiple=True, type=click.Choice(PARTS), help="make only these (default: all; hand with --hand)")
@click.option("--kernel", "kernels", multiple=True, type=click.Choice([*RULE_CASES, *KERNELS]), help="only these kernels")
@click.option("--input", "inputs", multiple=True, help="only these inputs")
@click.option("--hand", type=click.Path(path_type=Path, file_okay=False), help="folder with hand-written kernels in kernels.c")
@results_option
@click.option("--seconds", default=3.0, help="length of a race")
@click.option("--rule-seconds", default=50.0, help="seconds in which templates of one kernel are tried")
@click.option("--fresh", is_flag=True, help="measure again what the files have already")
def main(
    only: tuple[str, ...], kernels: tuple[str, ...], inputs: tuple[str, ...], hand: Path | None, results: Path, seconds: float,
    rule_seconds: float, fresh: bool,
) -> None:  # fmt: skip
    """Measure what results/scheduling.md shows, and write it. What results/scheduling*.csv have already is kept, unless --fresh."""
    plan = Plan(results, seconds, rule_seconds, fresh, kernels, inputs, hand)
    makers: dict[str, Callable[[Plan], int]] = {"rules": _rules, "skew": _skew, "spmspv": _spmspv, "hand": _hand}
    try:
        for part, make in makers.items():
            if part in only or (not only and (part != "hand" or hand is not None)):
                click.echo(f"{part} ...", err=True)
                if not make(plan):
                    click.echo(f"{part}: nothing to do: {_why_nothing(plan)}", err=True)
        _write_page(plan)
        click.echo(f"wrote {plan.file('scheduling.md')}", err=True)
    except DataError as error:
        raise click.ClickException(str(error)) from error


def _why_nothing(plan: Plan) -> str:
    if plan.kernels or plan.inputs:
        return "it has no such kernel or input, or the files have it already (--fresh measures again)"
    return "the files have everything (--fresh measures again), or its inputs are missing (SPARSETUNE_DATA)"


def _rules(plan: Plan) -> int:
    """Measure what rules on templates cost; return how many kernels were measured."""
    done = 0
    path = plan.file("scheduling_rules.csv")
    found = read_losses(path)
    for kernel in RULE_CASES:
        if plan.wants(kernel) and (plan.fresh or not any(loss.kernel == kernel for loss in found)):
            made = rule_losses(kernel, plan.rule_seconds, plan.pace)
            found = [loss for loss in found if loss.kernel != kernel] + made
            write_losses(path, found)
            done += 1
            worst = max(made, key=lambda loss: loss.loss)
            click.echo(f"{kernel}: {len(made)} losses, the largest {worst.loss:.0%} ({worst.rule}, {worst.switched})", err=True)
    return done


def _skew(plan: Plan) -> int:
    """Race schedules on skewed rows; return how many races there were."""
    done = 0
    for kernel in SKEW_SCHEDULES:
        for rows, skew in itertools.product(SKEWED[kernel], SKEWS):
            if plan.wants(kernel) and _missing(plan, "skew", kernel, rows.format(skew)):
                _keep(plan, skew_race(kernel, rows, skew, plan.pace))
                done += 1
    return done


def _spmspv(plan: Plan) -> int:
    """Race products with sparse vectors; return how many races there were."""
    done = 0
    for sparse_result in (False, True):
        for name in SPMSPV_INPUTS:
            kernel = "SpMSpV, sparse result" if sparse_result else "SpMSpV"
            if plan.wants("SpMSpV", name) and _missing(plan, "spmspv", kernel, name):
                _keep(plan, spmspv_race(name, sparse_result, plan.pace))
                done += 1
    return done


def _hand(plan: Plan) -> int:
    """Race against hand-written kernels; return how many races there were."""
    done = 0
    if plan.hand is None:
        raise DataError("--only hand needs --hand FOLDER, the folder with the hand-written kernels")
    library, chosen = hand_library(plan.hand), read_chosen(plan.file("performance_schedules.csv"))
    cases = [KERNELS[name] for name in FUNCTIONS if plan.wants(name)]
    for name in dict.fromkeys(name for case in cases for name in case.inputs):
        wanted = [case for case in cases if name in case.inputs and plan.wants(case.name, name)]
        wanted = [case for case in wanted if plan.fresh or not _has(plan.file("performance_hand.csv"), ("hand", case.name, name))]
        source = load_input(name) if wanted else None
        if source is not None:
            for case in wanted:
                _keep(plan, hand_race(library, case, name, source, chosen, plan.pace), "performance_hand.csv")
                done += 1
    return done


def _missing(plan: Plan, *race: str) -> bool:
    return plan.fresh or not _has(plan.file("scheduling.csv"), race)


def _has(path: Path, race: tuple[str, ...]) -> bool:
    return any(row.race == race for row in Races.read(path).rows.values())


def _keep(plan: Plan, rows: Iterable[Row], name: str = "scheduling.csv") -> None:
    """Add a race to a file at once, so that an interrupted run loses nothing."""
    found, path = list(rows), plan.file(name)
    races = Races.read(path)
    races.add(found)
    races.write(path)
    for row in found:
        shown = f"{1e3 * row.times.median:.4g} ms ({1e3 * row.times.least:.4g})"
        click.echo(f"{row.figure}: {row.kernel}, {row.input}, {row.variant}, {row.threads} threads: {shown}", err=True)


def _write_page(plan: Plan) -> None:
    races = Races.read(plan.file("scheduling.csv"))
    races.add(Races.read(plan.file("performance_hand.csv")).rows.values())
    figures = Figures(races, read_losses(plan.file("scheduling_rules.csv")), read_outside(plan.file("scheduling_peers.csv")))
    publish(plan.file("scheduling.md"), page(figures))
    chart = imbalance_chart(races)
    if chart:
        publish(plan.file("scheduling.svg"), chart)


if __name__ == "__main__":
    os.environ.setdefault("OMP_PROC_BIND", "true")
    main()
