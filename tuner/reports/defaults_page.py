"""``results/defaults.md``: default schedules and conversions beside other libraries, and how long compilation takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .compile_times import MOST, TYPICAL, CompileTime
from .default_cases import OURS, PYDATA, SCIPY, SORTED
from .markdown import geometric_mean, milliseconds, ratio, table
from .records import Races, Row, times_faster
from .states import States

COMMAND = "python -m sparsetune.tuner.reports.defaults"
_TITLES = {
    "kernels": "Kernels with one or two sparse operands",
    "products": "Products of two sparse matrices",
    "conversions": "Conversions",
}
_NOTES = {
    "kernels": "Everything on one thread. A^T is stored as CSR beforehand.",
    "products": "SciPy leaves the indices of a product unsorted; ours are sorted. The last column but one compares with SciPy and "
    "`sort_indices`.",
    "conversions": "One thread, and all cores. SciPy uses one. What is unsorted comes out sorted on both sides, but for the blocks of "
    "one line.",
}


def page(races: Races, times: Sequence[CompileTime]) -> str:
    """Return the whole page."""
    parts = [_introduction(races), *(_figure(races, figure) for figure in _TITLES), _compilation(times)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _introduction(races: Races) -> str:
    loads = [row.load for row in races.rows.values()] or [0.0]
    return f"""# Default schedules

{States(races.rows.values()).text}

Nothing here is tuned: each kernel is what the empty schedule gives. float64 values, int32 coordinates.

Times are in milliseconds, `median (least)` of all rounds. All variants on one line ran in one process in turn, in another
order each round; ratios are medians of paired ratios with a 95% interval, above 1 ours is faster. PyData/sparse, which
may take a hundred times as long, ran by itself after the others. The load average when the races began was {min(loads):.1f} to
{max(loads):.1f}.

`{COMMAND}` makes everything here; raw times, one a round, are in `defaults.csv`. Real inputs are found in the folder that
`SPARSETUNE_DATA` names, and left out where it lacks them."""


def _figure(races: Races, figure: str) -> str:
    found = races.of(figure)
    if not found:
        return ""
    most = max(row.threads for rows in found.values() for row in rows)
    columns = {
        "kernels": (("SciPy", SCIPY, 1), ("PyData", PYDATA, 1)),
        "products": (("SciPy", SCIPY, 1), ("SciPy, sorted", SORTED, 1), ("PyData", PYDATA, 1)),
        "conversions": (("SciPy", SCIPY, 1),),
    }[figure]
    ours = [("ours", 1)] + ([(f"ours, {most} threads", most)] if most > 1 else [])
    header = ["operation", "input", *(name for name, _ in ours), *(name for name, *_ in columns)]
    against = [("SciPy / ours", SCIPY, 1)]
    against += [("sorted / ours", SORTED, 1)] if figure == "products" else []
    against += [(f"SciPy / ours, {most} threads", SCIPY, most)] if most > 1 else []
    lines: list[list[str]] = []
    gains: dict[str, dict[str, list[float]]] = {}
    states = States(races.rows.values())
    for (operation, name), taken in found.items():
        row = _finder(races, figure, operation, name)
        line = [operation, f"`{name}`{states.mark(taken)}", *(milliseconds(row(OURS, threads)) for _, threads in ours)]
        line += [milliseconds(row(variant, threads)) for _, variant, threads in columns]
        for title, variant, threads in against:
            faster = times_faster(row(variant, 1), row(OURS, threads))
            line.append(ratio(faster))
            if faster is not None:
                gains.setdefault(title, {}).setdefault(operation, []).append(faster.ratio)
        lines.append(line)
    text = table([*header, *(title for title, *_ in against)], lines)
    return f"## {_TITLES[figure]}\n\n{_NOTES[figure]} {_summary(gains)}\n\n    {COMMAND} --only {figure}\n\n{text}"


def _finder(races: Races, figure: str, operation: str, name: str) -> Any:
    def find(variant: str, threads: int) -> Row | None:
        return races.find(figure, operation, name, variant, threads)

    return find


def _summary(gains: Mapping[str, Mapping[str, Sequence[float]]]) -> str:
    """Return, for each comparison, the mean and the least ratio of all, and the operations that lose somewhere."""
    parts = []
    for title, by_operation in gains.items():
        ratios = [one for found in by_operation.values() for one in found]
        slower = [f"{operation} {min(found):.2f}" for operation, found in by_operation.items() if min(found) < 1]
        behind = f"; behind somewhere: {', '.join(slower)}" if slower else "; nowhere behind"
        parts.append(f"{title}: geometric mean {geometric_mean(ratios):.2f}, least {min(ratios):.2f}{behind}.")
    return " ".join(parts)


def _compilation(times: Sequence[CompileTime]) -> str:
    if not times:
        return ""
    typical = [one.seconds for one in times if one.typical] or [0.0]
    rows = [(one.name, one.formats, f"{one.lowering:.3f}", f"{one.compiling:.2f}", f"{one.seconds:.2f}", str(one.lines)) for one in times]
    slowest = max(times, key=lambda one: one.seconds)
    return f"""## Compilation

Seconds from text to C, from C to a loaded kernel with an empty cache, and both; lines of C. A typical kernel may take {TYPICAL} s (here
at most {max(typical):.2f}), any expression of up to five sparse operands {MOST:g} s (here at most {slowest.seconds:.2f}: {slowest.name},
{slowest.formats}).

    {COMMAND} --only compile

""" + table(("expression", "formats", "to C", "to a kernel", "both", "lines"), rows)
