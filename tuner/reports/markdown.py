"""Tables as Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from ..measure.finals import Comparison
from .records import Row


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; columns after the first two are aligned to the right."""
    rule = ["---" if place < 2 else "---:" for place in range(len(header))]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (header, rule, *rows))


def milliseconds(row: Row | None) -> str:
    """Return median and least of a row as ``median (least)``."""
    return "" if row is None else f"{_short(1e3 * row.times.median)} ({_short(1e3 * row.times.least)})"


def ratio(found: Comparison | None) -> str:
    """Return a paired ratio with its interval."""
    return "" if found is None else f"{found.ratio:.2f} [{found.low:.2f}, {found.high:.2f}]"


def geometric_mean(values: Sequence[float]) -> float:
    """Return the geometric mean; NaN if there are no values."""
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
