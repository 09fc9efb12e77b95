"""The plots of the pages, as figures of plotly in JSON; the page draws them with the copy of plotly that it contains."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
from typing import Any

import plotly.graph_objects as go

from ..nightly.changes import Change
from .importance import importance
from .material import Ratio, Result

_ROW = 26  # pixels for each result in a plot with a row for each result
_COLOURS = ("#1f6fb2", "#d1651b", "#2c8a4b", "#8a56ac", "#8c564b", "#c2589a", "#5f6b76")
_MOST_CURVES = 12
_LEGEND_ROW = 18  # pixels of a line of a legend; on a phone each curve takes a line


def speedups(results: Sequence[Result]) -> str:
    """Return how many times as fast the winners are as the default schedule, the static choice and other libraries, with intervals."""
    labels = [f"{result.kernel}<br><sub>{result.label}</sub>" for result in results]
    figure = go.Figure()
    series = {"default": {place: result.speedup for place, result in enumerate(results)}}
    for place, result in enumerate(results):
        for name, (_, ratio) in result.others.items():
            if ratio is not None:
                series.setdefault(name, {})[place] = ratio
    colours = _colours(results)
    for name, found in series.items():
        figure.add_trace(go.Scatter(
            x=[ratio.value for ratio in found.values()], y=[labels[place] for place in found], mode="markers", name=f"over {name}",
            marker={"size": 9, "color": colours[name]},
            error_x={"type": "data", "symmetric": False, "array": [ratio.high - ratio.value for ratio in found.values()],
                     "arrayminus": [ratio.value - ratio.low for ratio in found.values()]},
            hovertemplate="%{y}<br>%{x:.2f} times as fast<extra></extra>",
        ))  # fmt: skip
    figure.add_vline(x=1, line={"dash": "dot", "color": "#555"})
    figure.update_xaxes(title="times as fast (95% interval)", **_ratio_axis([one for found in series.values() for one in found.values()]))
    figure.update_yaxes(autorange="reversed", automargin=True)
    return as_json(figure, _ROW * 1.5 * len(results) + 120)


def _ratio_axis(shown: Sequence[Ratio]) -> dict[str, Any]:
    """Return a logarithmic axis with full labels: those that plotly chooses would show 0.9 as 9."""
    low, high = min(one.low for one in shown), max(one.high for one in shown)
    ticks = [digit * 10.0**power for power in range(-3, 4) for digit in (1, 2, 5)]
    if high < 5 * low:
        ticks = [0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.5, 2.0, 3.0, 5.0]
    return {"type": "log", "tickvals": ticks, "ticktext": [f"{tick:g}" for tick in ticks]}


def _logarithmic(shown: Sequence[float]) -> dict[str, Any]:
    """Return a logarithmic axis for some numbers, with full labels."""
    digits = (1,) if not shown or max(shown) > 1000 * min(shown) else (1, 2, 5)
    ticks = [digit * 10.0**power for power in range(-6, 7) for digit in digits]
    return {"type": "log", "tickvals": ticks, "ticktext": [f"{tick:g}" for tick in ticks]}


def _colours(results: Sequence[Result]) -> dict[str, str]:
    """Return the colour of each variant, the same in every plot."""
    variants = dict.fromkeys(name for result in results for name in result.times)
    return dict(zip(variants, cycle(_COLOURS), strict=False))


def profile(results: Sequence[Result]) -> str:
    """Return the performance profile (Dolan and Moré, 2002): the share of results on which a variant takes at most so many times the best.

    A variant that a result lacks counts as never.
    """
    figure = go.Figure()
    for name, colour in _colours(results).items():
        ratios = sorted(result.times[name] / min(result.times.values()) for result in results if name in result.times)
        shares = [number / len(results) for number in range(1, len(ratios) + 1)]
        figure.add_trace(go.Scatter(
            x=[1.0, *ratios], y=[0.0, *shares], name=name, mode="lines", line={"shape": "hv", "color": colour},
            hovertemplate="%{y:.0%} within %{x:.2f} of the best",
        ))  # fmt: skip
    figure.update_xaxes(type="log", title="time over that of the best variant")
    figure.update_yaxes(title="share of results", tickformat=".0%", range=[0, 1.05])
    return as_json(figure, 360)


def rooflines(results: Sequence[Result]) -> dict[str, str]:
    """Return a roofline for each machine and number of threads whose limits are known, winners and defaults on it."""
    found: dict[tuple[str, int], list[Result]] = {}
    for result in results:
        if result.limits is not None and result.account.operations and result.account.bytes:
            found.setdefault((result.processor, result.threads), []).append(result)
    return {f"{processor}, {threads} thread{'s' * (threads != 1)}": _roofline(group) for (processor, threads), group in found.items()}


def _roofline(results: Sequence[Result]) -> str:
    limits = results[0].limits
    assert limits is not None
    points: dict[str, list[tuple[float, float, str]]] = {"winner": [], "default": []}
    for result in results:
        account, decision = result.account, result.decision
        for name, work, seconds in (
            ("winner", account.operations, decision.seconds), ("default", account.default_operations, decision.default_seconds),
        ):  # fmt: skip
            if work and account.bytes:
                points[name].append((work / account.bytes, work / seconds / 1e9, f"{result.kernel}<br>{result.label}"))
    intensities = [x for group in points.values() for x, _, _ in group]
    ridge = limits.operations / limits.bandwidth
    roof = sorted({min(*intensities, ridge) / 2, ridge, max(*intensities, ridge) * 2})
    figure = go.Figure(go.Scatter(
        x=roof, y=[min(limits.operations, limits.bandwidth * x) / 1e9 for x in roof], mode="lines", line={"color": "#555"},
        name=f"{limits.bandwidth / 1e9:.1f} GB/s, {limits.operations / 1e9:.0f} GFLOP/s", hoverinfo="skip",
    ))  # fmt: skip
    for name, group in points.items():
        figure.add_trace(go.Scatter(
            x=[x for x, _, _ in group], y=[y for _, y, _ in group], text=[label for _, _, label in group], mode="markers", name=name,
            marker={"size": 8} if name == "winner" else {"size": 13, "symbol": "circle-open"},  # both are visible even at one place
            hovertemplate="%{text}<br>%{y:.2f} GFLOP/s at %{x:.2f} operations a byte<extra></extra>",
        ))  # fmt: skip
    figure.update_xaxes(type="log", title="operations a byte of operands and dense result", dtick=1)
    figure.update_yaxes(type="log", title="GFLOP/s", dtick=1)
    return as_json(figure, 420)


def searches(results: Sequence[Result]) -> str:
    """Return the best time so far by trial, in milliseconds, a curve for each input."""
    figure = go.Figure()
    for result in results[:_MOST_CURVES]:
        curve = result.best_so_far
        figure.add_trace(go.Scatter(
            x=list(range(1, len(curve) + 1)), y=curve, name=result.label, mode="lines", line={"shape": "hv"},
            hovertemplate="trial %{x}: %{y:.4g} ms",
        ))  # fmt: skip
    figure.update_xaxes(title="trials")
    times = [time for result in results[:_MOST_CURVES] for time in result.best_so_far]
    figure.update_yaxes(title="best time so far, ms", automargin=True, **_logarithmic(times))
    return as_json(figure, _height(len(results)))


def stages(results: Sequence[Result]) -> str | None:
    """Return how many schedules each stage of pruning kept, for each input; None where it was not recorded."""
    told = [result for result in results if result.account.stages]
    if not told:
        return None
    figure = go.Figure()
    for result in told[:_MOST_CURVES]:
        figure.add_trace(go.Bar(
            x=[str(stage["stage"]) for stage in result.account.stages], y=[stage["kept"] for stage in result.account.stages],
            name=result.label, hovertemplate="%{x}: %{y} schedules",
        ))  # fmt: skip
    kept = [max(1, stage["kept"]) for result in told for stage in result.account.stages]
    figure.update_yaxes(title="schedules kept", type="log" if max(kept) >= 10 * min(kept) else "linear", automargin=True)
    return as_json(figure, _height(len(told)))


def _height(inputs: int) -> int:
    """Return the pixels of a plot with a curve for each input: the curves keep their room however many the legend names."""
    return 300 + _LEGEND_ROW * min(inputs, _MOST_CURVES)


def parameters(results: Sequence[Result]) -> str | None:
    """Return how much of the spread of times each parameter explains; None where too few trials had any."""
    found = importance(result.runs for result in results)
    if not found:
        return None
    figure = go.Figure(go.Bar(
        x=list(found.values()), y=list(found), orientation="h", marker_color=_COLOURS[0],
        hovertemplate="%{y} explains %{x:.0%}<extra></extra>",
    ))  # fmt: skip
    figure.update_xaxes(title="share of the spread of times it explains", tickformat=".0%", range=[0, 1])
    figure.update_yaxes(autorange="reversed", automargin=True)
    return as_json(figure, _ROW * len(found) + 110)


def changes(found: Iterable[Change]) -> str:
    """Return the times of a night over the older ones, with their intervals; regressions stand out."""
    known = [change for change in found if change.change is not None]
    figure = go.Figure(go.Scatter(
        x=[change.change for change in known], y=[f"{change.kernel}, {change.input}" for change in known], mode="markers",
        marker={"size": 9, "color": ["#b5342a" if change.verdict == "regression" else _COLOURS[0] for change in known]},
        error_x={"type": "data", "symmetric": False, "color": _COLOURS[0],  # error bars take no list of colours, as points do
                 "array": [(change.high or change.change or 0) - (change.change or 0) for change in known],
                 "arrayminus": [(change.change or 0) - (change.low or change.change or 0) for change in known]},
        hovertemplate="%{y}: %{x:.3f}<extra></extra>",
    ))  # fmt: skip
    figure.add_vline(x=1, line={"dash": "dot", "color": "#555"})
    figure.update_xaxes(title="time over the older one (above 1 is slower)")
    figure.update_yaxes(autorange="reversed", automargin=True)
    return as_json(figure, _ROW * len(known) + 110)


def nights(series: Mapping[str, Sequence[float]]) -> str:
    """Return times over the first night's, night by night, a curve for each item."""
    figure = go.Figure([go.Scatter(x=list(range(1, len(values) + 1)), y=list(values), name=name) for name, values in series.items()])
    figure.add_hline(y=1, line={"dash": "dot", "color": "#555"})
    figure.update_xaxes(title="nights since the baseline", dtick=1)
    figure.update_yaxes(title="time over the first night's")
    return as_json(figure, 360)


def trials(milliseconds: Sequence[float]) -> go.Figure:
    """Return the best time so far of one campaign, for notebooks."""
    best: list[float] = []
    for time in milliseconds:
        best.append(min(time, best[-1] if best else math.inf))
    curve = go.Scatter(x=list(range(1, len(best) + 1)), y=best, mode="lines", line={"shape": "hv"}, hovertemplate="trial %{x}: %{y:.4g} ms")
    figure = go.Figure(curve)
    figure.update_xaxes(title="trials")
    figure.update_yaxes(title="best time so far, ms", type="log")
    return _styled(figure, 320)


def as_json(figure: go.Figure, height: float) -> str:
    """Return a figure of so many pixels' height as a page takes it."""
    return str(_styled(figure, height).to_json(validate=False)).replace("</", "<\\/")


def _styled(figure: go.Figure, height: float) -> go.Figure:
    return figure.update_layout(
        template="plotly_white", height=max(220, round(height)), colorway=_COLOURS, margin={"l": 50, "r": 16, "t": 16, "b": 50},
        font={"family": "system-ui, sans-serif", "size": 13}, legend={"orientation": "h", "y": 1.02, "yanchor": "bottom"},
        hovermode="closest",
    )  # fmt: skip
