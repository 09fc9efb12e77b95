"""The pages: templates beside this file, filled with figures and tables, and the plotting library in them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...compiler.errors import DataError
from ...compiler.native.machine import this_machine
from ..database import Database
from ..environment import code_version, commit
from ..nightly.changes import Change
from ..records import now
from ..written import write_whole
from . import figures
from .listings import listings
from .material import Result, read_material


def write_report(path: Path, database: Database, bench: Path | None = None, target: str | None = None) -> None:
    """Write everything that a database holds.

    Args:
        path: of the page.
        database: its decisions and trials are shown.
        bench: a file of what ``tune-kernel bench --json`` printed: times of other libraries and of the static choice.
        target: show only what was tuned for this one; None: everything.

    Raises:
        DataError: the page cannot be written, or ``bench`` is something else.
    """
    material = read_material(database, bench, target)
    results, several = material.results, len(material.results) > 1
    write_page(
        path, "report.html.j2", title=f"sparsetune: what was tuned{f' for {target}' if target else ''}", material=material,
        speedups=figures.speedups(results) if results else None,
        profile=figures.profile(results) if several else None,
        rooflines=figures.rooflines(results),
        kernels=[_section(expression, found) for expression, found in material.kernels.items()],
    )  # fmt: skip


def write_nightly_page(path: Path, suite: str, changes: Sequence[Change]) -> None:
    """Write a night's comparison with its baseline.

    Raises:
        DataError: the file cannot be written.
    """
    counts = Counter(change.verdict for change in changes)
    series = {f"{one.kernel}, {one.input}": [night / one.nights[0] for night in one.nights] for one in changes if len(one.nights) > 1}
    write_page(
        path, "night.html.j2", title=f"sparsetune nightly: {suite}", suite=suite, changes=changes,
        told=", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())),
        where=f"{this_machine().model}, {this_machine().system}, version {code_version()}, commit {commit() or 'unknown'}",
        figure=figures.changes(changes) if any(change.change is not None for change in changes) else None,
        nights=figures.nights(series) if series else None,
    )  # fmt: skip


def _section(expression: str, results: Sequence[Result]) -> dict[str, Any]:
    return {
        "expression": expression, "results": results, "searches": figures.searches(results), "stages": figures.stages(results),
        "parameters": figures.parameters(results), "listings": {one.number: listings(one.decision, one.account) for one in results},
    }  # fmt: skip


def write_page(path: Path, template: str, **content: Any) -> None:
    """Fill a template into a file, which is there whole or not at all."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from plotly.offline import get_plotlyjs

    library = Environment(loader=PackageLoader(__package__ or "", ""), autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    library.filters |= {"time": show_time, "ratio": show_ratio, "percent": show_share, "giga": show_giga}
    text = library.get_template(template).render(plotly=get_plotlyjs(), written=now()[:16].replace("T", " "), **content)
    try:
        write_whole(path, text)
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror or error}") from None


def show_time(seconds: float | None) -> str:
    """Return a time in the unit that suits it."""
    if seconds is None or not math.isfinite(seconds):
        return "–"
    unit, size = next(((unit, size) for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)) if seconds >= size), ("ns", 1e-9))
    return f"{seconds / size:.3g} {unit}"


def show_ratio(value: float | None) -> str:
    """Return a ratio as tables show it; a dash where there is none."""
    return "–" if value is None else f"{value:.2f}"


def show_share(value: float | None) -> str:
    """Return a share in percent; a dash where there is none."""
    return "–" if value is None else f"{value:.0%}"


def show_giga(value: float | None) -> str:
    """Return a number in billions; a dash where there is none."""
    return "–" if value is None else f"{value / 1e9:.3g}"
