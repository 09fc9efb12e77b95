"""How a notebook shows a tuning result: the outcome, the course of the search, the fastest trials; ``result.plot()`` draws more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..compiler import html

if TYPE_CHECKING:
    from .tune_result import TuneResult

SHOWN = 10
"""Trials in the table, the fastest ones."""


def result_html(result: TuneResult) -> str:
    """Return facts, a drawing of how the search went, and a table of the fastest trials."""
    timed = [(trial, trial.seconds) for trial in result.measured if trial.seconds is not None]
    fastest = sorted(timed, key=lambda pair: pair[1])[:SHOWN]
    outcome = {
        "best schedule": str(result.best) or "the default one",
        "best time": _milliseconds(result.best_time),
        "default time": "not run to its end" if result.default_time is None else _milliseconds(result.default_time),
        "speedup": result.shown_speedup,
        **({} if result.converted is None else {"bound kernels": str(result.converted)}),
        "trials": f"{len(result.measured)}, {result.failed_trials} failed",
        "database": result.database,
    }
    rows = [(trial.number, _milliseconds(seconds), trial.schedule or "the default one") for trial, seconds in fastest]
    times = [seconds for _, seconds in timed]
    drawing = html.search(times, _milliseconds(min(times)), _milliseconds(max(times))) if len(times) > 1 else ""
    return html.facts(result.problem.expression, outcome) + drawing + html.table(("trial", "time", "schedule"), rows)


def _milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:.4g} ms"
