"""Sparse convolutions beside dense ones and other libraries: ``python -m sparsetune.tuner.reports.convolution``.

Writes ``convolutions.md`` after Liu et al., "Compiler support for sparse tensor convolutions", Figures 15, 16, 17 and 20. What is in
``convolutions.csv`` is not measured again: a run goes on where the last one was stopped. Runs are timed in turn (``race``), on one
thread unless said otherwise; visited positions are iterations that a counting build counts.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from ...compiler.frozen import frozen
from .convolution_cases import BEST, PARTS, Contest, Entry, entries
from .drawings import line_chart
from .markdown import table
from .partial import Partial
from .publishing import publish, results_option
from .race import Pace, race
from .records import Taken
from .states import States

COMMAND = "python -m sparsetune.tuner.reports.convolution"
FILE = "convolutions.csv"
AHEAD = (0.97, 0.99)
"""The sparsities for which the page gives speed-ups of the sparse kernels."""


@frozen
class Point(Taken):
    """One contestant on one input.

    Attributes:
        part: one of ``PARTS``.
        case: the input and expression.
        who: the order of loops, or the name of another contestant.
        sparsity: share of the positions that are not stored.
        seconds: median of a run; 0 where positions were only counted.
        visited: positions that loops visit; 0 where they were not counted.
    """

    part: str = ""
    case: str = ""
    who: str = ""
    sparsity: float = 0.0
    seconds: float = 0.0
    visited: int = 0


def points(part: str, contest: Contest, pace: Pace) -> list[Point]:
    """Time a contest; only count positions where the pace has no rounds."""
    told = {"part": part, "case": contest.case, "sparsity": contest.sparsity}
    if not pace.most:
        return [Point(**told, who=who, visited=count) for who, count in contest.visited.items()]
    found = race(contest.runs, pace)
    return [Point(**told, who=who, seconds=series.median, visited=contest.visited.get(who, 0)) for who, series in found.items()]


def is_known(entry: Entry, found: Iterable[Point], timed: bool) -> bool:
    """Whether a contest was measured, or at least counted."""
    return any(
        (one.part, one.case) == (entry.part, entry.case) and entry.sparsity in (None, one.sparsity) and (one.seconds or not timed)
        for one in found
    )  # fmt: skip


def page(found: Sequence[Point]) -> str:
    """Return the page: a summary, then a table for each case, with a row for each contestant and a column for each sparsity."""
    parts = [
        "# Sparse convolutions",
        f"`{COMMAND}` wrote this page, after Liu et al., \"Compiler support for sparse tensor convolutions\"; rows: `{FILE}`.",
        States(found).text,
        "Milliseconds a run, the median of runs in turn, and in brackets the positions that loops visit, by the share of positions that are"
        " not stored. Filters have 3 values a mode; one thread, unless said otherwise.",
        *_orders(found), *_rivals(found, "rivals"), *_rivals(found, "sparsifier"), *_patterns(found),
    ]  # fmt: skip
    for part in PARTS:
        for case in _cases(found, part):
            own = [one for one in found if (one.part, one.case) == (part, case)]
            shares = sorted({one.sparsity for one in own})
            cells = {(one.who, one.sparsity): _cell(one) for one in own}
            rows = [[who, "", *(cells.get((who, share), "") for share in shares)] for who in dict.fromkeys(one.who for one in own)]
            parts += [f"### {part}: {case}", table(("", "", *(f"{share:.4g}" for share in shares)), rows)]
    return "\n\n".join(parts) + "\n"


def _cases(found: Iterable[Point], part: str) -> list[str]:
    return list(dict.fromkeys(one.case for one in found if one.part == part))


def times(found: Iterable[Point], part: str, case: str) -> dict[str, dict[float, float]]:
    """Return the seconds of one case that was timed, by contestant and sparsity."""
    made: dict[str, dict[float, float]] = {}
    for one in found:
        if (one.part, one.case) == (part, case) and one.seconds:
            made.setdefault(one.who, {})[one.sparsity] = one.seconds
    return made


def crossing(ours: dict[float, float], other: dict[float, float]) -> str:
    """Return the measured sparsity from which on ours are faster."""
    ahead = ""
    for share in sorted(ours.keys() & other.keys(), reverse=True):
        if ours[share] > other[share]:
            break
        ahead = f"{share:.4g}"
    return ahead or "never"


def _ratios(ours: dict[float, float], other: dict[float, float]) -> list[str]:
    return [f"{other[share] / ours[share]:.2f}" if share in ours and share in other else "" for share in AHEAD]


def _orders(found: Sequence[Point]) -> list[str]:
    rows = []
    for case in _cases(found, "orders"):
        own = times(found, "orders", case)
        for who, ours in own.items():
            order = who.removeprefix("sparse ")
            if order != who and (dense := own.get(f"dense {order}")):
                rows.append([case, order, crossing(ours, dense), *_ratios(ours, dense), crossing(ours, own.get("dense, vectors", {}))])
    if not rows:
        return []
    header = ("", "order", "ahead from", *(f"times as fast at {share}" for share in AHEAD), "ahead of vectors from")
    pictures = " ".join(f"![{case}](convolutions_{case}.svg)" for case in _cases(found, "orders"))
    return [
        "## Orders of loops (their Figure 17)",
        "Sparse loops beside the same nest on a dense array, vectors switched off in both, and beside the dense kernel with vectors.",
        table(header, rows), pictures,
    ]  # fmt: skip


RIVALS = {
    "rivals": ("Other libraries on dense data", "What is chosen where nothing was tuned."),
    "sparsifier": ("MLIR's sparsifier", "On the same sparse operands, one thread, where LLVM 17 or newer has its programs installed."),
}
"""Headings and introductions of the parts that compare ours with others."""


def _rivals(found: Sequence[Point], part: str) -> list[str]:
    rows = []
    for case in _cases(found, part):
        own = times(found, part, case)
        ours = own.pop("ours", {})
        for who, other in own.items():
            if len(ours) == 1:  # a picture has one sparsity
                ((share, seconds),) = ours.items()
                rows.append([case, who, f"at {share:.4g}: {other[share] / seconds:.2f}", "", ""])
            else:
                rows.append([case, who, f"from {crossing(ours, other)}", *_ratios(ours, other)])
    if not rows:
        return []
    header = ("", "beside", "ahead", *(f"times as fast at {share}" for share in AHEAD))
    heading, said = RIVALS[part]
    return [f"## {heading}", said, table(header, rows)]


def _patterns(found: Sequence[Point]) -> list[str]:
    rows = []
    for case in _cases(found, "patterns"):
        own = {who: next(iter(series.values())) for who, series in times(found, "patterns", case).items()}
        chosen = {who: own.pop(who) for who in ("untuned", BEST) if who in own}
        if own and len(chosen) == 2:
            best = min(own, key=lambda who: own[who])
            seconds = own[best]
            rows.append([case, best, *(f"{value / seconds:.2f}" for value in (max(own.values()), chosen["untuned"], chosen[BEST]))])
    if not rows:
        return []
    header = ("", "best order", "worst order", "untuned", BEST)
    return ["## Patterns (their Figure 20)", "Times over that of the best order.", table(header, rows)]


def _wanting(part: str) -> str:
    return "mlir-opt and llc are not installed" if part == "sparsifier" else "SPARSETUNE_DATA names the folder of the data"


def _cell(one: Point) -> str:
    return (f"{1e3 * one.seconds:.3g}" if one.seconds else "") + (f" ({one.visited})" if one.visited else "")


def write(found: Sequence[Point], results: Path) -> None:
    """Write the page and its pictures, whole or not at all."""
    for case in _cases(found, "orders"):
        lines = {
            who: [(1 - share, 1e3 * value) for share, value in sorted(series.items(), reverse=True) if share < 1]
            for who, series in times(found, "orders", case).items() if not who.startswith("dense ") or "vectors" in who
        }  # fmt: skip
        if any(lines.values()):
            publish(results / f"convolutions_{case}.svg", line_chart(lines, "share of the positions that are stored", "milliseconds"))
    publish(results / "convolutions.md", page(found))


@click.command()
@results_option
@click.option("--part", "parts", multiple=True, type=click.Choice(PARTS), help="Only these.")
@click.option("--input", "inputs", multiple=True, help="Matrices or images: files or names of the catalogue.")
@click.option("--seconds", default=4.0, show_default=True, help="Time of one contest.")
@click.option("--tuning", default=30.0, show_default=True, help="Seconds that an input of the part 'patterns' is tuned.")
@click.option("--minutes", type=float, help="Begin no contest after so many; the next run goes on.")
@click.option("--counts", is_flag=True, help="Count visited positions; time nothing.")
@click.option("--page", "only_page", is_flag=True, help="Write the page of the rows that are there.")
def main(
    results: Path, parts: tuple[str, ...], inputs: tuple[str, ...], seconds: float, tuning: float, minutes: float | None, counts: bool,
    only_page: bool,
) -> None:  # fmt: skip
    """Measure sparse convolutions; what is there already is not measured again."""
    kept = Partial(results / FILE, Point)
    pace = Pace(seconds, 3, 0 if counts else 101)
    started = time.monotonic()
    asked = () if only_page else entries(inputs)
    for entry in asked:
        if (parts and entry.part not in parts) or is_known(entry, kept.rows, bool(pace.most)):
            continue
        if minutes is not None and time.monotonic() - started > 60 * minutes:
            click.echo("time is up; the next run goes on here", err=True)
            break
        contest = entry.made(tuning)
        if contest is None:
            click.echo(f"{entry.part}: {entry.case} is not here: {_wanting(entry.part)}", err=True)
            continue
        kept.add(points(entry.part, contest, pace))
        click.echo(f"{entry.part}: {contest.case} at {contest.sparsity:.4g}", err=True)
    if not kept.rows:
        raise click.ClickException("nothing was measured")
    write(kept.rows, results)


if __name__ == "__main__":
    main()
