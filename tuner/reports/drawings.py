"""The plots of results/*.md as SVG, drawn by matplotlib."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

from ...compiler.errors import DataError
from ...compiler.frozen import frozen
from .markdown import geometric_mean


@frozen
class Bar:
    """One bar: a value, and optionally the interval that it lies in."""

    label: str
    value: float
    low: float | None = None
    high: float | None = None


@frozen
class Dots:
    """The values of one series by group, and how they are drawn."""

    label: str
    color: str
    values: Mapping[str, Sequence[float]]
    hollow: bool = False


def dot_chart(groups: Sequence[str], series: Sequence[Dots], x: str, title: str) -> str:
    """Return a chart with a row for each group and in it a line for each series: values as dots, their geometric mean as a bar. The axis is
    logarithmic, with a line at 1.

    Raises:
        DataError: matplotlib is not installed.
    """
    figure, axes = _axes(8, 0.55 * len(groups) + 1.3)
    from matplotlib.ticker import LogLocator

    for number, dots in enumerate(series):
        shift = 0.8 * ((number + 0.5) / len(series) - 0.5)
        points = [(value, place + shift) for place, group in enumerate(groups) for value in dots.values.get(group, ())]
        means = [(geometric_mean(values), place + shift) for place, group in enumerate(groups) if (values := dots.values.get(group))]
        face = "white" if dots.hollow else dots.color
        axes.scatter(*_columns(points), s=18, facecolors=face, edgecolors=dots.color, linewidths=0.9, label=dots.label, zorder=2)
        axes.scatter(*_columns(means), s=70, color=dots.color, marker="|", linewidths=2.2, zorder=3)
    axes.set_xscale("log")
    axes.axvline(1, color="#444", linewidth=1, zorder=1)
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("")
    axes.grid(axis="x", color="#ddd", zorder=0)
    axes.set_yticks(range(len(groups)), groups)
    axes.hlines([place + 0.5 for place in range(len(groups) - 1)], 0, 1, transform=axes.get_yaxis_transform(), color="#ddd", linewidth=0.8)
    axes.set_ylim(len(groups) - 0.5, -0.5)
    axes.set_xlabel(x)
    axes.set_title(title, fontsize="medium", loc="left")
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize="small")
    return _svg(figure)


def _columns(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [point[0] for point in points], [point[1] for point in points]


def bar_chart(bars: Sequence[Bar], title: str) -> str:
    """Return a chart of horizontal bars with their values and intervals, and a line at 1.

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
    """Return a chart of one line for each name, with logarithmic axes.

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


def sorted_chart(lines: Mapping[str, Sequence[float]], x: str, y: str) -> str:
    """Return a chart of the ratios of each line in rising order, over the share of ratios below each; logarithmic, with a line at 1.

    Raises:
        DataError: matplotlib is not installed.
    """
    figure, axes = _axes(8, 4.5)
    for name, ratios in lines.items():
        axes.step([(place + 1) / len(ratios) for place in range(len(ratios))], sorted(ratios), where="pre", label=name)
    axes.set_yscale("log")
    axes.axhline(1, color="#444", linewidth=1)
    axes.set(xlabel=x, ylabel=y, xlim=(0, 1))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.grid(color="#ddd")
    if lines:
        axes.legend(frameon=False, fontsize="small")
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
