"""``tune-kernel nightly``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from ..database import default_url, open_database
from ..lookup import lookup_in
from ..nightly import Change, Entry, compare_entries, measure_suite, read_baseline, write_baseline
from ..problem import Problem
from ..report import write_nightly_page
from ..suite import Item
from . import options
from .help import ExampleCommand
from .output import note, print_json, print_table, require_compiler, show_seconds, warn_if_busy
from .suite import suite_of


@click.command(
    "nightly",
    cls=ExampleCommand,
    examples=(
        ("tune-kernel nightly quick --baseline quick.json", "the first time: measure, and write the baseline"),
        ("tune-kernel nightly quick --baseline quick.json --report night.html", "later: measure again and compare"),
    ),
)
@options.together(
    options.suite,
    click.option("--baseline", required=True, type=click.Path(dir_okay=False, path_type=Path),
                 help="What to compare with; made if missing."),
    click.option("--update", is_flag=True, help="Make this night's times the new baseline."),
    click.option("--margin", type=click.FloatRange(0, min_open=True), default=0.25, show_default=True,
                 help="A kernel has regressed when it is slower by more than this part, and surely so."),
    click.option("--report", "page", type=click.Path(dir_okay=False, path_type=Path), help="Write a page with plots."),
    options.suite_threads, options.database, options.as_json,
)  # fmt: skip
def command(**given: Any) -> int:
    """Measure a suite again with the baseline's schedules, and compare. Status 1 on a regression.

    Each kernel runs in turn with a fixed yardstick, and ratios to it are compared, so that a machine that is slower tonight is no
    regression.
    """
    require_compiler()
    suite, path, page = suite_of(given), given["baseline"], given["page"]
    first_time = not path.exists()
    baseline = {} if first_time else read_baseline(path)
    open_database(given["database"]).close()  # a database that cannot be read is told before anything is measured
    warn_if_busy()
    entries = list(measure_suite(suite, _choose(baseline, given["database"]), lambda item: note(f"{item.label} on {item.input.name}")))
    if first_time or given["update"]:
        write_baseline(path, entries)
        note(f"the baseline is now in {path}")
    changes = compare_entries(entries, baseline, given["margin"])
    if page is not None:
        write_nightly_page(page, suite.name, changes)
    regressions, improvements = ([change for change in changes if change.verdict == verdict] for verdict in ("regression", "improvement"))
    if given["as_json"]:
        lists = {"regressions": regressions, "improvements": improvements, "items": changes}
        print_json({**{name: [asdict(change) for change in found] for name, found in lists.items()}, "ok": not regressions})
    else:
        _show(changes)
    return 1 if regressions else 0


def _choose(baseline: Mapping[tuple[str, str], Entry], database: str | None) -> Callable[[Item, Problem], str]:
    """Return a function from an item to its schedule: the baseline's, else what lookup says."""

    def choose(item: Item, problem: Problem) -> str:
        known = baseline.get((item.label, item.input.name))
        return known.schedule if known is not None else str(lookup_in(database or default_url(), problem).schedule)

    return choose


def _show(changes: list[Change]) -> None:
    rows = [
        [
            change.kernel,
            change.input,
            show_seconds(change.baseline_time),
            show_seconds(change.time),
            "-" if change.change is None else f"{change.change:.2f}",
            f"{change.verdict}: {change.message}" if change.message else change.verdict,
        ]
        for change in changes
    ]
    print_table(rows, ("kernel", "input", "before", "now", "change", "verdict"))
