"""Small plots as inline SVG, so that a report is one file that any browser shows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import accumulate

_BAR_HEIGHT = 22
_LETTER_WIDTH = 7
_PLOT_WIDTH = 420
_VALUE_WIDTH = 110


@dataclass(frozen=True)
class Bar:
    """One bar: a value, and optionally the interval that it lies in."""

    label: str
    value: float
    low: float | None = None
    high: float | None = None
    is_bad: bool = False


def bar_chart(bars: Sequence[Bar], title: str, reference: float | None = 1.0) -> str:
    """Return horizontal bars with their values; ``reference`` is drawn as a line across."""
    left = _LETTER_WIDTH * max((len(bar.label) for bar in bars), default=0) + 16
    top = max([1e-12, reference or 0.0, *(bar.high or bar.value for bar in bars)])
    scale = _PLOT_WIDTH / top
    height = _BAR_HEIGHT * len(bars) + 10
    parts = [_open(left + _PLOT_WIDTH + _VALUE_WIDTH, height, title)]
    for number, bar in enumerate(bars):
        y = 5 + number * _BAR_HEIGHT
        parts.append(f'<text x="{left - 8}" y="{y + 15}" text-anchor="end">{escape(bar.label)}</text>')
        kind = "bad" if bar.is_bad else "bar"
        parts.append(f'<rect class="{kind}" x="{left}" y="{y + 3}" width="{bar.value * scale:.1f}" height="{_BAR_HEIGHT - 6}"/>')
        if bar.low is not None and bar.high is not None:
            middle = y + _BAR_HEIGHT / 2
            parts.append(_line(left + bar.low * scale, middle, left + bar.high * scale, middle, "interval"))
        end = left + max(bar.value, bar.high or 0) * scale + 6
        parts.append(f'<text x="{end:.1f}" y="{y + 15}">{bar.value:.2f}</text>')
    if reference is not None:
        x = left + reference * scale
        parts.append(_line(x, 0, x, height, "reference"))
    return "".join([*parts, "</svg>"])


def step_chart(series: Sequence[tuple[str, Sequence[float]]], title: str) -> str:
    """Return the best value so far over the number of trials, a step line for each series, on a logarithmic scale."""
    steps = [(label, list(accumulate(points, min))) for label, points in series if points and min(points) > 0]
    if not steps:
        return ""
    width, height, margin = 640, 240, 60
    least, most = min(points[-1] for _, points in steps), max(points[0] for _, points in steps)
    low, high = math.log(least), math.log(most * 1.05)
    longest = max(len(points) for _, points in steps)

    def place(trial: float, value: float) -> str:
        x = margin + (width - margin) * trial / max(1, longest)
        y = 10 + (height - 40) * (1 - (math.log(value) - low) / max(1e-9, high - low))
        return f"{x:.1f},{y:.1f}"

    parts = [_open(width + 220, height, title)]
    for tick in (least, math.sqrt(least * most), most):
        x, y = place(0, tick).split(",")
        parts.append(f'<text x="{margin - 8}" y="{float(y) + 4:.1f}" text-anchor="end">{tick:.3g}</text>')
        parts.append(_line(float(x), float(y), width, float(y), "grid"))
    for number, (label, points) in enumerate(steps):
        path = [corner for trial, value in enumerate(points) for corner in (place(trial, value), place(trial + 1, value))]
        parts.append(f'<polyline class="line line{number % 6}" points="{" ".join(path)}"/>')
        parts.append(f'<text class="text{number % 6}" x="{width + 8}" y="{20 + 16 * number}">{escape(label)}</text>')
    parts.append(f'<text x="{width / 2}" y="{height - 6}">trials</text>')
    return "".join([*parts, "</svg>"])


def line_chart(title: str, values: Sequence[float]) -> str:
    """Return values in order as one line, named beside its end, with a line across at 1."""
    width, height, margin = 420, 90, 60
    low, high = min([0.95, *values]), max([1.05, *values])

    def place(number: int, value: float) -> str:
        x = margin + (width - margin) * number / max(1, len(values) - 1)
        return f"{x:.1f},{8 + (height - 16) * (high - value) / (high - low):.1f}"

    y = float(place(0, 1.0).split(",")[1])
    parts = [_open(width + _LETTER_WIDTH * len(title) + 60, height, title), _line(margin, y, width, y, "reference")]
    places = [(tick, float(place(0, tick).split(",")[1])) for tick in (low, high)]
    parts += [f'<text x="{margin - 8}" y="{at + 4:.1f}" text-anchor="end">{tick:.2f}</text>' for tick, at in places]
    parts.append(f'<polyline class="line line0" points="{" ".join(place(number, value) for number, value in enumerate(values))}"/>')
    parts.append(f'<text x="{width + 8}" y="{y + 4:.1f}">{escape(title)}</text>')
    return "".join([*parts, "</svg>"])


STYLE = """
svg { font: 12px sans-serif; display: block; margin: 0.6em 0 1.4em; }
.bar { fill: #4a7fb5; } .bad { fill: #b5524a; }
.reference { stroke: #444; stroke-dasharray: 3 3; } .interval { stroke: #10253c; stroke-width: 2; } .grid { stroke: #ddd; }
.line { fill: none; stroke-width: 1.6; }
.line0 { stroke: #1f77b4; } .line1 { stroke: #d95f02; } .line2 { stroke: #2a9d4a; }
.line3 { stroke: #8a56ac; } .line4 { stroke: #8c564b; } .line5 { stroke: #c2589a; }
.text0 { fill: #1f77b4; } .text1 { fill: #d95f02; } .text2 { fill: #2a9d4a; }
.text3 { fill: #8a56ac; } .text4 { fill: #8c564b; } .text5 { fill: #c2589a; }
"""


def _open(width: float, height: float, title: str) -> str:
    return f'<svg width="{width:.0f}" height="{height:.0f}" role="img" aria-label="{escape(title)}"><title>{escape(title)}</title>'


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'
