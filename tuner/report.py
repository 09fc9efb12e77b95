"""One static HTML page of what the database holds, or of a night's comparison."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from ..compiler.errors import DataError
from ..compiler.native.machine import this_machine
from .database import Database
from .environment import code_version, commit
from .nightly.changes import Change
from .plots import STYLE, Bar, bar_chart, line_chart, step_chart
from .records import Decision, Input, Measurement, Workload, now

_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>
body {{ font: 15px/1.45 sans-serif; max-width: 70em; margin: 2em auto; padding: 0 1em; color: #222; }}
table {{ border-collapse: collapse; }} td, th {{ padding: 0.2em 0.8em 0.2em 0; text-align: left; vertical-align: top; }}
th {{ border-bottom: 1px solid #999; }} td.number {{ text-align: right; white-space: nowrap; }} code {{ font-size: 13px; }}
{style}</style></head><body>
{body}
</body></html>
"""
_MOST_LINES = 6  # campaigns in one plot


def write_report(path: Path, database: Database) -> None:
    """Write tables and plots of all decisions and trials.

    Raises:
        DataError: the file cannot be written.
    """
    _write(path, "sparsetune: what was tuned", "\n".join(_body(database)))


def write_nightly_page(path: Path, suite: str, changes: Sequence[Change]) -> None:
    """Write a night's comparison with its baseline.

    Raises:
        DataError: the file cannot be written.
    """
    known = [change for change in changes if change.change is not None]
    bars = [
        Bar(f"{change.kernel}, {change.input}", change.change or 0.0, change.low, change.high, is_bad=change.verdict == "regression")
        for change in known
    ]
    rows = [
        [change.kernel, change.input, _time(change.baseline_time), _time(change.time), _ratio(change.change),
         "-" if change.low is None else f"{change.low:.2f} to {change.high:.2f}", change.against or "-",
         f"{change.verdict}: {change.message}" if change.message else change.verdict]
        for change in changes
    ]  # fmt: skip
    counts = Counter(change.verdict for change in changes)
    told = ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
    where = f"{this_machine().model}, {this_machine().system}, version {code_version()}, commit {commit() or 'unknown'}"
    body = [
        f"<h1>{escape(suite)}: tonight</h1>",
        f"<p>{escape(now()[:16])} UTC, {escape(where)}: {escape(told)}.</p>",
        "<p>Time over the older one, with its 95% interval; above 1 is slower. Against the base both versions ran in turn; against the "
        "baseline both times stand over those of a reference kernel that ran in turn with each.</p>",
        bar_chart(bars, "time over the older one"),
        _table(("kernel", "input", "before", "now", "change", "interval", "against", "verdict"), rows),
        "<h2>Over the nights</h2><p>Time over the reference, night by night since the baseline, over the first night's.</p>",
        *(line_chart(name, values) for name, values in _series(changes)),
    ]
    _write(path, f"sparsetune nightly: {suite}", "\n".join(body))


def _series(changes: Sequence[Change]) -> Iterable[tuple[str, list[float]]]:
    for change in changes:
        if len(change.nights) > 1:
            yield f"{change.kernel}, {change.input}", [night / change.nights[0] for night in change.nights]


def _body(database: Database) -> Iterable[str]:
    stats = database.stats()
    yield "<h1>What was tuned</h1>"
    yield f"<p>{escape(database.url)}: " + ", ".join(f"{count} {escape(name)}" for name, count in stats.items()) + "</p>"
    decisions = _latest(database.decisions())
    if not decisions:
        yield "<p>No campaign has been finished yet: <code>tune-kernel tune</code> or <code>tune-kernel suite quick</code> runs one.</p>"
        return
    yield "<h2>Speed-up over the default schedule</h2>"
    yield bar_chart([_kernel_bar(workload, found) for workload, found in _by_workload(decisions).items()], "speed-up by kernel")
    for workload, found in _by_workload(decisions).items():
        yield from _section(database, workload, found)


def _section(database: Database, workload: Workload, decisions: list[Decision]) -> Iterable[str]:
    environment = decisions[-1].environment
    yield f"<h2><code>{escape(workload.kernel)}</code></h2>"
    yield (
        f"<p>{escape(workload.formats)}; {escape(workload.dtype)}; {workload.threads} threads; {escape(workload.target)}; "
        f"{escape(str(environment.get('processor', workload.machine)))}</p>"
    )
    bars = [Bar(_name(found.input), found.speedup, found.speedup_low, found.speedup_high) for found in decisions]
    yield bar_chart(bars, "speed-up by input, with its 95% interval")
    rows = [
        [_name(found.input), _time(found.default_seconds), _time(found.seconds), _ratio(found.speedup), found.schedule or "(default)"]
        for found in decisions
    ]
    yield _table(("input", "default", "best", "speed-up", "schedule"), rows)
    series = [(_name(found.input), _trial_times(database.measurements(campaign=found.campaign))) for found in decisions[:_MOST_LINES]]
    yield "<p>Best time so far in milliseconds, by trial:</p>" + step_chart(series, "best time by trial")


def _trial_times(measurements: Iterable[Measurement]) -> list[float]:
    """Return the milliseconds of every trial in order; one that failed counts as the slowest before it."""
    times: list[float] = []
    for measurement in measurements:
        if measurement.role != "final" and (measurement.seconds is not None or times):
            times.append(1000 * measurement.seconds if measurement.seconds is not None else max(times))
    return times


def _latest(decisions: Iterable[Decision]) -> list[Decision]:
    return list({(decision.workload.key, decision.input.key): decision for decision in decisions}.values())


def _by_workload(decisions: list[Decision]) -> dict[Workload, list[Decision]]:
    found: dict[Workload, list[Decision]] = {}
    for decision in decisions:
        found.setdefault(decision.workload, []).append(decision)
    return found


def _kernel_bar(workload: Workload, decisions: list[Decision]) -> Bar:
    mean = math.exp(sum(math.log(decision.speedup) for decision in decisions) / len(decisions))
    return Bar(f"{workload.kernel}, {workload.threads} threads", mean)


def _name(entry: Input) -> str:
    return entry.name or " x ".join(str(extent) for _, extent in entry.extents)


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "".join("<tr>" + "".join(_cell(value) for value in row) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def _cell(value: str) -> str:
    kind = ' class="number"' if value[:1].isdigit() else ""
    return f"<td{kind}>{escape(value)}</td>"


def _time(seconds: float | None) -> str:
    return "-" if seconds is None else f"{1000 * seconds:.4g} ms"


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _write(path: Path, title: str, body: str) -> None:
    try:
        path.write_text(_PAGE.format(title=escape(title), style=STYLE, body=body), encoding="utf-8")
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror or error}") from None
