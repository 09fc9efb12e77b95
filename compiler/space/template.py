"""Schedules with holes: directives with open arguments, or directives that are open as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import product
from math import prod
from typing import TypeAlias

from ..frozen import frozen
from ..schedule.directives import Directive
from ..schedule.schedule import Schedule
from ..schedule.text import show_directive

Value: TypeAlias = "int | str | tuple[int | str | None, ...] | Directive | None"
"""What may stand in a hole: an argument, several arguments that go together, a whole directive, or no directive."""

Values: TypeAlias = "Mapping[str, Value]"
"""Values by the names of their holes."""


@frozen
class Hole:
    """An open place.

    Attributes:
        name: holes of one name in one template are filled alike.
        choices: its range, the usual one first.
    """

    name: str
    choices: tuple[Value, ...]

    @property
    def usual(self) -> Value:
        """The value that is tried first."""
        return self.choices[0]

    @property
    def is_ordered(self) -> bool:
        """Whether neighbours in value are neighbours in effect, as for tile sizes."""
        return len(self.choices) > 2 and all(isinstance(choice, int) for choice in self.choices)

    @cached_property
    def labels(self) -> tuple[int | str, ...]:
        """The choices as numbers and texts: a directive as its text, no directive as an empty text."""
        return tuple(map(_label, self.choices))


def _label(value: Value) -> int | str:
    if isinstance(value, int | str):
        return value
    if isinstance(value, tuple):
        return ", ".join(str(one) for one in value if one is not None)
    return show_directive(value) if value is not None else ""


@frozen
class Open:
    """A directive with open arguments.

    Attributes:
        directive: with any arguments in the open places.
        places: the fields that each hole fills; a hole for several has a tuple for them.
    """

    directive: Directive
    places: tuple[tuple[tuple[str, ...], Hole], ...]

    def fill(self, values: Values) -> Directive:
        """Return the directive with arguments; the usual ones where none are given."""
        found: dict[str, object] = {}
        for fields, hole in self.places:
            value = values.get(hole.name, hole.usual)
            given = value if isinstance(value, tuple) else (value,)
            found |= dict(zip(fields, given, strict=True))
        return replace(self.directive, **found)

    @property
    def text(self) -> str:
        """The directive with ``{name}`` in open places, for people to read."""
        named = {fields[0]: f"{{{hole.name}}}" for fields, hole in self.places}
        return show_directive(replace(self.directive, **dict.fromkeys(self._fields, None), **named))

    @property
    def _fields(self) -> list[str]:
        return [field for fields, _ in self.places for field in fields[1:]]


def opened(directive: Directive, **holes: Hole) -> Open:
    """Return a directive with holes, each given by the field that it fills, or by several joined with two underscores."""
    return Open(directive, tuple((tuple(fields.split("__")), hole) for fields, hole in holes.items()))


Part: TypeAlias = "Directive | Open | Hole"
"""A directive, a directive with open arguments, or a hole for a whole directive or none."""


@frozen
class Template:
    """Directives with holes. Without any part it is the default schedule."""

    parts: tuple[Part, ...] = ()

    def then(self, *parts: Part) -> Template:
        """Return the template with more at its end."""
        return Template((*self.parts, *parts))

    def __bool__(self) -> bool:
        return bool(self.parts)

    @cached_property
    def holes(self) -> tuple[Hole, ...]:
        """Every hole once, in the order in which they appear."""
        return tuple({hole.name: hole for part in self.parts for hole in _holes(part)}.values())

    @property
    def count(self) -> int:
        """How many schedules the template stands for."""
        return prod(len(hole.choices) for hole in self.holes)

    @property
    def usual(self) -> dict[str, Value]:
        """For every hole, by its name, the value that is tried first."""
        return {hole.name: hole.usual for hole in self.holes}

    def fill(self, values: Values | None = None) -> Schedule:
        """Return the schedule for some values; holes that are not given take the usual ones."""
        return Schedule(filled(self.parts, values or {}))

    def choices(self) -> Iterator[dict[str, Value]]:
        """Yield the values of every schedule, the usual ones first."""
        names = [hole.name for hole in self.holes]
        for chosen in product(*(hole.choices for hole in self.holes)):
            yield dict(zip(names, chosen, strict=True))

    def ranked(self, rank: int) -> dict[str, Value]:
        """Return the values at a place of ``choices``."""
        found: dict[str, Value] = {}
        for hole in reversed(self.holes):
            rank, place = divmod(rank, len(hole.choices))
            found[hole.name] = hole.choices[place]
        return {hole.name: found[hole.name] for hole in self.holes}

    def rank(self, values: Values) -> int:
        """Return the place of values in ``choices``."""
        found = 0
        for hole in self.holes:
            found = found * len(hole.choices) + hole.choices.index(values[hole.name])
        return found

    def values(self, schedule: Schedule, renaming: bool = True) -> dict[str, Value] | None:
        """Return the values for which this is a schedule, None where there are none.

        With ``renaming`` it does not matter what the schedule calls the loops and workspaces that it makes.
        """
        if renaming:
            made = schedule.made_names
            if len(made) != len(self._made):
                return None
            schedule = schedule.rename(dict(zip(made, self._made, strict=True)))
        return self._matched(0, tuple(map(show_directive, schedule)), {})

    @cached_property
    def _made(self) -> tuple[str, ...]:
        return self.fill().made_names

    @property
    def text(self) -> str:
        """The directives with ``{name}`` in open places, for people to read."""
        return "; ".join(show_directive(part) if isinstance(part, Directive) else _shown(part) for part in self.parts)

    @cached_property
    def languages(self) -> tuple[dict[str, list[dict[str, Value]]], ...]:
        """For every part the texts that may stand there, "" for nothing, each with the values that make it."""
        return tuple(map(_language, self.parts))

    def _matched(self, place: int, texts: tuple[str, ...], values: dict[str, Value]) -> dict[str, Value] | None:
        if place == len(self.parts):
            return None if texts else values
        language = self.languages[place]
        for text, rest in ((texts[0], texts[1:]), ("", texts)) if texts else (("", texts),):
            for more in language.get(text, ()):
                if all(values.get(name, value) == value for name, value in more.items()):
                    found = self._matched(place + 1, rest, {**values, **more})
                    if found is not None:
                        return found
        return None


def filled(parts: Iterable[Part], values: Values) -> list[Directive]:
    """Return the directives of some parts; holes without a value take the usual one."""
    found: list[Directive] = []
    for part in parts:
        one = part if isinstance(part, Directive) else part.fill(values) if isinstance(part, Open) else values.get(part.name, part.usual)
        if isinstance(one, Directive):
            found.append(one)
    return found


def _holes(part: Part) -> tuple[Hole, ...]:
    if isinstance(part, Open):
        return tuple(hole for _, hole in part.places)
    return (part,) if isinstance(part, Hole) else ()


def _shown(part: Open | Hole) -> str:
    return part.text if isinstance(part, Open) else f"{{{part.name}}}"


def _language(part: Part) -> dict[str, list[dict[str, Value]]]:
    found: dict[str, list[dict[str, Value]]] = {}
    alone = Template((part,))
    for values in alone.choices():
        made = filled(alone.parts, values)
        found.setdefault(show_directive(made[0]) if made else "", []).append(values)
    return found
