"""The contract of strategies, and the one that needs no other library: everything, in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Protocol

from ...compiler.frozen import frozen
from .space import Point, Space


@frozen
class Proposal:
    """A candidate to measure.

    Attributes:
        schedule: in canonical names.
        token: the strategy's own.
        parameters: what was chosen for the open places of the template, by name.
    """

    schedule: str
    token: object
    parameters: Mapping[str, int | str] = field(default_factory=dict)


class Strategy(Protocol):
    """Asked for candidates, told how long they took. One that was told is never proposed again."""

    def ask(self) -> Proposal | None:
        """Return a candidate that was not told yet; None: there are no more."""
        ...

    def tell(self, proposal: Proposal, seconds: float | None) -> None:
        """Report a measurement; None: the candidate failed, and its like should be avoided."""
        ...

    def know(self, schedule: str, seconds: float | None) -> None:
        """Report what is known of a schedule that was not asked for."""
        ...

    def close(self) -> None:
        """End the search; a strategy that learns leaves what it learned on disk."""
        ...


class Exhaustive:
    """Every point of a space once, templates with usual values first."""

    def __init__(self, space: Space) -> None:
        self._points: Iterator[Point] = space.points()
        self._space = space
        self._known: set[str] = set()

    def ask(self) -> Proposal | None:
        for point in self._points:
            schedule = self._space.schedule(point)
            if schedule not in self._known:
                return Proposal(schedule, point, self._space.parameters(point))
        return None

    def tell(self, proposal: Proposal, seconds: float | None) -> None:
        self._known.add(proposal.schedule)

    def know(self, schedule: str, seconds: float | None) -> None:
        self._known.add(schedule)

    def close(self) -> None:
        """Nothing is kept."""
