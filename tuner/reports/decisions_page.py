"""``results/decisions.md``: the speed that each way to choose a schedule reaches, by kernel, type and threads."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ...datasets.generate import PREFIX
from .decision_cases import CASES, FIRST, FIRST_BYTES, FIRST_INPUTS, LEAST_BYTES, MOST_ELEMENTS, MOST_PRODUCTS, Item
from .decision_races import DEFAULT, FAILED, LEFT_OUT, LOOKED_UP, OURS, STATIC, TUNED, Figure
from .markdown import geometric_mean, table
from .states import States

LEAST_SPEED = 0.95
"""The aim: no static choice and no lookup is slower than this share of the default's speed."""

LEAST_STATIC, LEAST_LOOKED_UP = 1 / 1.10, 0.90
"""The aim: the shares of the tuned speed that the static choice and lookup reach, by geometric mean, on inputs that were never tuned."""

_DECIDED = (STATIC, LOOKED_UP, TUNED)


def decisions_page(rows: Sequence[Figure], wanted: Sequence[Item], command: str) -> str:
    """Return the page.

    Args:
        rows: what was measured.
        wanted: all items.
        command: the command that makes the page.
    """
    figures = [row for row in rows if row.column in OURS]
    states = States(figures)
    own = [row for row in figures if states.is_own_machine(row)]
    measured = list(dict.fromkeys(row.item for row in figures))
    without = {column: [row for row in rows if row.column == column] for column in (LEFT_OUT, FAILED)}
    fitting = len(wanted) - len(without[LEFT_OUT])
    confirmed = [row for column in (STATIC, LOOKED_UP) for row in own if row.column == column and row.high < LEAST_SPEED]
    confirmed.sort(key=lambda row: row.speed)
    return f"""# Decisions

{len(measured)} of {fitting} items measured: {len({one.kernel for one in measured})} of {len(CASES)} kernels, {_inputs(measured)}.
{len(without[LEFT_OUT])} items were left out (a kernel asks for another order or a square matrix, values are complex, more than
{MOST_PRODUCTS:.0e} products or {MOST_ELEMENTS:.0e} elements), {len(without[FAILED])} failed. Inputs are files of {LEAST_BYTES} bytes or
more and generated ones. First come {", ".join(FIRST)},
each on up to {FIRST_INPUTS} files of at most {FIRST_BYTES} bytes, spread over sizes.

*Static* is what the model chooses where nothing was ever measured, *looked up* what lookup finds when all that was measured on this input
is left out, *tuned* what a campaign on this input decided{_spent(own)}. They ran in turn in one process with the default schedule.
Numbers are speeds: the time of the default over theirs, the median of paired rounds with its 95% interval. Columns "of tuned" have the
time of the tuned schedule over theirs.

{states.text}

    {command}

## By kernel

Geometric means over rows of the first machine, with the least in brackets.
Wanted: the static choice {LEAST_STATIC:.2f} of the tuned speed, lookup {LEAST_LOOKED_UP:.2f}.

{table(_HEADER, _means(own))}

## Static choices and lookups that are confirmed below {LEAST_SPEED} of the default

The upper end of the interval is below {LEAST_SPEED}: {_count(confirmed, STATIC)} static choices, {_count(confirmed, LOOKED_UP)} lookups.

{table(("kernel", "input", "type", "threads", "column", "speed", "schedule"), map(_confirmed, confirmed)) if confirmed else "None."}
{_failed(without[FAILED])}
## Every item

{table(("kernel", "input", "type", "threads", "default, ms", STATIC, LOOKED_UP, "from", TUNED), _every(figures, states))}

Schedules are in `decisions.csv`.
"""


def _spent(figures: Sequence[Figure]) -> str:
    known = [row for row in figures if row.column == TUNED and row.trials]
    if not known:
        return ""
    trials, seconds = sorted(row.trials for row in known), sorted(row.tuning for row in known)
    middle, length = len(known) // 2, f"{seconds[len(known) // 2]:.1f} s ({seconds[0]:.1f} to {seconds[-1]:.1f})"
    return f" after {trials[middle]} trials ({trials[0]} to {trials[-1]}) in\n{length} ({len(known)} campaigns have it written down)"


def _inputs(measured: Sequence[Item]) -> str:
    names = {one.input for one in measured}
    real = sum(not name.startswith(PREFIX) for name in names)
    return f"{real} real and {len(names) - real} generated inputs"


_HEADER = ("kernel", "type", "threads", "inputs", *(f"{column} speed" for column in _DECIDED), "static of tuned", "looked up of tuned")


def _means(figures: Sequence[Figure]) -> list[tuple[str, ...]]:
    kinds = sorted({(row.kernel, row.dtype, row.threads) for row in figures}, key=lambda kind: (list(CASES).index(kind[0]), kind[1:]))
    rows = [(*map(str, kind), *_mean([row for row in figures if (row.kernel, row.dtype, row.threads) == kind])) for kind in kinds]
    return [*rows, ("all", "", "", *_mean(figures))] if rows else []


def _mean(figures: Sequence[Figure]) -> list[str]:
    def shown(column: str, value: Callable[[Figure], float]) -> str:
        values = [value(row) for row in figures if row.column == column]
        return f"{geometric_mean(values):.3f} ({min(values, default=math.nan):.2f})"

    count = str(sum(row.column == DEFAULT for row in figures))
    speeds = [shown(column, lambda row: row.speed) for column in _DECIDED]
    return [count, *speeds, *(shown(column, lambda row: row.kept) for column in (STATIC, LOOKED_UP))]


def _count(rows: Sequence[Figure], column: str) -> int:
    return sum(row.column == column for row in rows)


def _confirmed(row: Figure) -> tuple[str, ...]:
    return row.kernel, row.input, row.dtype, str(row.threads), row.column, speed(row), f"`{row.schedule}`" if row.schedule else "default"


def speed(row: Figure | None) -> str:
    """Return the speed of a row with its interval."""
    return "" if row is None else f"{row.speed:.2f} [{row.low:.2f}, {row.high:.2f}]"


def _failed(rows: Sequence[Figure]) -> str:
    if not rows:
        return ""
    lines = "\n".join(f"- {row.item.text}: {row.note}" for row in rows)
    return f"\n## Failed\n\n{lines}\n"


def _every(figures: Sequence[Figure], states: States) -> list[tuple[str, ...]]:
    by_item: dict[Item, dict[str, Figure]] = {}
    for row in figures:
        by_item.setdefault(row.item, {})[row.column] = row
    shown = []
    for item in sorted(by_item, key=lambda one: (list(CASES).index(one.kernel), one.input, one.dtype, one.threads)):
        found = by_item[item]
        if DEFAULT in found and LOOKED_UP in found:
            ours = (speed(found.get(STATIC)), speed(found[LOOKED_UP]), found[LOOKED_UP].origin, speed(found.get(TUNED)))
            kernel = item.kernel + states.mark(found.values())
            shown.append((kernel, item.input, item.dtype, str(item.threads), f"{1e3 * found[DEFAULT].seconds:.4g}", *ours))
    return shown
