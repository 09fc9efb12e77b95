"""``tune-kernel suite``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from ..config import Suite, load_suite
from ..database import open_database
from ..progress import show_seconds, shown_suite_progress
from ..settings import Budget
from ..suite import Outcome, tune_suite
from . import options
from .help import ExampleCommand
from .output import interruptible, leave, note, print_json, print_table, require_compiler, warn_if_busy

if TYPE_CHECKING:
    from ..distributed.crew import Crew


@click.command(
    "suite",
    cls=ExampleCommand,
    examples=(
        ("tune-kernel suite quick", "generated inputs, under two minutes"),
        ("tune-kernel suite matrices --threads 1 --threads 2 --time-budget 30", "real matrices, half a minute for each kernel and input"),
        ("tune-kernel suite mine.toml --json", "a suite of your own; configs/quick.toml shows the form"),
    ),
)
@options.together(
    options.suite, options.suite_trials, options.suite_budget, options.suite_threads, options.seed, options.database, options.resume,
    click.option("--mpi", is_flag=True, help="Measure on all ranks that mpiexec started; rank 0 decides and records."),
    options.as_json,
)  # fmt: skip
def command(**given: Any) -> int:
    """Tune every kernel on every input of a suite (a name of configs/, or a .toml file).

    Items that were finished before are not measured again. Status 1 if an item failed.

    With --mpi, "mpiexec -n 4 tune-kernel suite quick --mpi" has ranks 1 to 3 build and measure what rank 0 proposes, each on a machine
    like that of rank 0; ranks of one machine take turns at what they time. A rank of theirs that is killed costs its trial, and
    mpiexec's status, which tells of it; where rank 0 or its machine is lost, the same command goes on.
    """
    if not given["mpi"]:
        return _run(given, None)
    from ..distributed.crew import Crew
    from ..distributed.guard import guarded
    from ..distributed.world import world

    known = guarded()
    crew = Crew.gathered(world(), known)
    if crew is None:
        return 0
    with crew:
        status = _run(given, crew)
    if crew.lost:  # MPI waits for those at its end
        leave(status)
    return status


def _run(given: dict[str, Any], crew: Crew | None) -> int:
    require_compiler()
    suite = suite_of(given)
    with open_database(given["database"]) as store, interruptible(store):
        warn_if_busy()
        with shown_suite_progress(suite.name) as report:
            helpers = None if crew is None else crew.take_up
            items = list(map(item_json, tune_suite(suite, store, budget_of(suite), given["seed"], report, helpers)))
    for message in () if crew is None else crew.notes:
        note(message)
    failed = sum(item["status"] != "ok" for item in items)
    if given["as_json"]:
        print_json({"suite": suite.name, "items": items, "failed": failed})
    else:
        _show(items)
    return 1 if failed else 0


def suite_of(given: dict[str, Any]) -> Suite:
    """Return the suite that is named, with what the options change. Raises ``DataError``."""
    suite = load_suite(given["name"])
    changes = {"trials": given.get("trials"), "time_budget": given.get("time_budget"), "threads": given.get("threads") or None}
    return replace(suite, **{name: value for name, value in changes.items() if value is not None})


def budget_of(suite: Suite) -> Budget:
    return Budget(trials=suite.trials, seconds=suite.time_budget)


def item_json(outcome: Outcome) -> dict[str, Any]:
    """Return an item of the JSON object of DESIGN 4.2."""
    result = outcome.result
    return {
        "kernel": outcome.item.label,
        "input": outcome.item.input.name,
        "status": "ok" if result is not None else f"failed: {outcome.message}",
        "default_time": None if result is None else result.default_time,
        "best_time": None if result is None else result.best_time,
        "speedup": None if result is None else result.speedup,
        "best_schedule": None if result is None else str(result.best),
    }


def _show(items: list[dict[str, Any]]) -> None:
    rows = []
    for item in items:
        names = [item["kernel"], item["input"]]
        if item["status"] != "ok":
            rows.append([*names, "-", "-", "-", item["status"]])
        else:
            times = [show_seconds(item["default_time"]), show_seconds(item["best_time"]), f"{item['speedup']:.2f}"]
            rows.append([*names, *times, item["best_schedule"] or "(default)"])
    print_table(rows, ("kernel", "input", "default", "best", "speedup", "schedule"))
