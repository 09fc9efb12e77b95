"""The plots of results/*.md as SVG, drawn by matplotlib."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...compiler.errors import DataError


@dataclass(frozen=True)
class Bar:
    """One bar: a value, and optionally the interval that it lies in."""

    label: str
    value: float
    low: float | None = None
    high: float | None = None


def bar_chart(bars: Sequence[Bar], title: str) -> str:
    """Return horizontal bars with their values and intervals, and a line across at 1.

    Raises:
        DataError: matplotlib is not installed.
    """
    figure, axes = _axes(8, 0.3 * len(bars) + 1)
    spans = [(bar.value - (bar.low or bar.value), (bar.high or bar.value) - bar.value) for bar in bars]
    drawn = axes.barh(range(len(bars)), [bar.value for bar in bars], xerr=list(zip(*spans, strict=True)), color="#4a7fb5")
    axes.bar_label(drawn, fmt="%.2f", padding=4)
    axes.set_yticks(range(len(bars)), [bar.label for bar in bars])
    axes.invert_yaxis()
    axes.axvline(1, color="#444", linestyle=":")
    axes.set_title(title, fontsize="medium")
    return _svg(figure)


def line_chart(lines: Mapping[str, Sequence[tuple[float, float]]], x: str, y: str) -> str:
    """Return lines of points by name, both axes logarithmic.

    Raises:
        DataError: matplotlib is not installed.
    """
    figure, axes = _axes(8, 4.5)
    for name, points in lines.items():
        axes.loglog([point[0] for point in points], [point[1] for point in points], marker=".", label=name)
    axes.set(xlabel=x, ylabel=y)
    axes.grid(color="#ddd")
    if lines:
        axes.legend()
    return _svg(figure)


def _axes(width: float, height: float) -> tuple[Any, Any]:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise DataError("drawing needs matplotlib: pip install 'sparsetune[plot]'") from None
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots()


def _svg(figure: Any) -> str:
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue()
