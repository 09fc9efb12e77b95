"""The space as strategies see it: templates in the order in which they are worth trying, and the points that fill them."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import field
from functools import cached_property
from typing import Protocol

from ...compiler.frozen import frozen
from ...compiler.schedule.schedule import Schedule
from ...compiler.space.template import Template, Value
from ..records import digest


@frozen
class Point:
    """One template, by number, and a value for each of its holes."""

    template: int
    values: tuple[Value, ...]


class Draws(Protocol):
    """A source of schedules that no rule lists."""

    def draw(self, best: Sequence[tuple[float, str]], known: Collection[str]) -> str | None:
        """Return a schedule that is not known, most likely near one of the best (seconds, schedule); None where none is found."""
        ...


@frozen
class Space:
    """Templates in the order in which they are worth trying.

    Attributes:
        templates: those that rules list.
        normal: returns the text of a schedule, equal for equal schedules.
        read: returns the schedule of such a text.
        beyond: draws schedules that are in no template; None: nothing is drawn.
    """

    templates: tuple[Template, ...]
    normal: Callable[[Schedule], str] = field(default=str, compare=False)
    read: Callable[[str], Schedule] = field(default=Schedule, compare=False)
    beyond: Draws | None = field(default=None, compare=False)

    @cached_property
    def size(self) -> int:
        """How many schedules the templates stand for; those that several share count several times."""
        return sum(template.count for template in self.templates)

    @cached_property
    def digest(self) -> str:
        """A digest of all templates and choices, so that a study of one space is not taken up for another."""
        return digest([(template.text, [(hole.name, hole.labels) for hole in template.holes]) for template in self.templates])

    def schedule(self, point: Point) -> str:
        """Return the text of a point. It is kept: strategies ask for it again and again, and making it takes longer than they do."""
        found = self._texts.get(point)
        if found is None:
            template = self.templates[point.template]
            names = (hole.name for hole in template.holes)
            found = self._texts[point] = self.normal(template.fill(dict(zip(names, point.values, strict=True))))
        return found

    @cached_property
    def _texts(self) -> dict[Point, str]:
        return {}

    def find(self, text: str) -> Point | None:
        """Return a point with this schedule; None where the space has none."""
        schedule = self.read(text)
        for number, template in enumerate(self.templates):
            if (values := template.values(schedule)) is not None:
                return Point(number, tuple(values.get(hole.name, hole.usual) for hole in template.holes))
        return None

    def parameters(self, point: Point) -> dict[str, int | str]:
        """Return the values of a point in the holes of its template, by name, as numbers and texts."""
        holes = zip(self.templates[point.template].holes, point.values, strict=True)
        return {hole.name: hole.labels[hole.choices.index(value)] for hole, value in holes}

    def usual_points(self) -> Iterator[Point]:
        """Yield every template with the usual values."""
        for number, template in enumerate(self.templates):
            yield Point(number, tuple(template.usual.values()))

    def points(self) -> Iterator[Point]:
        """Yield every point: first each template with its usual values, then the rest, template by template."""
        yield from self.usual_points()
        for number, template in enumerate(self.templates):
            for values in itertools.islice(template.choices(), 1, None):
                yield Point(number, tuple(values.values()))

    def random_point(self, generator: random.Random) -> Point:
        """Return a point, each template equally likely."""
        number = generator.randrange(len(self.templates))
        return Point(number, tuple(generator.choice(hole.choices) for hole in self.templates[number].holes))
