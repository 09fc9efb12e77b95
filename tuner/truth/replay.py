"""Searching in a truth table: the strategies of the search, told what the table says, without any hardware.

The numbers in the texts of schedules are parameters: schedules that differ in their numbers alone are points of one template, so that a
strategy can learn what it could on hardware. A table holds a part of what such a template stands for; a proposal that it does not hold
means the point of the template whose numbers are nearest. Templates stand in the order in which the static model ranks their best point,
as they do in a search.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from ...compiler.frozen import frozen
from ...compiler.schedule.schedule import Schedule
from ...compiler.space.template import Hole, Template, Value
from ..search.samplers import USUAL_SAMPLER, Search, choose_strategy
from ..search.space import Point, Space
from .table import TablePoint, TruthTable

_NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])")


@frozen
class Step:
    """A trial of a replay: its number from 0 (the default schedule), the point, and the best seconds so far."""

    number: int
    point: TablePoint
    best: float


@frozen
class Replay:
    """What a search in a table found.

    Attributes:
        table: where.
        steps: its trials in order.
        best: the fastest of them.
    """

    table: TruthTable
    steps: tuple[Step, ...]

    @property
    def best(self) -> TablePoint:
        """The fastest point among the trials that have a time."""
        return min((step.point for step in self.steps if step.point.seconds is not None), key=lambda point: point.seconds or 0.0)

    @property
    def failed(self) -> int:
        """How many trials have no time."""
        return sum(step.point.seconds is None for step in self.steps)

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object of ``tune``, with the sequence of trials."""
        default, best = self.table.default.seconds or math.inf, self.best.seconds or math.inf
        return {
            "expression": self.table.expression,
            "machine": self.table.machine,
            "target": self.table.target,
            "threads": self.table.threads,
            "stages": [{"stage": "table", "kept": len(self.table.points), "seconds": 0.0}],
            "trials": len(self.steps),
            "failed_trials": self.failed,
            "default_time": default,
            "best_time": best,
            "speedup": default / best,
            "best_schedule": self.best.schedule,
            "database": None,
            "sequence": [{"schedule": step.point.schedule, "seconds": step.point.seconds, "best": step.best} for step in self.steps],
        }


def replay(table: TruthTable, trials: int, seed: int = 0, sampler: str = USUAL_SAMPLER) -> Replay:
    """Search in a table; the same table, number of trials, seed and sampler give the same sequence of trials.

    Args:
        table: the measured times.
        trials: how many, the default schedule among them.
        seed: of the search.
        sampler: one of ``samplers.SAMPLERS``.

    Raises:
        TuningError: there is no such sampler.
    """
    points = {point.schedule: point for point in table.points}
    space = TableSpace.of(ranked_schedules(table))
    strategy = choose_strategy(Search(space, trials, seed, None, "replay"), sampler)
    steps: list[Step] = []

    def take(schedule: str) -> float | None:
        point = points[schedule]
        best = min([step.best for step in steps[-1:]] + [point.seconds or math.inf])
        steps.append(Step(len(steps), point, best))
        return point.seconds

    strategy.know("", take(""))
    while len(steps) < trials and (proposal := strategy.ask()) is not None:
        strategy.tell(proposal, take(proposal.schedule))
    strategy.close()
    return Replay(table, tuple(steps))


def ranked_schedules(table: TruthTable) -> list[str]:
    """Return the schedules of a table, those that the static model expects to be fastest first."""
    return [point.schedule for point in sorted(table.points, key=_ranked)]


def _ranked(point: TablePoint) -> float:
    return math.inf if point.expected is None else point.expected


Group = dict[tuple[int, ...], str]
"""Schedules of a table that differ only in their numbers, by these numbers."""


@frozen
class TableSpace(Space):
    """The schedules of a table as a space of templates whose holes are the numbers in the texts.

    ``members`` holds for each template the places of the numbers in which its schedules differ, and the schedules.
    """

    members: tuple[tuple[tuple[int, ...], Group], ...] = ()

    @classmethod
    def of(cls, schedules: Sequence[str]) -> TableSpace:
        """Return the space of some schedules."""
        groups: dict[str, Group] = {}
        for schedule in schedules:
            numbers = tuple(map(int, _NUMBER.findall(schedule)))
            groups.setdefault(_NUMBER.sub("#", schedule), {})[numbers] = schedule
        members = tuple((_open_places(group), group) for group in groups.values())
        return cls(tuple(_template(places, group) for places, group in members), members=members)

    @cached_property
    def size(self) -> int:
        return sum(len(group) for _, group in self.members)

    def schedule(self, point: Point) -> str:
        places, group = self.members[point.template]
        wanted = [value for value in point.values if isinstance(value, int)]

        def distance(numbers: tuple[int, ...]) -> float:
            return sum(abs(math.log1p(numbers[place]) - math.log1p(value)) for place, value in zip(places, wanted, strict=True))

        return group[min(group, key=distance)]

    def points(self) -> Iterator[Point]:
        found = [[tuple(numbers[place] for place in places) for numbers in group] for places, group in self.members]
        yield from (Point(number, values[0]) for number, values in enumerate(found))
        yield from (Point(number, one) for number, values in enumerate(found) for one in values[1:])

    def usual_points(self) -> Iterator[Point]:
        for number, (places, group) in enumerate(self.members):
            first = next(iter(group))
            yield Point(number, tuple(first[place] for place in places))

    def random_point(self, generator: random.Random) -> Point:
        number = generator.randrange(len(self.members))
        places, group = self.members[number]
        numbers = generator.choice(list(group))
        return Point(number, tuple(numbers[place] for place in places))


def _open_places(group: Group) -> tuple[int, ...]:
    """Return the places of the numbers in which schedules differ."""
    columns = list(zip(*group, strict=True))
    return tuple(place for place, column in enumerate(columns) if len(set(column)) > 1)


def _template(places: tuple[int, ...], group: Group) -> Template:
    """Return the template of a group: its first schedule, with a hole for each number in which the others differ."""
    first = next(iter(group.values()))
    holes = (Hole(f"number {place}", tuple(_ranged([numbers[place] for numbers in group]))) for place in places)
    return Template((*Schedule(first).directives, *holes))


def _ranged(values: list[int]) -> list[Value]:
    """Return the distinct values, beginning with the first one, which is the usual value."""
    return list(dict.fromkeys(values))
