"""Searching in a truth table by the strategies of Kernel Tuner (van Werkhoven, 2019), where that is installed, to compare them with ours.

Kernel Tuner sees a point as two parameters: the number of its template in the order of the static ranking, and its place among the points
of the template, in the order of their numbers. With a parameter for each number it would go through up to 25 million combinations one by
one to find those that exist. Its simulation mode takes times from a cache file, so that it compiles and runs nothing.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import math
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from .replay import TableSpace, ranked_schedules
from .table import TablePoint, TruthTable

STRATEGIES = ("random_sample", "genetic_algorithm", "simulated_annealing", "greedy_ils", "pso", "diff_evo", "hybrid_vndx", "bayes_opt")
"""The strategies of Kernel Tuner that are compared."""

PREFIX = "Kernel Tuner: "
"""Prefix of the names of its strategies where they stand beside ours."""

_KERNEL = "point"
_NAMES = ("template", "numbers")

Key = tuple[int, int]


def version() -> str | None:
    """Return the version of Kernel Tuner; None where it is not installed."""
    return metadata.version("kernel_tuner") if importlib.util.find_spec("kernel_tuner") is not None else None


def foreign_search(table: TruthTable, strategy: str, trials: int, seed: int) -> list[TablePoint]:
    """Return the points that a strategy of Kernel Tuner tries, once each and in its order, the default schedule first.

    Args:
        table: the measured times.
        strategy: one of ``STRATEGIES``.
        trials: how many, the default among them; fewer where the strategy ends before.
        seed: of the search.
    """
    points = _keyed(table)
    parameters = {name: sorted(set(column)) for name, column in zip(_NAMES, zip(*points, strict=True), strict=True)}

    def is_there(*values: int, **named: int) -> bool:  # Kernel Tuner calls it in both ways
        return (values or _key(named)) in points

    tune_kernel = importlib.import_module("kernel_tuner").tune_kernel
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Kernel Tuner warns that parameters for blocks of threads are missing
        cache = Path(folder) / "cache.json"
        cache.write_text(json.dumps(_cache(points, parameters)), encoding="utf-8")
        results, _ = tune_kernel(
            _KERNEL, "", (1,), [], parameters, lang="C", strategy=strategy, cache=str(cache), seed=seed, restrictions=[is_there],
            strategy_options={"max_fevals": trials - 1}, simulation_mode=True, quiet=True,
        )  # fmt: skip
    tried = dict.fromkeys(map(_key, results))
    return [table.default, *(points[key] for key in tried)][:trials]


def _keyed(table: TruthTable) -> dict[Key, TablePoint]:
    """Return the points of a table but the default, by template and place."""
    found = {point.schedule: point for point in table.points if point.schedule}
    space = TableSpace.of([schedule for schedule in ranked_schedules(table) if schedule])
    return {
        (number, place): found[group[numbers]] for number, (_, group) in enumerate(space.members)
        for place, numbers in enumerate(sorted(group))
    }  # fmt: skip


def _key(values: Mapping[str, Any]) -> Key:
    template, numbers = (int(values[name]) for name in _NAMES)
    return template, numbers


def _cache(points: Mapping[Key, TablePoint], parameters: Mapping[str, Sequence[int]]) -> dict[str, Any]:
    """Return the content of a cache file of Kernel Tuner for some points."""
    return {
        "device_name": "table", "kernel_name": _KERNEL, "problem_size": [1], "tune_params_keys": list(parameters),
        "tune_params": parameters, "objective": ["time"],
        "cache": {
            ",".join(map(str, key)): {**dict(zip(_NAMES, key, strict=True)), **_outcome(point)} for key, point in points.items()
        },
    }  # fmt: skip


def _outcome(point: TablePoint) -> dict[str, Any]:
    if point.seconds is None or not math.isfinite(point.seconds):
        return {"__error__": "RuntimeFailedConfig"}
    return {"time": 1e3 * point.seconds}
