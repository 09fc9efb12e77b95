"""Change points over the nights: slow drifts, none of whose steps is larger than the noise of a night.

Pettitt's test (A. N. Pettitt, A non-parametric approach to the change-point problem, Applied Statistics 28, 1979) compares, for every
place in a series, the ranks before with those after it; it assumes nothing about the noise, and finds steps and steady drifts alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..measure.order_statistics import median

MIN_NIGHTS = 10
MOST_NIGHTS = 90
"""How many of the last nights are looked at."""

_CHANCE = 0.01
_LEAST_SHIFT = 1.05


@dataclass(frozen=True)
class Drift:
    """A change point of a series.

    Attributes:
        since: when the first value after it was taken, as it is given.
        shift: the median after it over the median before.
        chance: probability of a change point as clear as this in a series without any.
    """

    since: str
    shift: float
    chance: float


def change_point(nights: Sequence[tuple[str, float]]) -> Drift | None:
    """Return the clearest change point of a series; None if it is not sure, or is a change of less than a twentieth.

    Args:
        nights: pairs of a moment and a time, the oldest first.
    """
    series = list(nights)[-MOST_NIGHTS:]
    values = [value for _, value in series]
    count = len(values)
    if count < MIN_NIGHTS:
        return None
    statistic, place, total = 0, 0, 0
    for split in range(1, count):
        total += sum((values[split - 1] > other) - (values[split - 1] < other) for other in values)
        if abs(total) > statistic:
            statistic, place = abs(total), split
    chance = min(1.0, 2 * math.exp(-6 * statistic**2 / (count**3 + count**2)))
    if chance > _CHANCE or not place:
        return None
    shift = median(values[place:]) / median(values[:place])
    return Drift(series[place][0], shift, chance) if max(shift, 1 / shift) >= _LEAST_SHIFT else None
