"""Samplers that need no model: points drawn at random, and a walk to better neighbours. Others have to beat them."""

from __future__ import annotations

import random
from collections.abc import Iterator

from .space import Point, Space
from .strategy import Proposal

_TRIES = 200  # known points that are drawn in a row before the space counts as exhausted


class Drawn:
    """Points drawn at random, each structure equally likely; known points are never proposed."""

    def __init__(self, space: Space, seed: int) -> None:
        self._space, self._random = space, random.Random(seed)
        self._known: set[str] = set()

    def ask(self) -> Proposal | None:
        return self._first(self._space.random_point(self._random) for _ in range(_TRIES))

    def tell(self, proposal: Proposal, seconds: float | None) -> None:
        """Nothing is learned."""

    def know(self, schedule: str, seconds: float | None) -> None:
        self._known.add(schedule)

    def close(self) -> None:
        """Nothing is kept."""

    def _first(self, points: Iterator[Point]) -> Proposal | None:
        """Return the first point that is new, and take it as known."""
        for point in points:
            schedule = self._space.schedule(point)
            if schedule not in self._known:
                self._known.add(schedule)
                return Proposal(schedule, point, self._space.parameters(point))
        return None


class Local(Drawn):
    """The usual points of some structures, then points that differ from the best so far in one hole; where none is left, a random point.

    Args:
        space: what may be proposed.
        seed: of the draws.
        usual: how many structures to try first.
    """

    def __init__(self, space: Space, seed: int, usual: int) -> None:
        super().__init__(space, seed)
        self._usual = [point for point, _ in zip(space.usual_points(), range(usual), strict=False)]
        self._place: tuple[float, Point] | None = None

    def ask(self) -> Proposal | None:
        found = self._first(iter(self._usual))
        if found is None and self._place is not None:
            neighbours = list(self._neighbours(self._place[1]))
            self._random.shuffle(neighbours)
            found = self._first(iter(neighbours))
        if found is None:
            self._place = None
            found = super().ask()
        return found

    def tell(self, proposal: Proposal, seconds: float | None) -> None:
        assert isinstance(proposal.token, Point)
        if seconds is not None and (self._place is None or seconds < self._place[0]):
            self._place = seconds, proposal.token

    def _neighbours(self, point: Point) -> Iterator[Point]:
        for place, hole in enumerate(self._space.templates[point.template].holes):
            for value in hole.choices:
                yield Point(point.template, (*point.values[:place], value, *point.values[place + 1 :]))

