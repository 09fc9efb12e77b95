"""Steps from the fastest points: the point beside them that is expected to improve most upon the best so far.

A sampler that draws all holes at once combines two good values late, or never if the budget ends before. Steps start from the fastest
point of every structure, since the best structure may begin badly, and from all points that may be the fastest. A step changes one hole,
or two numbers to their neighbours. Where no point of a structure has worked, its next one is as good as a step, and expected to gain
twice: steps will make the structure faster as they have done with others.

Two numbers of which the product counts hide what lies beyond: either alone makes it slower, and what is learned from that says that both
make it slower still. So where all that lies beside the fastest point in one number is known, what lies beside it in two comes next, now
and then.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cached_property
from itertools import combinations, product

import numpy as np

from ...compiler.space.template import Hole, Value
from .space import Point, Space
from .surrogate import Surrogate

_NEAR = math.log(1.03)
"""Points up to so many times the least time may be the fastest in a second measurement, so steps start from them too."""

_PAIRS = 3  # one in so many steps is one in two numbers from the fastest point, where that has no neighbours left


class Refinement:
    """Told what points took, names the next step.

    Args:
        space: of the points.
    """

    def __init__(self, space: Space) -> None:
        self._space = space
        self._logs: dict[Point, float] = {}
        self._failed: dict[Point, None] = {}
        self._count = 0  # of steps

    @cached_property
    def _surrogate(self) -> Surrogate:
        return Surrogate(self._space)

    def tell(self, point: Point, seconds: float | None) -> None:
        """Report what a point took; None: it failed."""
        if seconds is None:
            self._failed[point] = None
        else:
            self._logs[point] = math.log(seconds)

    def choose(
        self, is_new: Callable[[Point], bool], live: Collection[int], first: Callable[[int], Point], asked: Collection[Point] = ()
    ) -> Point | None:
        """Return the most promising step; None where all were taken, or nothing is known.

        Args:
            is_new: tells whether a point was not asked for yet.
            live: the structures that have points left.
            first: returns the point to try next of a structure of which none has worked.
            asked: points that are being measured.
        """
        if not self._logs:
            return None
        self._count += 1
        pairs = list(self._pairs(is_new)) if self._count % _PAIRS == 0 else []
        found = self._most_promising(pairs, is_new, asked)
        if found is not None:
            return found
        begun = {point.template for point in (*self._logs, *asked)}
        points = dict.fromkeys(step for start in self._starts() if start.template in live for step in self._steps(start))
        points |= dict.fromkeys(first(number) for number in sorted(live) if number not in begun)
        return self._most_promising(points, is_new, asked)

    def _most_promising(self, points: Iterable[Point], is_new: Callable[[Point], bool], asked: Collection[Point]) -> Point | None:
        """Return the point that is expected to improve most upon the best so far, of those that are new."""
        steps = [point for point in points if point not in self._logs and point not in self._failed]
        if not steps:
            return None
        told, pending = dict(self._logs), list(asked)
        if pending:  # they count as if they took what is expected, so that another process tries something else
            told |= dict(zip(pending, self._surrogate.expected(told, pending).mean.tolist(), strict=True))
        begun, ahead = {point.template for point in self._logs}, self._gained()
        wanted = min(self._logs.values()) + np.array([0.0 if point.template in begun else ahead for point in steps])
        gains = self._surrogate.expected(told, steps).improvement(wanted)
        gains *= self._surrogate.chance(self._logs, self._failed, steps)
        return next((steps[place] for place in np.argsort(-gains, kind="stable") if is_new(steps[place])), None)

    def _gained(self) -> float:
        """Return how much faster than its first point a structure has become, as a logarithm, the mean over all later points."""
        first, least, later = dict[int, float](), dict[int, float](), list[int]()
        for point, log in self._logs.items():
            if point.template in first:
                later.append(point.template)
            first.setdefault(point.template, log)
            least[point.template] = min(log, least.get(point.template, log))
        return sum(first[number] - least[number] for number in later) / max(1, len(later))

    def _starts(self) -> Iterator[Point]:
        """Yield the points from which steps are taken: the fastest of each structure, and all those that may be the fastest of all."""
        best, leaders = min(self._logs.values()), dict[int, Point]()
        for point, log in self._logs.items():
            if point.template not in leaders or log < self._logs[leaders[point.template]]:
                leaders[point.template] = point
        yield from leaders.values()
        yield from (point for point, log in self._logs.items() if log <= best + _NEAR and point != leaders[point.template])

    def _steps(self, start: Point) -> Iterator[Point]:
        """Yield the points with another value in one hole, and those with neighbouring numbers in two."""
        for place, hole in enumerate(self._holes(start)):
            yield from (_changed(start, {place: value}) for value in hole.choices if value != start.values[place])
        yield from self._beside(start, 2)

    def _pairs(self, is_new: Callable[[Point], bool]) -> Iterator[Point]:
        """Yield what lies beside the fastest point in two numbers, if all that does so in one is known."""
        fastest = min(self._logs, key=self._logs.__getitem__)
        if not any(map(is_new, self._beside(fastest, 1))):
            yield from self._beside(fastest, 2)

    def _beside(self, start: Point, count: int) -> Iterator[Point]:
        """Yield the points with neighbouring numbers in so many holes."""
        near = {place: _neighbours(hole, start.values[place]) for place, hole in enumerate(self._holes(start)) if hole.is_ordered}
        for places in combinations(near, count):
            for values in product(*(near[place] for place in places)):
                yield _changed(start, dict(zip(places, values, strict=True)))

    def _holes(self, point: Point) -> tuple[Hole, ...]:
        return self._space.templates[point.template].holes


def _changed(point: Point, values: dict[int, Value]) -> Point:
    """Return a point with other values at some places."""
    return Point(point.template, tuple(values.get(place, value) for place, value in enumerate(point.values)))


def _neighbours(hole: Hole, value: Value) -> list[Value]:
    """Return the numbers just below and above one."""
    numbers = sorted(choice for choice in hole.choices if isinstance(choice, int))
    place = next(place for place, number in enumerate(numbers) if number == value)
    return [*numbers[max(0, place - 1) : place], *numbers[place + 1 : place + 2]]
