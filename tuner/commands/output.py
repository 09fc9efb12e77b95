"""What commands print: one JSON object or a few lines on standard output, progress on standard error."""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from ...compiler.native.toolchain import find_compiler
from ..session import Progress, Report

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

    from ..database import Database
    from ..suite import Item

    SuiteReport = Callable[[Item, int, int], Report]

_PLAIN_SECONDS = 10.0  # between lines of progress where nobody watches a bar


def print_json(value: dict[str, Any]) -> None:
    """Print one JSON object; what JSON cannot say (NaN, infinity) becomes null."""
    print(json.dumps(_plain(value), indent=2))


def print_table(rows: Sequence[Sequence[str]], headings: Sequence[str]) -> None:
    """Print rows in columns, numbers to the right."""
    table = [list(headings), *(list(row) for row in rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(headings))]
    numeric = [all(_is_number(row[column]) for row in rows) for column in range(len(headings))]
    for row in table:
        cells = (cell.rjust(width) if right else cell.ljust(width) for cell, width, right in zip(row, widths, numeric, strict=True))
        print("  ".join(cells).rstrip())


def show_seconds(seconds: float | None) -> str:
    """Return a time with a unit, such as ``1.52 ms``."""
    if seconds is None or not math.isfinite(seconds):
        return "-"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def leave(status: int) -> NoReturn:
    """End the process without what is done at its end."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def note(message: str) -> None:
    """Tell something beside the result."""
    print(f"tune-kernel: {message}", file=sys.stderr, flush=True)


def require_compiler() -> None:
    """Refuse to go on without a C compiler. Raises ``BuildError``, which names the package to install."""
    find_compiler()


@contextmanager
def interruptible(store: Database) -> Iterator[None]:
    """Say how to go on when a campaign is interrupted."""
    try:
        yield
    except KeyboardInterrupt as interruption:
        interruption.add_note(f"every finished trial is kept in {store.url}: run the same command again to go on")
        raise


def warn_if_busy() -> None:
    """Say so when other programs are using the cores that are to be measured."""
    from ..environment import load_per_core

    load = load_per_core()
    if load is not None and load > 0.5:
        note(f"other programs are using this machine (load {load:.1f} a core): times will be unreliable, winners less so")


@contextmanager
def shown_progress(title: str) -> Iterator[Report]:
    """Yield a function that shows where a campaign is: a bar on a terminal, a line now and then elsewhere."""
    if not sys.stderr.isatty():
        yield _Lines(title)
        return
    with _bar() as bar:
        yield _BarReport(bar, bar.add_task(title, total=None, state="preparing"))


@contextmanager
def shown_suite_progress(suite: str) -> Iterator[SuiteReport]:
    """Yield a function from an item, its number and their count to a function that shows where the item's campaign is."""
    if not sys.stderr.isatty():
        yield lambda item, number, count: _Lines(_title(item, number, count))
        return
    with _bar() as bar:
        task = bar.add_task(suite, total=None, state="preparing")

        def report(item: Item, number: int, count: int) -> Report:
            bar.update(task, description=_title(item, number, count))
            return _BarReport(bar, task)

        yield report


def _title(item: Item, number: int, count: int) -> str:
    return f"{number}/{count} {item.label} on {item.input.name}"


def _bar() -> Bar:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(bar_width=20), TextColumn("{task.completed}/{task.total} trials"))
    state, console = TextColumn("{task.fields[state]}"), Console(stderr=True)
    return Bar(*columns, TimeElapsedColumn(), state, console=console, transient=True, refresh_per_second=4)


@dataclass(frozen=True)
class _BarReport:
    """Shows progress as a bar on a terminal."""

    bar: Bar
    task: Any

    def __call__(self, progress: Progress) -> None:
        self.bar.update(self.task, completed=progress.done, total=progress.planned, state=_state(progress))


class _Lines:
    """Shows progress as lines: when a phase begins that is not the search, and every ten seconds."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._last = time.monotonic()

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if progress.phase == "finals" or now - self._last >= _PLAIN_SECONDS:
            self._last = now
            note(f"{self._title}: {progress.done} of {progress.planned} trials, {_state(progress)}")


def _state(progress: Progress) -> str:
    if progress.best is None or progress.default is None:
        return progress.phase
    failed = f", {progress.failed} failed" if progress.failed else ""
    return f"{progress.phase}: best {show_seconds(progress.best)}, {progress.default / progress.best:.2f} times the default's speed{failed}"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value.item() if hasattr(value, "item") else value


def _is_number(text: str) -> bool:
    return text[:1].isdigit() or text in ("-", "")
