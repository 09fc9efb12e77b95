"""``tune-kernel suite``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from ..config import Suite, load_suite
from ..database import open_database
from ..progress import show_seconds, shown_suite_progress
from ..resolve import require_target
from ..settings import Budget
from ..suite import Outcome, suite_items, tune_suite
from ..suite_keys import KEYS
from ..suite_run import begin, resume
from . import options
from .help import ExampleCommand
from .output import interruptible, leave, note, print_json, print_table, require_compiler, warn_if_busy

if TYPE_CHECKING:
    from ..distributed.crew import Crew

_MOST_INPUTS = 40  # inputs that a description names


@click.command(
    "suite",
    cls=ExampleCommand,
    examples=(
        ("tune-kernel suite quick", "generated inputs, under two minutes"),
        ("tune-kernel suite matrices --threads 1 --threads 2 --time-budget 30", "real matrices, half a minute for each kernel and input"),
        ("tune-kernel suite matrices --resume", "go on where the last run stopped"),
        ("tune-kernel suite quick --target cuda", "on this machine's GPU"),
        ("tune-kernel suite mine.toml --json", "a suite of your own"),
        ("tune-kernel suite quick --describe", "what it runs, and every key that such a file may have"),
    ),
)
@options.together(
    options.suite, options.suite_target, options.suite_trials, options.suite_budget, options.suite_threads, options.seed,
    options.database, options.resume,
    click.option("--describe", is_flag=True, help="Show what the suite runs, and all keys of a suite's file, without measuring."),
    click.option("--mpi", is_flag=True, help="Measure on all ranks that mpiexec started; rank 0 decides and records."),
    options.as_json,
)  # fmt: skip
def command(**given: Any) -> int:
    """Tune every kernel on every input of a suite (a name of configs/, or a .toml file).

    An item that fails does not stop the others. Status 1 if an item failed; 3 if none failed but some were skipped, because their inputs
    are not on this machine and there is no network.

    With --mpi, several processes share the work: under "mpiexec -n 4 tune-kernel suite quick --mpi" rank 0 proposes schedules, and ranks
    1 to 3, which must be on machines like that of rank 0, build and measure them. Ranks on one machine take turns at timing. If one of
    them is killed, its trial is lost and mpiexec ends with an error status; if rank 0 is lost, run the suite again with --resume.
    """
    if given["describe"]:
        _describe(suite_of(given))
        return 0
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
    if crew.lost:  # MPI would wait for the lost ranks at its end
        leave(status)
    return status


def _run(given: dict[str, Any], crew: Crew | None) -> int:
    suite = measured_suite(given)
    with open_database(given["database"]) as store, interruptible(store, "run it again with --resume to go on"):
        warn_if_busy()
        budget = budget_of(suite)
        last = resume(suite.key, store.url) if given["resume"] else begin(suite.key, store.url, budget)
        with shown_suite_progress(suite.name, suite.time_budget) as report:
            helpers = None if crew is None else crew.take_up
            found = tune_suite(suite, store, budget, given["seed"], report, helpers, last)
            outcomes = [(item_json(outcome), _interval(outcome), outcome.skipped) for outcome in map(_told, found)]
    for message in () if crew is None else crew.notes:
        note(message)
    items = [item for item, _, _ in outcomes]
    skipped = sum(outcome[2] for outcome in outcomes)
    failed = sum(item["status"] != "ok" for item in items) - skipped
    if given["as_json"]:
        print_json({"suite": suite.name, "items": items, "failed": failed})
    else:
        _show(items, [interval for _, interval, _ in outcomes])
    return 1 if failed else 3 if skipped else 0


def _told(outcome: Outcome) -> Outcome:
    """Print a line for an item that failed or was skipped, as soon as that is known."""
    if outcome.result is None:
        note(f"{outcome.item.label} on {outcome.item.input.name}: {_status(outcome)}")
    return outcome


def _status(outcome: Outcome) -> str:
    return "ok" if outcome.result is not None else f"{'skipped' if outcome.skipped else 'failed'}: {outcome.message}"


def _interval(outcome: Outcome) -> str:
    result = outcome.result
    return "-" if result is None or result.speedup is None else f"{result.speedup_low:.2f} to {result.speedup_high:.2f}"


def _describe(suite: Suite) -> None:
    """Say what a suite runs, and every key that a suite's file may have."""
    items = suite_items(suite)
    budget = "no limit" if suite.time_budget is None else f"{suite.time_budget:g} s"
    print(f"{suite.name}: {suite.description}")
    sizes = (items, "item"), (suite.kernels, "kernel"), (suite.inputs, "input")
    of_items, of_kernels, of_inputs = (f"{len(found)} {what}{'s' * (len(found) != 1)}" for found, what in sizes)
    print(f"{of_items} of {of_kernels} on {of_inputs}; {suite.trials} trials, {budget} each\n")
    print_table([[kernel.name, kernel.expression] for kernel in suite.kernels], ("kernel", "expression"))
    names = [entry.name for entry in suite.inputs]
    print("\ninputs: " + ", ".join(names[:_MOST_INPUTS] + ["..."] * (len(names) > _MOST_INPUTS)))
    print("\nWhat a suite's file may say (TOML):")
    for table, keys in KEYS.items():
        print(f"\n{table}")
        for key in keys:
            print(f"  {key.name:<14} {key.value:<22} {key.about}{' (needed)' if key.needed else ''}")


def measured_suite(given: dict[str, Any]) -> Suite:
    """Return the suite that is to be measured.

    Raises:
        DataError: there is none of that name, or it is not well-formed.
        BuildError: this machine lacks its target, or a compiler.
    """
    require_compiler()
    suite = suite_of(given)
    require_target(suite.target)
    return suite


def suite_of(given: dict[str, Any]) -> Suite:
    """Return the suite that is named, with what the options change. Raises ``DataError``."""
    suite = load_suite(given["name"])
    changed = ("trials", "time_budget", "threads", "target")
    suite = replace(suite, **{name: given[name] for name in changed if given.get(name)})
    if suite.is_on_device and given.get("threads"):
        raise click.UsageError(f"--threads is for kernels on the processor; leave it out for target {suite.target}")
    return suite


def budget_of(suite: Suite) -> Budget:
    """Return the trials and seconds that a suite gives each campaign."""
    return Budget(trials=suite.trials, seconds=suite.time_budget)


def item_json(outcome: Outcome) -> dict[str, Any]:
    """Return an item of the JSON object of DESIGN 4.2."""
    result = outcome.result
    return {
        "kernel": outcome.item.label,
        "input": outcome.item.input.name,
        "status": _status(outcome),
        "default_time": None if result is None else result.default_time,
        "best_time": None if result is None else result.best_time,
        "speedup": None if result is None else result.speedup,
        "best_schedule": None if result is None else str(result.best),
    }


def _show(items: list[dict[str, Any]], intervals: list[str]) -> None:
    rows = []
    for item, interval in zip(items, intervals, strict=True):
        names = [item["kernel"], item["input"]]
        if item["status"] != "ok":
            rows.append([*names, "-", "-", "-", "-", item["status"]])
        else:
            speedup = "-" if item["speedup"] is None else f"{item['speedup']:.2f}"  # of a default that did not end in time
            times = [show_seconds(item["default_time"]), show_seconds(item["best_time"]), speedup, interval]
            rows.append([*names, *times, item["best_schedule"] or "(default)"])
    print_table(rows, ("kernel", "input", "default", "best", "speedup", "95% interval", "schedule"))
