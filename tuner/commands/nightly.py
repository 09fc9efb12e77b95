"""``tune-kernel nightly``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from ...compiler.native.devices import architecture_here
from ..database import open_database
from ..lookup import lookup_in
from ..nightly.baseline import Baseline, load_baseline, write_baseline
from ..nightly.changes import Change
from ..nightly.kept import keep, kept
from ..nightly.night import Plan, run_night
from ..nightly.race import checkout
from ..progress import show_seconds
from ..report import write_nightly_page
from . import options
from .help import ExampleCommand
from .output import note, print_json, print_table, warn_if_busy
from .suite import measured_suite


@click.command(
    "nightly",
    cls=ExampleCommand,
    examples=(
        ("tune-kernel nightly quick --baseline quick.json", "the first time: measure, and write the baseline"),
        ("tune-kernel nightly quick --baseline quick.json --base ../main --report night.html", "later: race against a checkout"),
        ("tune-kernel nightly quick --baseline quick.json --strict", "without one: compare nights; status 1 where they cannot tell"),
    ),
)
@options.together(
    options.suite, options.suite_target,
    click.option("--baseline", required=True, type=click.Path(dir_okay=False, path_type=Path),
                 help="The times to compare with; measured and written if there is no such file."),
    click.option("--base", type=click.Path(path_type=Path), metavar="PATH",
                 help="A checkout of the older version. Both versions run in turn, so that the load of a night does not matter."),
    click.option("--update", is_flag=True, help="Write this night's times as the new baseline, and accept slow drifts up to now."),
    click.option("--margin", type=click.FloatRange(0, min_open=True), default=0.1, show_default=True,
                 help="A kernel has regressed if it is slower by more than this share, if the interval excludes chance, and if a second "
                      "measurement confirms it."),
    click.option("--strict", is_flag=True, help="Status 1 also if an item is undecided."),
    click.option("--report", "page", type=click.Path(dir_okay=False, path_type=Path), help="Write a page with plots."),
    options.suite_threads, options.database, options.as_json,
)  # fmt: skip
def command(**given: Any) -> int:
    """Measure a suite again with the baseline's schedules, and compare. Status 1 on a regression.

    With --base, the kernels of that checkout and of this version run in turn. Without it, this version races against the version that
    made the baseline, if that is still in the cache (the last four are). If it is not, each kernel runs in turn with a reference kernel
    of its kind, and the ratio of their times is compared with the baseline's ratio, so that a machine that is slower tonight is no
    regression; a difference of less than a tenth is then undecided. Every night is recorded in the database, where slow drifts show.
    Kernels on a GPU are timed by its own clock, in races and between nights, and need no reference kernel.
    """
    suite, path, page = measured_suite(given), given["baseline"], given["page"]
    first_time = not path.exists()
    device = architecture_here() if suite.is_on_device else None
    baseline = Baseline({}) if first_time else load_baseline(path, device)
    base = kept(baseline.code) if given["base"] is None else checkout(given["base"])
    if base is not None and given["base"] is None:
        note(f"racing against the baseline's version, kept in {base}")
    with open_database(given["database"]) as store:
        warn_if_busy()
        plan = Plan(suite, baseline, base, given["margin"], store, lambda place, problem: str(lookup_in(store.url, problem).schedule))
        found = list(run_night(plan, lambda place: note(f"{place.kernel} on {place.input}")))
    changes = [change for _, change in found]
    if first_time or given["update"]:
        write_baseline(path, [entry for entry, _ in found], device)
        note(f"the baseline is now in {path}")
        _keep()
    if page is not None:
        write_nightly_page(page, suite.key, changes)
    named = {name: [change for change in changes if change.verdict == verdict] for name, verdict in _LISTS.items()}
    ok = False if named["regressions"] else None if named["undecided"] else True
    if given["as_json"]:
        lists = {**named, "items": changes}
        print_json({**{name: [asdict(change) for change in listed] for name, listed in lists.items()}, "ok": ok})
    else:
        _show(changes)
    if ok is None:
        note(f"{len(named['undecided'])} of {len(changes)} items are undecided; --base PATH races against an older version")
    return 1 if ok is False or (ok is None and given["strict"]) else 0


def _keep() -> None:
    """Keep this version for later races. If that is not possible, later runs compare nights instead."""
    try:
        keep()
    except OSError as error:
        note(f"this version cannot be kept for races ({error.strerror or error}); --base PATH names a checkout")


_LISTS = {"regressions": "regression", "improvements": "improvement", "undecided": "undecided"}


def _show(changes: list[Change]) -> None:
    rows = [
        [
            change.kernel,
            change.input,
            show_seconds(change.baseline_time),
            show_seconds(change.time),
            "-" if change.change is None else f"{change.change:.2f}",
            "-" if change.low is None else f"{change.low:.2f} to {change.high:.2f}",
            f"{change.verdict}: {change.message}" if change.message else change.verdict,
        ]
        for change in changes
    ]
    print_table(rows, ("kernel", "input", "before", "now", "change", "interval", "verdict"))
