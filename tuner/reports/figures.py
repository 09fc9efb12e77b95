"""Makes the published figures: ``python -m sparsetune.tuner.reports.figures --help``."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import click

from ...compiler.frozen import frozen
from ...compiler.storage.tensor import Tensor
from ..peers import Peer, choose_peers
from .material import Material
from .operations import count_nests, fibres
from .page import page
from .publishing import publish, results_option
from .race import Pace
from .records import Chosen, Races, read_chosen, read_counts, write_chosen, write_counts
from .speed import THREADS, bandwidth_race, kernel_race, nests_race
from .workloads import KERNELS, KernelCase, load_input, operands_of

FIGURES = ("schedules", "kernels", "ttmc", "bandwidth", "page")
TTMC_NESTS = {"unfactorized": "", "fused": "precompute(T(i,j,k) * C(k,s), [s], [s], w)"}
TTMC_COUNTED = ("kinships", "random:uniform:20x15x400:nnz=8000")
BANDWIDTH_INPUTS = ("sten100",)


@frozen
class Plan:
    """The options of a run: where files lie, which kernels and inputs, how long."""

    folder: Path
    kernels: tuple[str, ...]
    inputs: tuple[str, ...]
    pace: Pace
    trials: int
    seconds: float
    database: str | None

    def cases(self) -> Iterator[tuple[KernelCase, str, Tensor]]:
        """Yield kernels and inputs, those of one input together."""
        wanted = [case for case in KERNELS.values() if not self.kernels or case.name in self.kernels]
        for name in dict.fromkeys(name for case in wanted for name in case.inputs):
            source = _loaded(name) if not self.inputs or name in self.inputs else None
            if source is not None:
                yield from ((case, name, source) for case in wanted if name in case.inputs)

    @property
    def races_file(self) -> Path:
        return self.folder / "performance.csv"

    @property
    def chosen_file(self) -> Path:
        return self.folder / "performance_schedules.csv"

    @property
    def counts_file(self) -> Path:
        return self.folder / "performance_counts.csv"

    @property
    def inputs_file(self) -> Path:
        return self.folder / "performance_inputs.json"


@click.command()
@click.option("--only", multiple=True, type=click.Choice(FIGURES), help="make only these (default: all but schedules)")
@click.option("--kernel", multiple=True, type=click.Choice(list(KERNELS)), help="only these kernels")
@click.option("--input", "inputs", multiple=True, help="only these inputs")
@results_option
@click.option("--seconds", default=8.0, help="length of a race")
@click.option("--tune", "trials", default=60, help="trials a campaign, for --only schedules")
@click.option("--time-budget", default=60.0, help="seconds a campaign, for --only schedules")
@click.option("--db", "database", default=None, help="database of the campaigns")
def main(
    only: tuple[str, ...], kernel: tuple[str, ...], inputs: tuple[str, ...], results: Path, seconds: float, trials: int, time_budget: float,
    database: str | None,
) -> None:  # fmt: skip
    """Measure what results/performance.md shows, and write it.

    Rows are added to results/performance.csv; a race that is run again takes the place of the old one. Schedules come from
    results/performance_schedules.csv, which --only schedules makes by tuning.
    """
    plan = Plan(results, kernel, inputs, Pace(seconds), trials, time_budget, database)
    makers: dict[str, Callable[[Plan], None]] = {
        "schedules": _tune,
        "kernels": _race_kernels,
        "ttmc": _race_nests,
        "bandwidth": _race_bandwidth,
    }
    if (kernel or inputs) and not any(True for _ in plan.cases()):
        click.echo("nothing to do: no kernel has such an input, or its file is missing (SPARSETUNE_DATA)", err=True)
    for figure in FIGURES[:-1]:
        if figure in only or (not only and figure != "schedules"):
            click.echo(f"{figure} ...", err=True)
            makers[figure](plan)
    _write_page(plan)
    click.echo(f"wrote {plan.folder / 'performance.md'}", err=True)


def _tune(plan: Plan) -> None:
    """Tune every case for every number of threads."""
    from ..session import tune

    chosen = read_chosen(plan.chosen_file)
    for case, name, source in plan.cases():
        operands = operands_of(case, source)
        for threads in THREADS:
            found = tune(
                case.expression, operands, output_format=case.result, threads=threads, trials=plan.trials, time_budget=plan.seconds,
                database=plan.database,
            )  # fmt: skip
            click.echo(f"{case.name}, {name}, {threads} threads: {found.shown_speedup} by '{found.best}'", err=True)
            chosen[case.name, name, threads] = Chosen(case.name, name, threads, str(found.best), len(found.measured), plan.seconds)
            write_chosen(plan.chosen_file, chosen.values())


def _race_kernels(plan: Plan) -> None:
    chosen, peers = read_chosen(plan.chosen_file), _peers()
    for case, name, source in plan.cases():
        _keep(plan, kernel_race(case, name, source, chosen, peers, plan.pace))


def _race_nests(plan: Plan) -> None:
    small = {name: source for name in TTMC_COUNTED if (source := load_input(name)) is not None}
    write_counts(plan.counts_file, count_nests(KERNELS["TTMc 16x16"], small, TTMC_NESTS))
    for case, name, source in plan.cases():
        if case.name.startswith("TTMc"):
            _keep(plan, nests_race("ttmc", case, name, source, TTMC_NESTS, (1,), plan.pace))


def _race_bandwidth(plan: Plan) -> None:
    chosen, case = read_chosen(plan.chosen_file), KERNELS["SpMV"]
    for name in BANDWIDTH_INPUTS:
        source = _loaded(name)
        if source is not None:
            _keep(plan, bandwidth_race(case, name, source, chosen, plan.pace))


def _keep(plan: Plan, rows: list[Any]) -> None:
    """Add a race to the file at once, so that an interrupted run loses nothing."""
    races = Races.read(plan.races_file)
    races.add(rows)
    races.write(plan.races_file)
    for row in rows:
        shown = f"{1e3 * row.times.median:.4g} ms ({1e3 * row.times.least:.4g})"
        click.echo(f"{row.figure}: {row.kernel}, {row.input}, {row.variant}, {row.threads} threads: {shown}", err=True)


def _write_page(plan: Plan) -> None:
    races, sizes = Races.read(plan.races_file), _sizes(plan)
    hand = Races.read(plan.folder / "performance_hand.csv")
    races.add(hand.rows.values())
    material = Material(races, read_chosen(plan.chosen_file), read_counts(plan.counts_file), sizes)
    publish(plan.folder / "performance.md", page(material))


def _sizes(plan: Plan) -> dict[str, Any]:
    """Return sizes of the inputs that were measured; kept in a file, since some take long to make."""
    known = json.loads(plan.inputs_file.read_text()) if plan.inputs_file.exists() else {}
    for name in dict.fromkeys(row.input for row in Races.read(plan.races_file).rows.values()):
        if name not in known and (source := _loaded(name)) is not None:
            known[name] = {"shape": source.shape, "nnz": source.nnz, "fibres": fibres(source)}
    publish(plan.inputs_file, json.dumps(known, indent=1) + "\n")
    return known


@cache
def _peers() -> tuple[Peer, ...]:
    return tuple(peer for peer in choose_peers(()) if peer.name != "sparse")


_last: dict[str, Tensor | None] = {}


def _loaded(name: str) -> Tensor | None:
    """Return an input; the last one is kept."""
    if name not in _last:
        _last.clear()
        _last[name] = load_input(name)
    return _last[name]


if __name__ == "__main__":
    os.environ.setdefault("OMP_PROC_BIND", "true")
    main()
