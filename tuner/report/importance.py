"""Which parameters of the searched templates mattered: how much of the spread of times each explains by itself."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from .material import Run

LEAST_RUNS = 8
"""Trials of a kernel below which nothing is said about its parameters."""


def importance(campaigns: Iterable[Sequence[Run]]) -> dict[str, float]:
    """Return the share of the variance of log times that each parameter explains alone (eta squared), the largest first.

    Times of a campaign stand over its mean, so that those of large and small inputs are alike. A run that lacks a parameter belongs to a
    group of its own. Empty where fewer than ``LEAST_RUNS`` runs are known.
    """
    rows: list[tuple[float, dict[str, str]]] = []
    for runs in campaigns:
        timed = [(math.log(run.milliseconds), run) for run in runs if run.milliseconds is not None and run.parameters]
        mean = sum(value for value, _ in timed) / max(1, len(timed))
        rows += [(value - mean, {name: str(chosen) for name, chosen in run.parameters.items()}) for value, run in timed]
    whole = sum(value * value for value, _ in rows)
    if len(rows) < LEAST_RUNS or whole == 0:
        return {}
    names = dict.fromkeys(name for _, parameters in rows for name in parameters)
    found = {name: _between(rows, name) / whole for name in names}
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _between(rows: Sequence[tuple[float, dict[str, str]]], name: str) -> float:
    """Return the sum of squares between the groups that a parameter's values make; the mean of all is 0."""
    groups: dict[str | None, list[float]] = {}
    for value, parameters in rows:
        groups.setdefault(parameters.get(name), []).append(value)
    return sum(sum(values) ** 2 / len(values) for values in groups.values())
