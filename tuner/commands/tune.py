"""``tune-kernel tune``."""

from __future__ import annotations

from typing import Any

import click

from ..database import open_database
from ..measure.policy import CACHES, Policy
from ..measure.runner import Worker
from ..operands import problem_of
from ..problem import Problem
from ..prune import SWITCHES, surviving_space
from ..session import TuneResult, make_budget, tune_problem
from ..settings import Settings
from . import options
from .help import ExampleCommand
from .output import interruptible, print_json, print_table, require_compiler, show_seconds, shown_progress, warn_if_busy


@click.command(
    "tune",
    cls=ExampleCommand,
    examples=(
        ('tune-kernel tune "y(i) = A(i,j) * x(j)" -i A=HB/494_bus', "a matrix of the catalogue, a random vector"),
        ('tune-kernel tune "A(i,r) = B(i,j,k) * C(j,r) * D(k,r)" -i B=tensor.tns --dim r=32 --format B=csf', "MTTKRP on a file"),
        ('tune-kernel tune "Y(i,k) = A(i,j) * X(j,k)" -i A=random:uniform:100000x100000:nnz=2e6 --dim k=32 --time-budget 60', "one minute"),
    ),
)
@options.together(
    options.expression, options.inputs, options.dims, options.formats, options.output_format, options.target, options.threads,
    options.trials, options.time_budget, options.seed, options.database,
    click.option("--cache", type=click.Choice(CACHES), default="warm", show_default=True,
                 help="What a timed run finds in the caches: what the run before left there, or nothing of its operands."),
    click.option("--skip", multiple=True, type=click.Choice(SWITCHES), help="Leave a stage of pruning out; may be repeated."),
    click.option("--dry-run", is_flag=True, help="Show the space that would be searched; measure nothing."), options.as_json,
)  # fmt: skip
def command(**given: Any) -> None:
    """Find the fastest schedule of EXPR on these inputs, and remember it.

    Every trial goes to the database as soon as it is done; running the same command again goes on where it was stopped.
    """
    require_compiler()
    problem = problem_of(given)
    budget = make_budget(given["trials"], given["time_budget"])
    if given["dry_run"]:
        _show_space(problem, given["skip"])
        return
    with open_database(given["database"]) as store, interruptible(store):
        warn_if_busy()
        with Worker(problem.threads) as worker, shown_progress("tune") as report:
            settings = Settings(policy=Policy(cache=given["cache"]), skip=given["skip"])
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
    }


def _show_space(problem: Problem, skip: tuple[str, ...]) -> None:
    space, stages = surviving_space(problem, skip)
    print_table([[str(stage["stage"]), str(stage["kept"]), show_seconds(stage["seconds"])] for stage in stages], ("stage", "kept", "time"))
    print(f"\n{space.size} schedules of {len(space.templates)} templates, the most promising first:")
    for template in space.templates:
        print(f"{template.count:>6}  {template.text or '(default)'}")


def _show(result: TuneResult) -> None:
    problem = result.problem
    print(f"expression  {problem.expression}")
    stages = (f"{stage['stage']} {stage['kept']}" for stage in result.stages)
    print(f"stages      {', '.join(stages)}")
    print(f"trials      {len(result.measured)}, {result.failed_trials} failed")
    print(f"default     {show_seconds(result.default_time)}")
    interval = f"95% interval {result.speedup_low:.2f} to {result.speedup_high:.2f}"
    print(f"best        {show_seconds(result.best_time)}, {result.speedup:.2f} times as fast ({interval})")
    print(f"schedule    {str(result.best) or 'the default one: no other is surely faster'}")
    if result.ties:
        print(f"ties        {len(result.ties)} of the finalists not surely slower, of which the simplest was chosen:")
        for tie in result.ties:
            print(f"            {tie or '(default)'}")
    print(f"database    {result.database}")
    operands = ", ".join(f'"{name}": {name}' for name in problem.operands)
    print(f"used by     sparsetune.evaluate({problem.expression!r}, {{{operands}}}, threads={problem.threads})")
