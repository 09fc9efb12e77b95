"""When a suite's last run began: ``suite --resume`` counts as done what ended since then, and a run without it measures all anew."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from ..compiler.frozen import frozen
from ..compiler.native.folders import cache_folder
from .records import digest, now
from .settings import Budget
from .written import write_json


@frozen
class Run:
    """A run of a suite.

    Attributes:
        begun: the moment since which measurements belong to it; empty if that is not known, and then all belong to it.
        trials, seconds: what each item was given; None: no limit, or not known.
    """

    begun: str = ""
    trials: int | None = None
    seconds: float | None = None

    def gave(self, budget: Budget) -> bool:
        """Return whether an item that ended in this run had at least the trials and seconds of a budget."""
        if self.trials is None or self.seconds is None or budget.seconds is None:
            return False  # an item without a time limit ends with its trials, which are counted elsewhere
        return budget.trials <= self.trials and budget.seconds <= self.seconds


def begin(suite: str, database: str, budget: Budget) -> Run:
    """Return a run that begins now, and remember it for ``resume``."""
    run, place = Run(now(), budget.trials, budget.seconds), _place(suite, database)
    if not write_json(place, asdict(run)):
        with suppress(OSError):
            place.unlink(missing_ok=True)  # without the file, a resumed run counts whatever the database holds
    return run


def resume(suite: str, database: str) -> Run:
    """Return the last run."""
    try:
        found = json.loads(_place(suite, database).read_text(encoding="utf-8"))
        begun, trials, seconds = found["begun"], found.get("trials"), found.get("seconds")
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return Run()
    if not isinstance(begun, str):
        return Run()
    return Run(begun, trials if isinstance(trials, int) else None, seconds if isinstance(seconds, int | float) else None)


def _place(suite: str, database: str) -> Path:
    return cache_folder().parent / "suites" / f"{digest(suite, database)}.json"
