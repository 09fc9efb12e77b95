"""All schedules of some templates, as a set: counted, listed, sampled uniformly, recognised."""

from __future__ import annotations

import random
import time
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Any

from ..errors import ScheduleError
from ..schedule.schedule import Schedule
from .template import Template, Value


class Instances:
    """All schedules of some templates. One that several templates have belongs to the first of them and counts once.

    Args:
        templates: in the order in which they are listed.
        stages: {"stage", "kept", ...} for each step that made or pruned templates.
    """

    def __init__(self, templates: Iterable[Template], stages: Sequence[Mapping[str, Any]] = ()) -> None:
        self.templates = tuple(templates)
        self._before = list(stages)

    @cached_property
    def stages(self) -> list[Mapping[str, Any]]:
        """How many are left after each stage: those that made the templates, then the parameters, which make schedules of them."""
        start = time.perf_counter()
        return [*self._before, {"stage": "parameters", "kept": self.count(), "seconds": time.perf_counter() - start}]

    def count(self) -> int:
        """Return how many schedules there are; none is listed."""
        return self._ends[-1] if self._ends else 0

    def __iter__(self) -> Iterator[Schedule]:
        """Yield every schedule once, template by template, each first with its usual values."""
        for template, repeated in zip(self.templates, self._repeated, strict=True):
            for rank in range(template.count):
                if rank not in repeated:
                    yield template.fill(template.ranked(rank))

    def sample(self, count: int, seed: int = 0) -> list[Schedule]:
        """Return schedules drawn uniformly, with replacement."""
        source = random.Random(seed)
        return [self._at(source.randrange(self.count())) for _ in range(count)] if self.count() else []

    def __contains__(self, schedule: object) -> bool:
        return isinstance(schedule, Schedule | str) and self.find(schedule) is not None

    def find(self, schedule: Schedule | str) -> tuple[Template, dict[str, Value]] | None:
        """Return the template that a schedule belongs to, and the values of its holes; None where it is in none.

        What a schedule calls the loops and workspaces that it makes does not matter.
        """
        try:
            wanted = Schedule(schedule)
        except ScheduleError:
            return None
        found = ((template, template.values(wanted)) for template in self.templates)
        return next(((template, values) for template, values in found if values is not None), None)

    def _at(self, place: int) -> Schedule:
        """Return the schedule at a place of ``iter``."""
        number = bisect_right(self._ends, place)
        template, repeated = self.templates[number], self._repeated[number]
        rank = place - (self._ends[number - 1] if number else 0)
        for earlier in sorted(repeated):
            rank += earlier <= rank
        return template.fill(template.ranked(rank))

    @cached_property
    def _ends(self) -> list[int]:
        """How many schedules the templates up to each have."""
        return list(accumulate(template.count - len(repeated) for template, repeated in zip(self.templates, self._repeated, strict=True)))

    @cached_property
    def _repeated(self) -> list[frozenset[int]]:
        """For every template the ranks of its schedules that belong to an earlier one."""
        texts = [_Texts(template) for template in self.templates]
        found: list[frozenset[int]] = []
        for number, template in enumerate(self.templates):
            rivals = [self.templates[other] for other in range(number) if texts[other].may_meet(texts[number])]
            found.append(_common(template, rivals))
        return found


class _Texts:
    """Which texts of directives the schedules of a template may have, and must have: one of each ``needed`` set."""

    def __init__(self, template: Template) -> None:
        self.any = frozenset(text for language in template.languages for text in language)
        self.needed = [language.keys() for language in template.languages if "" not in language]

    def may_meet(self, other: _Texts) -> bool:
        """Return False only if the two have no schedule in common."""
        return not any(map(other.any.isdisjoint, self.needed)) and not any(map(self.any.isdisjoint, other.needed))


def _common(template: Template, rivals: list[Template]) -> frozenset[int]:
    """Return the ranks of a template's schedules that any of some others has."""
    found = set[int]()
    for rival in rivals:
        if rival.count < template.count:
            values = (template.values(rival.fill(rival.ranked(rank)), renaming=False) for rank in range(rival.count))
            found.update(template.rank(one) for one in values if one is not None)
        else:
            found.update(
                rank for rank in range(template.count) if rival.values(template.fill(template.ranked(rank)), renaming=False) is not None
            )
    return frozenset(found)
