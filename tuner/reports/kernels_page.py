"""``results/kernels.md``: generated kernels beside other libraries, from the races of ``decisions.csv``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .decision_cases import CASES, Item
from .decision_races import DEFAULT, FAILED, LEFT_OUT, OURS, STATIC, TUNED, Figure
from .markdown import geometric_mean, table
from .states import States

LIBRARIES = {"scipy": "SciPy", "mkl": "MKL", "sparse": "PyData/sparse"}
_SHOWN = (DEFAULT, STATIC, TUNED)
_SHARES = (0.0, 0.05, 0.25, 0.5, 0.75)


def kernels_page(rows: Sequence[Figure], wanted: Sequence[Item], command: str) -> str:
    """Return the page; arguments as of ``decisions_page``."""
    by_item: dict[Item, dict[str, Figure]] = {}
    for row in rows:
        if row.column not in (LEFT_OUT, FAILED):
            by_item.setdefault(row.item, {})[row.column] = row
    beside = {item: found for item, found in by_item.items() if fastest(found) is not None}
    left_out = sum(row.column == LEFT_OUT for row in rows)
    behind = [item for item in beside if min(_ratio(beside[item], STATIC), _ratio(beside[item], TUNED)) < 1]
    return f"""# Kernels beside other libraries

{len(by_item)} of {len(wanted) - left_out} items measured, {len(beside)} of them beside at least one library. Every item ran in one process,
in turn: our default schedule, the static choice, the tuned schedule, and each installed library whose result agrees with ours (SciPy and
PyData/sparse use one thread whatever is asked for; what takes ten times as long as our default was timed once). TACO and SPLATT are not
part of it.

{States([row for found in by_item.values() for row in found.values()]).text}

    {command}

## The fastest library's time over ours

By geometric mean; then the least, and the values below which the given shares of items lie. Above 1 ours is faster.

{table(("kernel", "type, threads", "items", "column", "mean", "least", *(f"{share:.0%}" for share in _SHARES[1:])), _profiles(beside))}

## Items where the static choice or the tuned schedule is behind

{len(behind)} of {len(beside)}.

{table(("kernel", "input", "type", "threads", "fastest", "static", "tuned"), [_behind(item, beside[item]) for item in _ordered(behind)])}

## Every item

Medians in ms.

{table(("kernel", "input", "type", "threads", *_SHOWN, *LIBRARIES.values()), [_times(item, by_item[item]) for item in _ordered(by_item)])}

Intervals and schedules stand in `decisions.csv`.
"""


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
    return item.kernel, item.input, item.dtype, str(item.threads), LIBRARIES.get(library.column, library.column), *ratios


def _times(item: Item, found: Mapping[str, Figure]) -> tuple[str, ...]:
    shown = (f"{1e3 * found[column].seconds:.4g}" if column in found else "" for column in (*_SHOWN, *LIBRARIES))
    return item.kernel, item.input, item.dtype, str(item.threads), *shown
