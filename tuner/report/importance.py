"""Which parameters of the searched templates mattered: how much of the spread of times each explains by itself."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from .material import Run

LEAST_RUNS = 8
"""Fewest trials of a kernel for which its parameters are judged."""


def importance(campaigns: Iterable[Sequence[Run]]) -> dict[str, float]:
    """Return the share of the variance of log times that each parameter explains alone (eta squared), the largest first.

    The times of a campaign are divided by their mean, so that those of large and small inputs can be compared. Runs that lack a parameter
    form a group of their own. Empty if fewer than ``LEAST_RUNS`` runs are known.
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
    """Return the sum of squares between the groups that the values of a parameter make; the mean of all runs is 0."""
    groups: dict[str | None, list[float]] = {}
    for value, parameters in rows:
        groups.setdefault(parameters.get(name), []).append(value)
    return sum(sum(values) ** 2 / len(values) for values in groups.values())
