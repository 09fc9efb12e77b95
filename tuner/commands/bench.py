"""``tune-kernel bench``."""

from __future__ import annotations

from typing import Any

import click

from ..bench import BenchItem, bench_suite
from ..database import open_database
from ..peers import choose_peers
from ..progress import show_seconds, shown_suite_progress
from . import options
from .help import ExampleCommand
from .output import interruptible, note, print_json, print_table, warn_if_busy
from .suite import budget_of, measured_suite


@click.command(
    "bench",
    cls=ExampleCommand,
    examples=(
        ("tune-kernel bench quick", "beside every peer that is installed"),
        ("tune-kernel bench matrices --against scipy --against mkl --threads 2 --json", "beside two of them, on two threads"),
    ),
)
@options.together(
    options.suite,
    click.option("--against", "peers", multiple=True, metavar="PEER", help="A peer: scipy, mkl, sparse.  [default: those installed]"),
    options.suite_target, options.suite_trials, options.suite_budget, options.suite_threads, options.seed, options.database,
    options.as_json,
)  # fmt: skip
def command(**given: Any) -> int:
    """Time tuned kernels beside other libraries: on the same inputs, in one run, in turn.

    Kernels that are not tuned yet are tuned first. The ratio is the time of the fastest peer over ours: above 1, ours is faster. An item
    that fails does not stop the others; status 1 if one failed. On a GPU there are no peers, and its own clock counts: tuned, default and
    static choice, on operands that are there.
    """
    suite = measured_suite(given)
    peers = choose_peers(given["peers"], suite.target)
    with open_database(given["database"]) as store, interruptible(store):
        warn_if_busy()
        with shown_suite_progress(suite.name) as report:
            items = list(bench_suite(suite, store, budget_of(suite), given["seed"], peers, report))
    for item in items:
        for peer in item.wrong:
            note(f"{item.kernel} on {item.input}: the result of {peer} differs from ours, so it is not timed")
        if item.failure:
            note(f"{item.kernel} on {item.input}: {item.failure}")
    if given["as_json"]:
        keys = ("kernel", "input", "threads", "times", "best_peer", "ratio", "expression", "ratios", "failure", "target")
        print_json({"items": [{key: getattr(item, key) for key in keys} for item in items]})
    else:
        _show(items)
    return 1 if any(item.failure for item in items) else 0


def _show(items: list[BenchItem]) -> None:
    names = list(dict.fromkeys(name for item in items for name in (*item.times, *item.wrong)))
    rows = [
        [item.kernel, item.input, str(item.threads), *(_cell(item, name) for name in names),
         "-" if item.ratio is None else f"{item.ratio:.2f}"]
        for item in items
    ]  # fmt: skip
    print_table(rows, ("kernel", "input", "threads", *names, "ratio"))


def _cell(item: BenchItem, name: str) -> str:
    """Return a library's time, or why there is none."""
    if item.failure:
        return "failed"
    return show_seconds(item.times[name]) if name in item.times else "differs" if name in item.wrong else "no such kernel"
