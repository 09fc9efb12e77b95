"""Searching in a truth table by the strategies of Kernel Tuner (van Werkhoven, 2019), where that is installed: what ours are compared with.

A point is, to Kernel Tuner, the number of its template in the order of the static ranking and the numbers that the template leaves open; no
other combination is in its space. Its simulation mode takes times from a cache file, so that nothing of its own is compiled or run.
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
from .table import Point, TruthTable

STRATEGIES = ("random_sample", "genetic_algorithm", "simulated_annealing", "greedy_ils", "pso", "diff_evo", "hybrid_vndx", "bayes_opt")
"""Those that are compared."""

PREFIX = "Kernel Tuner: "
"""Before the names of its strategies, among ours."""

_NONE = 0  # a number that a template does not leave open
_KERNEL = "point"

Key = tuple[int, ...]


def version() -> str | None:
    """Return the version of Kernel Tuner; None where it is not installed."""
    return metadata.version("kernel_tuner") if importlib.util.find_spec("kernel_tuner") is not None else None


def foreign_search(table: TruthTable, strategy: str, trials: int, seed: int) -> list[Point]:
    """Return the points that a strategy of Kernel Tuner tries, once each and in its order, the default schedule first.

    Args:
        table: what takes how long.
        strategy: of ``STRATEGIES``.
        trials: how many, the default among them; fewer where the strategy ends before.
        seed: of the search.
    """
    tune_kernel = importlib.import_module("kernel_tuner").tune_kernel
    points = _keyed(table)
    names, columns = _parameters(points)

    def is_there(*values: int, **named: int) -> bool:  # it is asked in both ways
        return (values or _key(named, names)) in points

    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it misses the names of blocks of threads
        cache = Path(folder) / "cache.json"
        cache.write_text(json.dumps(_cache(points, names, columns)), encoding="utf-8")
        results, _ = tune_kernel(
            _KERNEL, "", (1,), [], dict(zip(names, columns, strict=True)), lang="C", strategy=strategy, cache=str(cache), seed=seed,
            strategy_options={"max_fevals": trials - 1}, simulation_mode=True, quiet=True,
            restrictions=[is_there],
        )  # fmt: skip
    tried = dict.fromkeys(_key(result, names) for result in results)
    return [table.default, *(points[key] for key in tried)][:trials]


def _keyed(table: TruthTable) -> dict[Key, Point]:
    """Return the points of a table but the default, by template and open numbers."""
    found = {point.schedule: point for point in table.points if point.schedule}
    space = TableSpace.of([schedule for schedule in ranked_schedules(table) if schedule])
    most = max((len(places) for places, _ in space.members), default=0)
    keyed: dict[Key, Point] = {}
    for number, (places, group) in enumerate(space.members):
        for numbers, schedule in group.items():
            opened = [numbers[place] for place in places]
            keyed[(number, *opened, *[_NONE] * (most - len(opened)))] = found[schedule]
    return keyed


def _parameters(points: Mapping[Key, Point]) -> tuple[list[str], list[list[int]]]:
    """Return the parameters' names and the values of each."""
    columns = [sorted(set(column)) for column in zip(*points, strict=True)]
    return ["template", *(f"number_{place}" for place in range(1, len(columns)))], columns


def _key(values: Mapping[str, Any], names: Sequence[str]) -> Key:
    return tuple(int(values[name]) for name in names)


def _cache(points: Mapping[Key, Point], names: Sequence[str], columns: Sequence[Sequence[int]]) -> dict[str, Any]:
    """Return what a cache file of Kernel Tuner says of points."""
    return {
        "device_name": "table", "kernel_name": _KERNEL, "problem_size": [1], "tune_params_keys": list(names),
        "tune_params": dict(zip(names, columns, strict=True)), "objective": ["time"],
        "cache": {
            ",".join(map(str, key)): {**dict(zip(names, key, strict=True)), **_outcome(point)} for key, point in points.items()
        },
    }  # fmt: skip


def _outcome(point: Point) -> dict[str, Any]:
    if point.seconds is None or not math.isfinite(point.seconds):
        return {"__error__": "RuntimeFailedConfig"}
    return {"time": 1e3 * point.seconds}
