"""The search on two levels: an allocator of ours chooses the structure, a study of Optuna what stands in its holes.

One study over everything learns about the choice of the structure alone, since few parameters are common to all structures; a study for
each knows nothing at its start. So a structure begins with the best of its siblings, and its study takes over what they measured; loops of
other names count as the same where the same is decided about them (``roles``). Studies and allocator seldom try what lies beside the best,
so most points are steps from the fastest points, which may begin a structure too (``refinement``). Of the others some carry the values of
the fastest point to the other structures.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection
from pathlib import Path

from ...compiler.space.template import Hole, Value
from ..records import digest
from .allocator import Allocator
from .journal import open_storage
from .refinement import Refinement
from .roles import carried
from .space import Point, Space
from .strategy import Proposal
from .structure_study import StructureStudy, Values

_HOPELESS = 3  # failures after which a structure that has never worked is given up
_KNOWN = 12  # schedules that have to be known before steps from the fastest of them are taken
_SAMPLED = 5  # from then on, one in so many proposals carries the values of the fastest point to another structure, or is sampled
_CLOSE = 2.0  # one whose fastest point takes at most so many times as long


class TwoLevels:
    """Structures by expected improvement, their numbers by TPE; known points are never proposed.

    Args:
        space: what may be proposed.
        seed: of the samplers.
        journal: file of the studies, made if missing; trials that a dead process left running are failed. None: in memory.
        name: of the studies; digests of the space and the structure are added.
    """

    def __init__(self, space: Space, seed: int, journal: Path | None, name: str) -> None:
        self._space, self._seed, self._name = space, seed, f"{name}-{space.digest}"
        self._storage = open_storage(journal)
        self._allocator = Allocator([template.text for template in space.templates])
        self._refinement = Refinement(space)
        self._studies: dict[int, StructureStudy] = {}
        self._times: dict[int, dict[Point, float | None]] = {}
        self._known: set[str] = set()
        self._asked: dict[str, Point] = {}
        self._failures: Counter[int] = Counter()  # by structure; negative once it has worked
        self._live = set(range(len(space.templates)))
        self._count = 0  # of proposals
        self._take_up()

    def ask(self) -> Proposal | None:
        self._count += 1
        if len(self._known) >= _KNOWN and self._count % _SAMPLED:
            asked = self._asked.values()
            step = self._refinement.choose(self._is_new, self._live, lambda number: Point(number, self._first(number)), asked)
            if step is not None and (found := self._ask_in(step.template, step.values)) is not None:
                return found
        elif len(self._known) >= _KNOWN and (number := self._uncarried()) is not None:
            found = self._ask_in(number, self._first(number))
            if found is not None:
                return found
        while self._live:
            number = self._allocator.choose(self._live, [point.template for point in self._asked.values()])
            found = self._ask_in(number)
            if found is not None:
                return found
            self._live.discard(number)
        return None

    def tell(self, proposal: Proposal, seconds: float | None) -> None:
        point, trial = proposal.token  # type: ignore[misc]  # made by ``_ask_in``
        self._asked.pop(proposal.schedule, None)
        self._studies[point.template].tell(trial, seconds)
        self._note(point, seconds)

    def know(self, schedule: str, seconds: float | None) -> None:
        if schedule not in self._known and (point := self._space.find(schedule)) is not None:
            self._note(point, seconds)
        self._known.add(schedule)

    def close(self) -> None:
        """Do nothing: the journal is written with every trial."""

    def _is_new(self, point: Point) -> bool:
        schedule = self._space.schedule(point)
        return schedule not in self._known and schedule not in self._asked

    def _ask_in(self, number: int, first: Values | None = None) -> Proposal | None:
        """Return a proposal of a structure, ``first`` if that is new; None where it has no more."""
        study = self._study(number)
        if number in self._times:
            self._learn(number, study)
        running = set(study.running())
        found = study.ask(first or self._first(number), lambda values: self._is_new(Point(number, values)) and values not in running)
        if found is None:
            return None
        point = Point(number, found[0])
        schedule = self._space.schedule(point)
        self._asked[schedule] = point
        return Proposal(schedule, (point, found[1]), self._space.parameters(point))

    def _note(self, point: Point, seconds: float | None) -> None:
        self._known.add(self._space.schedule(point))
        self._times.setdefault(point.template, {})[point] = seconds
        self._allocator.tell(point.template, seconds)
        self._refinement.tell(point, seconds)
        failures = self._failures[point.template]
        self._failures[point.template] = -1 if seconds is not None or failures < 0 else failures + 1
        if self._failures[point.template] >= _HOPELESS or len(self._times[point.template]) == self._space.templates[point.template].count:
            self._live.discard(point.template)

    def _first(self, number: int) -> Values:
        """Return the first point of a structure: the values of the fastest point of all in holes that decide the same, the usual ones in
        others. It is proposed again whenever another structure has found a faster point. Where the structure has only failed, it is what
        lies farthest from all that failed, in every hole: any value may be the cause."""
        template = self._space.templates[number]
        if (tried := self._times.get(number)) and not any(tried.values()):
            return tuple(_farthest(hole, [point.values[place] for point in tried]) for place, hole in enumerate(template.holes))
        finished = [(seconds, point) for times in self._times.values() if len(times) > 1 for point, seconds in times.items() if seconds]
        best = self._carried(min(finished, key=lambda found: found[0])[1], number) if finished else {}
        return tuple(best.get(hole.name, hole.usual) for hole in template.holes)

    def _uncarried(self) -> int | None:
        """Return the structure of those close to the fastest in which the values of the fastest point of all were not tried, the fastest of
        them; None where there is none. Values that gain together only are found in one structure after the other, else."""
        bests = {number: min(filter(None, times.values()), default=math.inf) for number, times in self._times.items()}
        least = min(bests.values(), default=math.inf)
        close = [number for number, best in bests.items() if number in self._live and best <= _CLOSE * least]
        new = (number for number in sorted(close, key=bests.__getitem__) if self._is_new(Point(number, self._first(number))))
        return next(new, None)

    def _learn(self, number: int, study: StructureStudy) -> None:
        """Hand the points of siblings to the study, each as far from the level of this structure as it was from the level of its own."""
        level = _level(self._times[number])
        if level is None:
            return
        for other, times in self._times.items():
            theirs = _level(times)
            if other != number and theirs is not None and len(times) > 1:
                for point, seconds in times.items():
                    if seconds is not None:
                        study.learn(self._space.schedule(point), self._carried(point, number), seconds * level / theirs)

    def _carried(self, point: Point, number: int) -> dict[str, Value]:
        """Return the values of a point for the holes of another structure."""
        return carried(self._space.templates[point.template].holes, point.values, self._space.templates[number].holes)

    def _study(self, number: int) -> StructureStudy:
        if number not in self._studies:
            template = self._space.templates[number]
            seed = (self._seed + int(digest(template.text)[:6], 16)) % 2**32
            self._studies[number] = StructureStudy(template, self._storage, self._study_name(number), seed)
        return self._studies[number]

    def _study_name(self, number: int) -> str:
        return f"{self._name}-{digest(self._space.templates[number].text)[:8]}"

    def _take_up(self) -> None:
        """Continue where earlier processes stopped."""
        there = {study.study_name for study in self._storage.get_all_studies()}
        for number in range(len(self._space.templates)):
            if self._study_name(number) in there:
                for values, seconds in self._study(number).recorded():
                    self._note(Point(number, values), seconds)


def _farthest(hole: Hole, values: Collection[Value]) -> Value:
    """Return the choice that is least like some values: of numbers the one farthest from all of them, the least of several."""
    if not hole.is_ordered:
        return min(hole.choices, key=Counter(values).__getitem__)
    places = {choice: place for place, choice in enumerate(sorted(choice for choice in hole.choices if isinstance(choice, int)))}
    return max(places, key=lambda choice: min(abs(places[choice] - place) for value, place in places.items() if value in values))


def _level(times: dict[Point, float | None]) -> float | None:
    """Return the level of a structure, the geometric mean of its times; None where none ran."""
    logs = [math.log(seconds) for seconds in times.values() if seconds is not None]
    return math.exp(sum(logs) / len(logs)) if logs else None
