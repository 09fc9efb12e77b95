"""Steps from the fastest points: points that differ from one of them in one hole, the most promising change first.

A sampler that draws all holes at once combines two good values late, or never if the budget ends before. The worth of a value is estimated
over all structures that have it: the mean time of its points, each relative to the mean of its structure. A value that was tried seldom
may be better than that, so doubt counts in its favour. What compilers and flags are worth depends on the code, so their doubt falls only
with points of the structure itself: wider vectors may gain nothing in a dozen structures and a tenth in this one.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator

from ...compiler.space.decorations import BUILD
from .space import Point, Space

_NEAR = math.log(1.03)
"""Points up to so many times the least time may be the fastest in a second measurement, so steps start from them too."""

_PRIOR = 2  # each value counts as if it had this many further points, of no effect
_SCATTER = 0.1  # standard deviation of a logarithm of a time around the worth of its values

_Key = tuple[str, int | str]  # a hole by name, and its label


class Refinement:
    """Told what points took, names the next step.

    Args:
        space: of the points.
    """

    def __init__(self, space: Space) -> None:
        self._space = space
        self._logs: dict[Point, float] = {}
        self._built = Counter[tuple[int, int | str]]()  # points of each structure with each build

    def tell(self, point: Point, seconds: float | None) -> None:
        """Report what a point took; None: it failed, and nothing starts from it."""
        self._built[point.template, self._space.parameters(point).get(BUILD, "")] += 1
        if seconds is not None:
            self._logs[point] = math.log(seconds)

    def choose(self, is_new: Callable[[Point], bool]) -> Point | None:
        """Return the most promising step; None where all were taken.

        Args:
            is_new: tells whether a point was not asked for yet.
        """
        best = min(self._logs.values(), default=math.inf)
        worth = self._worth()
        found: tuple[float, Point] | None = None
        for start, log in self._logs.items():
            if log <= best + _NEAR:
                for old, new, point in self._steps(start):
                    doubt = worth.doubt(self._built[start.template, new[1]] if new[0] == BUILD else worth.count(new))
                    promise = log + worth.expected(new) - worth.expected(old) - doubt
                    if (found is None or promise < found[0]) and is_new(point):
                        found = promise, point
        return None if found is None else found[1]

    def _steps(self, start: Point) -> Iterator[tuple[_Key, _Key, Point]]:
        """Yield the value of a hole, another value for it, and the point with that."""
        holes = self._space.templates[start.template].holes
        for place, hole in enumerate(holes):
            old = hole.labels[hole.choices.index(start.values[place])]
            for value, label in zip(hole.choices, hole.labels, strict=True):
                if label != old:
                    values = (*start.values[:place], value, *start.values[place + 1 :])
                    yield (hole.name, old), (hole.name, label), Point(start.template, values)

    def _worth(self) -> Worth:
        """Return what is known of the values of holes."""
        structures: dict[int, list[float]] = defaultdict(list)
        for point, log in self._logs.items():
            structures[point.template].append(log)
        found: dict[_Key, list[float]] = defaultdict(list)
        for point, log in self._logs.items():
            mean = math.fsum(structures[point.template]) / len(structures[point.template])
            for key in self._space.parameters(point).items():
                found[key].append(log - mean)
        return Worth(found)


class Worth:
    """How much slower points with a value of a hole were than others, as logarithms."""

    def __init__(self, found: dict[_Key, list[float]]) -> None:
        self._found = found

    def count(self, key: _Key) -> int:
        """Return how many points had a value."""
        return len(self._found.get(key, ()))

    def expected(self, key: _Key) -> float:
        """Return by how much slower than others a value is expected to be."""
        return math.fsum(self._found.get(key, ())) / (self.count(key) + _PRIOR)

    @staticmethod
    def doubt(count: int) -> float:
        """Return how much better a value may be than it is expected to be after so many points."""
        return _SCATTER / math.sqrt(count + 1)
