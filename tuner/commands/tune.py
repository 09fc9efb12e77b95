"""``tune-kernel tune``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from ...compiler.errors import DataError
from ...compiler.notation.canonical import canonical_form
from ...compiler.notation.parser import parse
from ...compiler.schedule.schedule import Schedule
from ...compiler.space.selection import CLOSED, RULES
from ..account import least_bytes, run_operations
from ..database import Database, open_database
from ..measure.limits import machine_limits
from ..measure.policy import CACHES, Policy
from ..measure.worker_process import Worker
from ..operands import problem_of
from ..problem import Problem
from ..progress import Progress, Report, show_seconds, shown_progress
from ..prune import SWITCHES, counted_stages, surviving_space
from ..reason import reason
from ..search.samplers import SAMPLERS, USUAL_SAMPLER
from ..session import make_budget, tune_problem
from ..settings import Settings
from ..truth.measuring import measure_table
from ..truth.replay import replay
from ..truth.table import read_table
from ..tune_result import TuneResult
from . import options
from .help import ExampleCommand
from .output import interruptible, print_json, print_table, require_compiler, show_count, warn_if_busy


@click.command(
    "tune",
    cls=ExampleCommand,
    examples=(
        ('tune-kernel tune "y(i) = A(i,j) * x(j)" -i A=HB/494_bus', "a matrix of the catalogue, a random vector"),
        ('tune-kernel tune "A(i,r) = B(i,j,k) * C(j,r) * D(k,r)" -i B=tensor.tns --dim r=32 --format B=csf', "MTTKRP on a file"),
        ('tune-kernel tune "Y(i,k) = A(i,j) * X(j,k)" -i A=random:uniform:100000x100000:nnz=2e6 --dim k=32 --time-budget 60', "one minute"),
        ('tune-kernel tune "y(i) = A(i,j) * x(j)" -i A=HB/494_bus --table spmv.json --points 50', "what 50 schedules take"),
        ("tune-kernel tune --replay spmv.json --trials 20 --seed 7", "search in the table; a seed always gives the same trials"),
    ),
)
@options.together(
    click.argument("expression", metavar="EXPR", required=False),
    options.inputs, options.dims, options.formats, options.output_format, options.semiring, options.boundary,
    options.output_pattern, options.target,
    options.threads, options.memory_bound, options.cache_share,
    options.trials, options.time_budget, options.seed, options.database,
    click.option("--cache", type=click.Choice(CACHES), default="warm", show_default=True,
                 help="Time runs with what the run before left in the caches (warm), or with no operand in them (cold)."),
    click.option("--skip", multiple=True, type=click.Choice((*SWITCHES, *RULES)),
                 help="Do without a stage of pruning or a rule of the space; may be repeated."),
    click.option("--also", multiple=True, type=click.Choice(CLOSED),
                 help="Also search over choices that are left to the compiler by default; may be repeated."),
    click.option("--sampler", type=click.Choice(list(SAMPLERS)), default=USUAL_SAMPLER, show_default=True,
                 help="How the next schedule is chosen, if there are more schedules than trials."),
    click.option("--table", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
                 help="Do not search: measure schedules drawn from the whole space, and write their times to a truth table."),
    click.option("--points", type=click.IntRange(1), default=1000, show_default=True,
                 help="Schedules to measure for --table, no two with the same code."),
    click.option("--replay", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
                 help="Search in a truth table instead of measuring; EXPR is taken from the table."),
    click.option("--dry-run", is_flag=True, help="Show the space that would be searched, without measuring."), options.as_json,
)  # fmt: skip
def command(**given: Any) -> None:
    """Find the fastest schedule of EXPR on these inputs, and remember it.

    Every trial is recorded in the database when it ends. Running the same command again continues where the last run stopped.
    """
    if given["replay"] is not None:
        _replay(given)
        return
    if given["expression"] is None:
        raise click.UsageError("Missing argument 'EXPR'.")
    require_compiler()
    problem = problem_of(given)
    budget = make_budget(given["trials"], given["time_budget"])
    if given["dry_run"]:
        _show_space(problem, given["skip"], given["also"], given["seed"])
        return
    with open_database(given["database"]) as store, interruptible(store):
        warn_if_busy()
        with Worker(problem.threads) as worker, shown_progress("tune") as report:
            settings = Settings(policy=Policy(cache=given["cache"]), skip=given["skip"], also=given["also"], sampler=given["sampler"])
            if given["table"] is not None:
                _measure_table(problem, store, worker, settings, report, given)
                return
            result = tune_problem(problem, store, worker, budget, settings, given["seed"], report)
    if given["as_json"]:
        print_json(as_json(result))
    else:
        _show(result)


def as_json(result: TuneResult) -> dict[str, Any]:
    """Return the JSON object of DESIGN 4.2."""
    return {
        "expression": result.problem.expression,
        "machine": result.problem.workload.machine,
        "target": result.problem.target,
        "threads": result.problem.threads,
        "stages": result.stages,
        "trials": len(result.measured),
        "failed_trials": result.failed_trials,
        "default_time": result.default_time,
        "best_time": result.best_time,
        "speedup": result.speedup,
        "best_schedule": str(result.best),
        "database": result.database,
        "conversion_time": result.conversion_time,
        "pays_after": result.pays_after,
        "converted": result.converted and result.converted.as_dict(),
        **({} if result.default_stopped is None else {"default_stopped": result.default_stopped}),
    }


def _measure_table(
    problem: Problem, store: Database, worker: Worker, settings: Settings, report: Report, given: Mapping[str, Any]
) -> None:
    """Measure a truth table and say what is in it."""
    path = given["table"]

    def tell(done: int, planned: int) -> None:
        report(Progress("searching", done, planned))

    table = measure_table(problem, store, worker, path, given["points"], settings, given["seed"], tell)
    found = {
        "expression": table.expression,
        "machine": table.machine,
        "table": str(path),
        "points": len(table.points),
        "space": table.space,
        "default_time": table.default.seconds,
        "best_time": table.best.seconds,
        "best_schedule": table.best.schedule,
        "share_within_1.05": table.share_within(1.05),
    }
    if given["as_json"]:
        print_json(found)
        return
    print(f"table       {path}: {len(table.points)} points of a space of {table.space}")
    print(f"default     {show_seconds(table.default.seconds)}")
    print(f"best        {show_seconds(table.best.seconds)}  {table.best.schedule or '(default)'}")
    print(f"near best   {table.share_within(1.05):.2%} within 1.05 of the best, {table.share_within(1.2):.2%} within 1.20")


def _replay(given: Mapping[str, Any]) -> None:
    """Search in a truth table and say what was found."""
    table = read_table(given["replay"])
    if given["expression"] is not None and canonical(given["expression"]) != canonical(table.expression):
        raise DataError(f"{given['replay']} is a table of '{table.expression}', not of '{given['expression']}'; leave EXPR out")
    found = replay(table, given["trials"], given["seed"], given["sampler"])
    if given["as_json"]:
        print_json(found.as_json())
        return
    rows = [[str(step.number), show_seconds(step.point.seconds), show_seconds(step.best), step.point.schedule or "(default)"]
            for step in found.steps]  # fmt: skip
    print_table(rows, ("trial", "time", "best", "schedule"))
    ratio = (found.best.seconds or 0.0) / (table.best.seconds or 1.0)
    print(f"\nbest {show_seconds(found.best.seconds)} after {len(found.steps)} trials, {ratio:.3f} of the table's best")


def canonical(expression: str) -> str:
    """Return an expression in canonical names."""
    return canonical_form(parse(expression)).text


def _show_space(problem: Problem, skip: tuple[str, ...], also: tuple[str, ...], seed: int) -> None:
    space, stages = surviving_space(problem, skip, also=also, seed=seed)
    stages = [*counted_stages(problem), *stages]
    rows = [[str(stage["stage"]), show_count(stage["kept"]), show_seconds(stage["seconds"])] for stage in stages]
    print_table(rows, ("stage", "kept", "time"))
    print(f"\n{space.size} schedules of {len(space.templates)} templates, the most promising first:")
    for template in space.templates:
        print(f"{template.count:>6}  {template.text or '(default)'}")


def _show(result: TuneResult) -> None:
    problem = result.problem
    print(f"expression  {problem.expression}")
    _show_stages(result.stages)
    print(f"trials      {len(result.measured)}, {result.failed_trials} failed\n")
    _show_times(result)
    print(f"\nschedule    {str(result.best) or 'the default one: no other is surely faster'}")
    if result.conversion_time:
        calls = {name: "never" if count is None else f"after {count} calls" for name, count in result.pays_after.items()}
        print(f"conversion  {show_seconds(result.conversion_time)}; pays {calls['conversion']}, with the build {calls['build']}")
    if result.converted is not None:
        print(f"bound       {result.converted}; a bound kernel converts once")
    if result.ties:
        print(f"ties        {len(result.ties)} finalists are not surely slower; the simplest was chosen:")
        for tie in result.ties:
            print(f"            {tie or '(default)'}")
    print(f"why         {reason(problem, result.best, result.speedup)}")
    print(f"database    {result.database}")
    operands = ", ".join(f'"{name}": {name}' for name in problem.operands)
    where = f"target={problem.target!r}" if problem.is_on_gpu else f"threads={problem.threads}"
    print(f"used by     sparsetune.evaluate({problem.expression!r}, {{{operands}}}, {where})")


def _show_stages(stages: Sequence[Mapping[str, Any]]) -> None:
    """Print how large the whole space is, where it was counted, and what each stage of pruning left."""
    first = next((place for place, stage in enumerate(stages) if stage["stage"] == "generated"), 0)
    if first:
        counts = [stage["kept"] for stage in stages[:first]]
        print(f"space       {show_count(max(counts))} schedules, {show_count(counts[-1])} after its filters; --dry-run shows every stage")
    left = ", ".join(f"{stage['stage']} {show_count(stage['kept'])}" for stage in stages[first:])
    print(f"stages      {left}")


def _show_times(result: TuneResult) -> None:
    """Print default and winner: time, speedup with its interval, GFLOP/s, GB/s, and the share of what the machine can give."""
    problem, moved = result.problem, least_bytes(result.problem)
    limits = None
    if not problem.is_on_gpu:
        limits = machine_limits(problem.threads)
    rows = []
    for name, schedule, seconds in (("default", Schedule(), result.default_time), ("best", result.best, result.best_time)):
        if seconds is None:
            print(f"default     not known: it was stopped after {show_seconds(result.default_stopped)}")
            continue
        work = run_operations(problem, schedule)
        share = None if limits is None else limits.least_seconds(work or 0.0, moved) / seconds
        speedup = ("-" if result.speedup is None else result.shown_speedup) if name == "best" else "1"
        rows.append([
            name, show_seconds(seconds), speedup, "-" if work is None else f"{work / seconds / 1e9:.3g}", f"{moved / seconds / 1e9:.3g}",
            "-" if share is None else f"{share:.0%}",
        ])  # fmt: skip
    print_table(rows, ("", "time", "speedup (95%)", "GFLOP/s", "GB/s", "of the limit"))
    if limits is not None:
        memory, arithmetic = f"{limits.bandwidth / 1e9:.1f} GB/s from memory", f"{limits.operations / 1e9:.0f} GFLOP/s"
        print(f"the limit is {memory} and {arithmetic}; shares above 100% mean that the data fit in caches")
        if limits.disturbed:
            print("other programs ran while the limit was measured: it may be too low and the shares too high, so it is not kept")
