"""Steps from the fastest points: points that differ from one of them in one hole, the most promising change first.

A sampler that draws all holes at once combines two good values late, or never if the budget ends before. The worth of a value is estimated
over all structures that have it: the mean time of its points, each relative to the mean of its structure. A value that was tried seldom
may be better than that, so doubt counts in its favour. What compilers and flags are worth depends on the code, so their doubt falls only
with points of the structure itself: wider vectors may gain nothing in a dozen structures and a tenth in this one.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property

from ...compiler.space.decorations import BUILD
from .roles import Key, keys, meaning, role
from .space import Point, Space

_NEAR = math.log(1.03)
"""Points up to so many times the least time may be the fastest in a second measurement, so steps start from them too."""

_NEARBY = math.log(1.05)
"""The fastest point of a structure may be a step from the fastest of all up to so many times the least time: what goes with other values is
not known of a structure that few points were tried of."""

_PRIOR = 2  # each value counts as if it had this many further points, of no effect
_SCATTER = 0.1  # standard deviation of a logarithm of a time around the worth of its values


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
        worth = self._worth()
        found: tuple[float, Point] | None = None
        for start, log in self._starts():
            for old, new, point in self._steps(start):
                doubt = worth.doubt(new[0], self._built[start.template, new[1]] if new[0] == BUILD else worth.count(new))
                promise = log + worth.expected(new) - worth.expected(old) - doubt
                if (found is None or promise < found[0]) and is_new(point):
                    found = promise, point
        return None if found is None else found[1]

    def _starts(self) -> Iterator[tuple[Point, float]]:
        """Yield the points from which steps are taken, with their logarithms: those that may be the fastest, and the fastest of each
        structure that is not far behind."""
        best, leaders = min(self._logs.values(), default=math.inf), dict[int, float]()
        for point, log in self._logs.items():
            leaders[point.template] = min(log, leaders.get(point.template, math.inf))
        for point, log in self._logs.items():
            if log <= best + (_NEARBY if log == leaders[point.template] else _NEAR):
                yield point, log

    def _steps(self, start: Point) -> Iterator[tuple[Key, Key, Point]]:
        """Yield the value of a hole, another value for it, and the point with that."""
        holes = self._space.templates[start.template].holes
        for place, hole in enumerate(holes):
            old = start.values[place]
            for value in hole.choices:
                if value != old:
                    values = (*start.values[:place], value, *start.values[place + 1 :])
                    name = role(hole)
                    yield (name, meaning(hole, old)), (name, meaning(hole, value)), Point(start.template, values)

    def _worth(self) -> Worth:
        """Return what is known of the values of holes."""
        structures: dict[int, list[float]] = defaultdict(list)
        for point, log in self._logs.items():
            structures[point.template].append(log)
        found: dict[Key, list[float]] = defaultdict(list)
        for point, log in self._logs.items():
            mean = math.fsum(structures[point.template]) / len(structures[point.template])
            for key in keys(self._space.templates[point.template].holes, point.values):
                found[key].append(log - mean)
        return Worth(found)


class Worth:
    """How much slower points with a value in holes of one role were than others, as logarithms."""

    def __init__(self, found: dict[Key, list[float]]) -> None:
        self._found = found

    def count(self, key: Key) -> int:
        """Return how many points had a value."""
        return len(self._found.get(key, ()))

    def expected(self, key: Key) -> float:
        """Return by how much slower than others a value is expected to be."""
        return math.fsum(self._found.get(key, ())) / (self.count(key) + _PRIOR)

    def doubt(self, role: str, count: int) -> float:
        """Return how much better a value in holes of a role may be than it is expected to be after so many points."""
        return self._scatter[role] / math.sqrt(count + 1)

    @cached_property
    def _scatter(self) -> Mapping[str, float]:
        """By role, how far apart the values are: a hole of whose values none made a difference is no place to look for one."""
        effects: dict[str, list[float]] = defaultdict(list)
        for (name, _), logs in self._found.items():
            effects[name].append(math.fsum(logs) / len(logs))
        return defaultdict(lambda: _SCATTER) | {name: _scatter_of(found) for name, found in effects.items()}


def _scatter_of(effects: Sequence[float]) -> float:
    """Return the standard deviation of the effects of values, which counts as ``_SCATTER`` before anything is known."""
    squares = math.fsum(effect**2 for effect in effects) + _PRIOR * _SCATTER**2
    return min(_SCATTER, math.sqrt(squares / (len(effects) + _PRIOR)))
