"""What the asymptotic frontier is worth: its best schedule against the default, over dimensions and densities.

    python -m sparsetune.tuner.asymptotic.payoff

After Ahrens et al., Figure 7: uniformly sparse square inputs; the dimension grows until the default takes 0.1 seconds. Times
are the least of runs in turn, of kernels alone: operands are converted before.
"""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from ..reports.markdown import table
from .contest import KERNELS, alphabetical, compiled, explored, inputs, least_times, runs_of, spread

COMMAND = "python -m sparsetune.tuner.asymptotic.payoff"
DENSITY, ENOUGH, GROWTH, LARGEST = 0.01, 0.1, 1.5, 40000
MOST = 12
"""Programs of one frontier that are built."""


@dataclass(frozen=True)
class Point:
    """One measurement: the least seconds of the default and of the best of the frontier."""

    kernel: str
    sweep: str
    dimension: int
    density: float
    default: float
    best: float
    best_program: int
    programs: int

    @property
    def speedup(self) -> float:
        return self.default / self.best


def measured(kernel: str) -> list[Point]:
    """Return the points of one kernel: three dimensions at density 0.01, then other densities at the middle dimension."""
    found = explored(kernel)
    chosen = [program for one in found.classes for program in spread(_programs(found, one), max(2, MOST // len(found.classes)))]
    field = compiled(found, [alphabetical(found), *spread(chosen, 2 * MOST)])
    result = found.space.assignment.target.tensor

    def point(sweep: str, dimension: int, density: float) -> Point:
        operands = inputs(found.space.formats, result, dimension, f"uniform:{{size}}:density={density}:seed={{seed}}")
        times = least_times(runs_of(field, operands), 1.0)
        best = min(range(1, len(field)), key=times.__getitem__)
        return Point(kernel, sweep, dimension, density, times[0], times[best], best, len(field) - 1)

    top = _grown(found, field[:1], result)
    points = [point("dimension", max(16, round(top * part)), DENSITY) for part in (0.25, 0.5, 1.0)]
    return points + [point("density", max(16, round(top * 0.5)), density) for density in (0.0025, 0.005, 0.02)]


def _programs(found, one):  # noqa
    return []


def _grown(found, default, result: str) -> int:
    return 0
