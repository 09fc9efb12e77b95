"""The searched space: schedule templates with open parameters, and the points that fill them."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import cached_property

from ..records import digest

Choice = str | int


@dataclass(frozen=True)
class Parameter:
    """An open place of a template, ``{name}``, and what may stand there; the first choice is the usual one."""

    name: str
    choices: tuple[Choice, ...]

    @property
    def is_ordered(self) -> bool:
        """Whether neighbours in value are neighbours in effect, as for tile sizes."""
        return len(self.choices) > 2 and all(isinstance(choice, int) for choice in self.choices)


@dataclass(frozen=True)
class Template:
    """A schedule's text with open parameters."""

    text: str
    parameters: tuple[Parameter, ...] = ()

    @property
    def size(self) -> int:
        return math.prod(len(parameter.choices) for parameter in self.parameters)

    def fill(self, values: tuple[Choice, ...]) -> str:
        """Return the schedule's text with a value for every parameter."""
        text = self.text
        for parameter, value in zip(self.parameters, values, strict=True):
            text = text.replace(f"{{{parameter.name}}}", str(value))
        return text

    @property
    def usual(self) -> tuple[Choice, ...]:
        return tuple(parameter.choices[0] for parameter in self.parameters)

    def values(self) -> Iterator[tuple[Choice, ...]]:
        """Yield every combination, the usual one first."""
        return itertools.product(*(parameter.choices for parameter in self.parameters))


@dataclass(frozen=True)
class Point:
    """One template, filled."""

    template: int
    values: tuple[Choice, ...]


@dataclass(frozen=True)
class Space:
    """Templates in the order in which they are worth trying; ``normal`` gives equal schedules equal texts."""

    templates: tuple[Template, ...]
    normal: Callable[[str], str] = field(default=str, compare=False)

    @cached_property
    def size(self) -> int:
        return sum(template.size for template in self.templates)

    @cached_property
    def digest(self) -> str:
        """Changes with every template and choice: a study of one space says nothing about another."""
        return digest([(template.text, [asdict(parameter) for parameter in template.parameters]) for template in self.templates])

    def schedule(self, point: Point) -> str:
        return self.normal(self.templates[point.template].fill(point.values))

    def usual_points(self) -> Iterator[Point]:
        """Yield every template with the usual values."""
        for number, template in enumerate(self.templates):
            yield Point(number, template.usual)

    def points(self) -> Iterator[Point]:
        """Yield everything: first each template as usual, then the rest, template by template."""
        yield from self.usual_points()
        for number, template in enumerate(self.templates):
            for values in itertools.islice(template.values(), 1, None):
                yield Point(number, values)

    def random_point(self, generator: random.Random) -> Point:
        """Return a point, each template equally likely."""
        number = generator.randrange(len(self.templates))
        values = tuple(generator.choice(parameter.choices) for parameter in self.templates[number].parameters)
        return Point(number, values)
