"""The section on races of position split against row split on skewed rows, and its chart."""

from __future__ import annotations

from collections.abc import Mapping

from .drawings import Bar, bar_chart
from .markdown import milliseconds, ratio, table
from .records import Races, Row, times_faster
from .schedule_races import (
    DEFAULT_SUMS,
    HEAVIER,
    LIGHTER,
    ROWS,
    SHARES,
    SKEW_SCHEDULES,
    SKEWED,
    SKEWS,
    imbalance,
    predicted_factor,
)


def skew_section(races: Races, command: str) -> str:
    """Return the section, with the command that makes it; an empty text where there are no races."""
    lines = []
    for kernel in SKEW_SCHEDULES:
        for name, rows in _skewed(races, kernel):
            for sums in ("", DEFAULT_SUMS):
                split, shares = (rows.get((variant + sums, 2)) for variant in (ROWS, SHARES))
                found = times_faster(split, shares)
                if found is not None and split is not None and shares is not None:
                    least = f"{split.times.least / shares.times.least:.2f}"
                    shown = (milliseconds(split), milliseconds(shares), ratio(found), least)
                    lines.append((kernel + sums, name, *shown, f"{_imbalance(name):.2f}", *_predictions(rows, sums)))
    if not lines:
        return ""
    columns = ("kernel", "rows", "row split", "position split", "measured", "by least times", "imbalance of nonzeros", "of time",
               "two threads over one", "predicted")  # fmt: skip
    return f"""## Position split against row split on skewed rows

Two threads, rows whose lengths fall by exp(-skew) from the first to the last, in this order (`random:skewed` of the generator): equal
numbers of rows against 64 tiles of equal numbers of nonzeros. The imbalance of nonzeros is twice the share of them that the heavier half of
the rows has: the factor to expect if every nonzero costs the same and two threads are twice as fast as one. This nearly holds with
long rows (hundreds of nonzeros, the dense operand in the second-level cache): there the position split reaches {_reached(races)} of that
factor. With rows of tens of nonzeros and an operand larger than the caches, nonzeros of long rows cost less than those of short ones, which
the imbalance of time shows (either half was timed by itself, with one thread), and threads that share memory slow each other down until
the lighter half is done. Predicted is the factor for the imbalance of time at the speedup that two threads have over one with the position
split. By least times: ratios of the fastest rounds, in which nothing else ran on the second core. SpMV adds one by one in some lines
(`unroll(j, 1)`), and as by default in the others.

    {command} --only skew

![measured and predicted](scheduling.svg)

""" + table(columns, lines)


def _skewed(races: Races, kernel: str) -> list[tuple[str, dict[tuple[str, int], Row]]]:
    """Return (rows, races) of a kernel, ordered by kind of rows and skew."""
    found = dict(races.by_variant("skew", kernel))
    return [(name, found[name]) for rows in SKEWED[kernel] for skew in SKEWS if (name := rows.format(skew)) in found]


def _reached(races: Races) -> str:
    """Return the least and the greatest share of the predicted factor (the imbalance of nonzeros) that is reached on long rows."""
    parts = []
    for kernel in SKEW_SCHEDULES:
        for name, rows in _skewed(races, kernel):
            for sums in ("", DEFAULT_SUMS) if name.endswith("long rows") else ():
                found = times_faster(rows.get((ROWS + sums, 2)), rows.get((SHARES + sums, 2)))
                parts += [found.ratio / _imbalance(name)] if found is not None else []
    return f"{min(parts):.0%} to {max(parts):.0%}" if parts else "most"


def _imbalance(name: str) -> float:
    return imbalance(float(name.partition(",")[0].removeprefix("skew ")))


def _predictions(rows: Mapping[tuple[str, int], Row], sums: str) -> tuple[str, str, str]:
    """Return the imbalance of time, the speedup of two threads with equal shares of nonzeros, and the factor that they predict."""
    other = times_faster(rows.get((LIGHTER + sums, 1)), rows.get((HEAVIER + sums, 1)))
    speedup = times_faster(rows.get((SHARES + sums, 1)), rows.get((SHARES + sums, 2)))
    if other is None or speedup is None:
        return "", "", ""
    unequal = 2 / (1 + other.ratio)
    return f"{unequal:.2f}", f"{speedup.ratio:.2f}", f"{predicted_factor(unequal, speedup.ratio):.2f}"


def imbalance_chart(races: Races) -> str:
    """Return a chart of the measured and the predicted factors; an empty text where there are none."""
    bars = []
    for kernel in SKEW_SCHEDULES:
        for name, rows in _skewed(races, kernel):
            found = times_faster(rows.get((ROWS, 2)), rows.get((SHARES, 2)))
            if found is not None:
                *_, predicted = _predictions(rows, "")
                bars.append(Bar(f"{kernel}, {name}", found.ratio, found.low, found.high))
                bars.append(Bar("predicted", float(predicted or _imbalance(name))))
    return bar_chart(bars, "row split over position split, two threads") if bars else ""
