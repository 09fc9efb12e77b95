"""The progress of a campaign, shown on standard error: as a bar on a terminal or in a notebook, else as a line every few seconds."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..compiler import html
from ..compiler.attention import in_notebook, on_terminal
from ..compiler.frozen import frozen

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

    from .suite import Item

    SuiteReport = Callable[[Item, int, int], "Report"]

_PLAIN_SECONDS = 10.0  # between lines of progress where nobody watches a bar
_CELL_SECONDS = 0.25  # between changes of a notebook's output


@frozen
class Progress:
    """The progress of a campaign after a trial.

    Attributes:
        phase: "preparing", "searching" or "finals".
        done, planned, failed: trials.
        best, default: seconds; None until the default schedule has run.
    """

    phase: str
    done: int = 0
    planned: int = 0
    failed: int = 0
    best: float | None = None
    default: float | None = None


Report = Callable[[Progress], object]


def show_seconds(seconds: float | None) -> str:
    """Return a time with a unit, such as ``1.52 ms``."""
    if seconds is None or not math.isfinite(seconds):
        return "-"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


@contextmanager
def shown_progress(title: str, speaker: str = "tune-kernel") -> Iterator[Report]:
    """Yield a function that shows the progress of a campaign: as a bar on a terminal or below a notebook's cell, else as lines."""
    if in_notebook():
        yield _Cell(title)
        return
    if not on_terminal():
        yield _Lines(title, speaker)
        return
    with _bar() as bar:
        yield _BarReport(bar, bar.add_task(title, total=None, state="preparing"))


@contextmanager
def shown_suite_progress(suite: str, seconds: float | None = None) -> Iterator[SuiteReport]:
    """Yield a function from an item, its number and the number of items to a function that shows the progress of the item's campaign.

    The time left is estimated from the items so far; before the first has ended, from the seconds that each may take.
    """
    begun = time.monotonic()

    def left(number: int, count: int) -> str:
        each = (time.monotonic() - begun) / (number - 1) if number > 1 else seconds
        return "" if each is None else f", about {_show_long(each * (count - number + 1))} left"

    if not on_terminal():

        def lines(item: Item, number: int, count: int) -> Report:
            print(f"tune-kernel: {_title(item, number, count)}{left(number, count)}", file=sys.stderr, flush=True)
            return _Lines(_title(item, number, count))

        yield lines
        return
    with _bar() as bar:
        task = bar.add_task(suite, total=None, state="preparing")

        def report(item: Item, number: int, count: int) -> Report:
            bar.update(task, description=_title(item, number, count) + left(number, count))
            return _BarReport(bar, task)

        yield report


def _show_long(seconds: float) -> str:
    """Return a time in seconds, minutes or hours, whichever unit suits."""
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def _title(item: Item, number: int, count: int) -> str:
    return f"{number}/{count} {item.label} on {item.input.name}"


def _bar() -> Bar:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(bar_width=20), TextColumn("{task.completed}/{task.total} trials"))
    state, console = TextColumn("{task.fields[state]}"), Console(stderr=True)
    return Bar(*columns, TimeElapsedColumn(), state, console=console, transient=True, refresh_per_second=4)


@frozen
class _BarReport:
    """Shows progress as a bar on a terminal."""

    bar: Bar
    task: Any

    def __call__(self, progress: Progress) -> None:
        self.bar.update(self.task, completed=progress.done, total=progress.planned, state=_state(progress))


class _Cell:
    """Shows progress as an output of a notebook's cell, which is overwritten; it needs no widgets, and stays in the file."""

    def __init__(self, title: str) -> None:
        from IPython.display import display  # pyright: ignore[reportMissingImports] there is one where there are notebooks

        self._title = title
        self._output = display(self._made(Progress("preparing")), raw=True, display_id=True)
        self._last, self._phase = time.monotonic(), "preparing"

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if progress.phase != self._phase or progress.done == progress.planned or now - self._last >= _CELL_SECONDS:
            self._last, self._phase = now, progress.phase
            self._output.update(self._made(progress), raw=True)

    def _made(self, progress: Progress) -> dict[str, str]:
        text = f"{self._title}: {progress.done} of {progress.planned or '?'} trials, {_state(progress)}"
        bar = f"<progress value='{progress.done}' max='{progress.planned}'></progress> " if progress.planned else ""
        return {"text/plain": text, "text/html": f"<div>{bar}{html.escape(text)}</div>"}


class _Lines:
    """Shows progress as lines: one at the beginning of each phase but the search, and one every ten seconds."""

    def __init__(self, title: str, speaker: str = "tune-kernel") -> None:
        self._title, self._speaker = title, speaker
        self._last = time.monotonic()

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if progress.phase == "finals" or now - self._last >= _PLAIN_SECONDS:
            self._last = now
            line = f"{self._title}: {progress.done} of {progress.planned} trials, {_state(progress)}"
            print(f"{self._speaker}: {line}", file=sys.stderr, flush=True)


def _state(progress: Progress) -> str:
    if progress.best is None or progress.default is None:
        return progress.phase
    failed = f", {progress.failed} failed" if progress.failed else ""
    return f"{progress.phase}: best {show_seconds(progress.best)}, {progress.default / progress.best:.2f} times the default's speed{failed}"


