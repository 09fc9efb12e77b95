"""``results/kernels.md``: generated kernels beside other libraries, from the races of ``decisions.csv``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..peers.mkl_peer import UNSORTED
from .decision_cases import CASES, Item
from .decision_races import DEFAULT, FAILED, LEFT_OUT, OURS, STATIC, TUNED, Figure
from .drawings import sorted_chart
from .markdown import geometric_mean, table
from .states import States

LIBRARIES = {"scipy": "SciPy", "mkl": "MKL", UNSORTED: "MKL unsorted", "sparse": "PyData/sparse"}
PLOT = "kernels.svg"
_SHOWN = (DEFAULT, STATIC, TUNED)
_COUNTERS = ("GB/s", "its GB/s", "flops", "loads", "iterations", "largest share")
_BEHIND = ("kernel", "input", "type", "threads", "fastest", "static", "tuned", *_COUNTERS)
_SHARES = (0.0, 0.05, 0.25, 0.5, 0.75)


def kernels_page(rows: Sequence[Figure], wanted: Sequence[Item], command: str) -> str:
    """Return the page; the arguments are those of ``decisions_page``."""
    by_item = _by_item(rows)
    beside = _beside(by_item)
    left_out = sum(row.column == LEFT_OUT for row in rows)
    behind = [item for item in beside if min(_ratio(beside[item], STATIC), _ratio(beside[item], TUNED)) < 1]
    return f"""# Kernels beside other libraries

{len(by_item)} of {len(wanted) - left_out} items measured, {len(beside)} of them beside at least one library. Every item ran in one process,
in turn: our default schedule, the static choice, the tuned schedule, and each installed library whose result agrees with ours (SciPy and
PyData/sparse always use one thread; a library that took ten times as long as our default was timed once). MKL makes products of two
sparse matrices with unsorted rows; it then sorts them (MKL) or leaves them (MKL unsorted). Ours are sorted. TACO and SPLATT are not part of
this page.

{States([row for found in by_item.values() for row in found.values()]).text}

    {command}

## The fastest library's time over ours

![The ratios of all items, sorted]({PLOT})

By geometric mean; then the least, and the values below which the given shares of items lie. Above 1 ours is faster.

{table(("kernel", "type, threads", "items", "column", "mean", "least", *(f"{share:.0%}" for share in _SHARES[1:])), _profiles(beside))}

## Items where the static choice or the tuned schedule is behind

{len(behind)} of {len(beside)}. Counters are for the slower of the two columns, where they were taken. GB/s are the bytes of operands and
result, each once, over our time and over the library's; near the rate of reading alone, memory is the limit. The exact counts are of our
schedule, run once in one thread without vectors: operations on values, elements that are read, and iterations of loops (many for each
operation if rows are short). With two threads the last column is the larger share of the work over half of it, where the pattern tells.

{table(_BEHIND, [_behind(item, beside[item]) for item in _ordered(behind)])}

## Every item

Medians in ms.

{table(("kernel", "input", "type", "threads", *_SHOWN, *LIBRARIES.values()), [_times(item, by_item[item]) for item in _ordered(by_item)])}

Intervals and schedules are in `decisions.csv`.
"""


def profile_plot(rows: Sequence[Figure]) -> str:
    """Return a plot of the fastest library's time over ours, as SVG: all items sorted, a line for each column and number of threads."""
    beside, lines = _beside(_by_item(rows)), dict[str, list[float]]()
    for threads in sorted({item.threads for item in beside}):
        for column in _SHOWN:
            found = [_ratio(figures, column) for item, figures in beside.items() if item.threads == threads]
            lines[f"{column}, {threads} thread{'s' * (threads > 1)}"] = found
    return sorted_chart(lines, "share of the items", "time of the fastest library over ours")


def _by_item(rows: Sequence[Figure]) -> dict[Item, dict[str, Figure]]:
    """Return the figures of each item that was measured, by column."""
    found: dict[Item, dict[str, Figure]] = {}
    for row in rows:
        if row.column not in (LEFT_OUT, FAILED):
            found.setdefault(row.item, {})[row.column] = row
    return found


def _beside(by_item: Mapping[Item, dict[str, Figure]]) -> dict[Item, dict[str, Figure]]:
    """Return the items that ran beside a library."""
    return {item: found for item, found in by_item.items() if fastest(found) is not None}


def fastest(found: Mapping[str, Figure]) -> Figure | None:
    """Return the row of the fastest library; None where there is none."""
    return min((row for column, row in found.items() if column not in OURS), key=lambda row: row.seconds, default=None)


def _ratio(found: Mapping[str, Figure], column: str) -> float:
    library = fastest(found)
    assert library is not None
    return found[column].speed / library.speed


def _ordered(items: Sequence[Item] | Mapping[Item, object]) -> list[Item]:
    return sorted(items, key=lambda one: (list(CASES).index(one.kernel), one.input, one.dtype, one.threads))


def _profiles(beside: Mapping[Item, Mapping[str, Figure]]) -> list[tuple[str, ...]]:
    kinds: dict[tuple[str, str], list[Item]] = {}
    for item in _ordered(beside):
        kinds.setdefault((item.kernel, f"{item.dtype}, {item.threads}"), []).append(item)
    found = []
    for (kernel, kind), items in kinds.items():
        for column in _SHOWN:
            ratios = sorted(_ratio(beside[item], column) for item in items)
            shares = [ratios[min(len(ratios) - 1, int(share * len(ratios)))] for share in _SHARES]
            found.append((kernel, kind, str(len(items)), column, *(f"{value:.2f}" for value in (geometric_mean(ratios), *shares))))
    return found


def _behind(item: Item, found: Mapping[str, Figure]) -> tuple[str, ...]:
    library = fastest(found)
    assert library is not None
    ratios = (f"{_ratio(found, column):.2f}" for column in (STATIC, TUNED))
    slower = min((found[column] for column in (STATIC, TUNED)), key=lambda row: row.speed)
    rates = (f"{slower.bytes / row.seconds / 1e9:.1f}" for row in (slower, library))
    counts = (f"{count:.3g}" for count in (slower.flops, slower.loads, slower.iterations))
    largest = f"{slower.largest_share:.2f}" if slower.largest_share else ""
    counters = (*rates, *counts, largest) if slower.bytes else ("",) * len(_COUNTERS)
    return item.kernel, item.input, item.dtype, str(item.threads), LIBRARIES.get(library.column, library.column), *ratios, *counters


def _times(item: Item, found: Mapping[str, Figure]) -> tuple[str, ...]:
    shown = (f"{1e3 * found[column].seconds:.4g}" if column in found else "" for column in (*_SHOWN, *LIBRARIES))
    return item.kernel, item.input, item.dtype, str(item.threads), *shown
