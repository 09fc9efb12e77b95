"""The space that ``tune`` searches: the whole space of an expression, narrowed to what is meaningful on this machine and for these
operands. The search begins with the templates that rules list (``prune``); beyond these it draws from here.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from typing import Any

from ..compiler.concrete.nodes import Program
from ..compiler.deadline import Deadline, TimeOver
from ..compiler.schedule.schedule import Schedule
from ..compiler.space.full import FullSpace
from ..compiler.space.moves import Moves
from .costs import operations
from .kernels import legal_candidate
from .limits import workspace_elements
from .problem import Problem
from .whole_space import whole_space

WATCHED_SECONDS = 20.0
"""Seconds of processor time for one question to a space; large products have too many groupings to count."""

DRAW_SECONDS = 1.0
"""Seconds of processor time for one draw."""

_TRIES = 24  # most draws for one schedule, since some are refused, known, or hopeless
_NEAR = 0.8  # share of the draws that are neighbours of a fast schedule
_COMPARED = 8  # fastest schedules whose generated code a draw must differ from
_UNLIKELY = 2.0  # a draw that the model expects to cost more than so many times the best so far is not tried


class Renewed(Deadline):
    """A deadline that starts again with every question."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self._seconds = seconds

    def begin(self) -> None:
        """Start the time of the next question."""
        self._end, self._found_over = time.thread_time() + self._seconds, False

    def forever(self) -> None:
        """Remove the time limit of the next question."""
        self._end, self._found_over = math.inf, False


class Beyond:
    """Draws schedules that no rule lists: neighbours of those that were fast, and some from the whole space.

    Args:
        problem: what is tuned.
        seed: of the draws.
        also: as of ``filters``.
        seconds: processor time that a draw may take; once one takes longer, nothing more is drawn.
    """

    def __init__(self, problem: Problem, seed: int, also: Collection[str] = (), seconds: float = DRAW_SECONDS) -> None:
        self._problem, self._seed, self._also = problem, seed, also
        self._watch = Renewed(seconds)
        self._random = random.Random(seed)
        self._made: tuple[FullSpace, Moves] | None = None
        self._ended = False
        self._sources: dict[str, str | None] = {}

    def draw(self, best: Sequence[tuple[float, str]], known: Collection[str]) -> str | None:
        """Return a schedule in canonical names that is not known; None where none is found, or finding one takes too long.

        Args:
            best: (seconds, schedule in canonical names), the fastest first.
            known: schedules in canonical names, which are not to be drawn again.
        """
        if self._ended:
            return None
        self._watch.begin()
        try:
            space, moves = self._made or self._begun()
            return self._found(space, moves, best, known)
        except TimeOver:
            self._ended = True
            return None

    def _begun(self) -> tuple[FullSpace, Moves]:
        narrowed = whole_space(self._problem, self._watch, self._also).filtered()
        self._made = narrowed, Moves(narrowed.whole, self._seed)
        return self._made

    def _found(self, space: FullSpace, moves: Moves, best: Sequence[tuple[float, str]], known: Collection[str]) -> str | None:
        problem = self._problem
        most = _UNLIKELY * self._expected(best[0][1]) if best else math.inf
        sources = {self._source(text) for _, text in best[:_COMPARED]} | set(self._sources.values())
        for _ in range(_TRIES):
            self._watch.watch()
            near = best and self._random.random() < _NEAR
            place = min(int(self._random.expovariate(1.0)), len(best) - 1)
            schedule = space.near(problem.from_canonical(best[place][1]), moves) if near else space.anywhere(moves)
            if schedule is None or (text := problem.to_canonical(schedule)) in known:
                continue
            candidate = legal_candidate(problem, schedule)
            if candidate is None or candidate.source in sources:
                continue
            self._sources[text] = candidate.source
            if self._cost(candidate.compiled.concretized.program) <= most:
                return text
        return None

    def _source(self, text: str) -> str | None:
        """Return the digest of the code of a schedule in canonical names."""
        if text not in self._sources:
            candidate = legal_candidate(self._problem, self._problem.from_canonical(text))
            self._sources[text] = None if candidate is None else candidate.source
        return self._sources[text]

    def _cost(self, program: Program) -> float:
        """Return the cost that the model expects of a program; infinity if there is no room for its workspaces."""
        problem = self._problem
        held = workspace_elements(program, problem) * problem.dtype.itemsize * problem.threads
        if not problem.limits.hold(held, problem.nbytes):
            return math.inf
        return operations(problem, program, problem.concretized().sources)

    def _expected(self, text: str) -> float:
        candidate = legal_candidate(self._problem, self._problem.from_canonical(text))
        return math.inf if candidate is None else self._cost(candidate.compiled.concretized.program)


class Searched:
    """The space that a campaign searched: the whole space under the filters, and the schedules tried outside of it.

    Args:
        problem: what was tuned.
        also: as of ``filters``.
        tried: schedules that ran.
        stages: how many each stage has.
        seconds: processor time that counting may take; a space that is not counted by then is drawn from stage by stage.
    """

    def __init__(
        self,
        problem: Problem,
        also: Collection[str],
        tried: Sequence[Schedule],
        stages: list[dict[str, Any]],
        seconds: float = WATCHED_SECONDS,
    ) -> None:
        self._stages = stages
        self._watch = Renewed(seconds)
        self._watch.forever()
        self._space = whole_space(problem, self._watch, also).filtered()
        self._tried = tuple(dict.fromkeys(tried))
        self._expression = problem.expression

    def __repr__(self) -> str:
        stages = ", ".join(f"{each['stage']} {each['kept']}" for each in self._stages)
        return f"Searched({self._expression!r}{': ' if stages else ''}{stages})"

    @cached_property
    def _besides(self) -> tuple[Schedule, ...]:
        """Schedules that were tried and are not in the space: those that the user gave, and those of rules that the filters drop."""
        self._watch.forever()
        return tuple(one for one in self._tried if one not in self._space)

    @cached_property
    def _counted(self) -> tuple[int, bool]:
        self._watch.begin()
        return self._space.whole.counted()

    @property
    def is_counted(self) -> bool:
        """Whether ``count`` is how many there are; else there are more."""
        return self._counted[1]

    @cached_property
    def stages(self) -> list[dict[str, Any]]:
        """How many schedules are left after each stage; those tried outside of the space are added last."""
        start = time.perf_counter()
        return [*self._stages, {"stage": "parameters", "kept": self.count(), "seconds": time.perf_counter() - start}]

    def count(self) -> int:
        """Return how many schedules there are, those included that the language refuses; none is listed.

        If counting takes too long, the number counted by then (``is_counted`` is False).
        """
        return len(self._besides) + self._counted[0]

    def __iter__(self) -> Iterator[Schedule]:
        """Yield the schedules tried outside of the space, then every schedule of the space that the language accepts."""
        yield from self._besides
        self._watch.forever()
        yield from self._space

    def sample(self, count: int, seed: int = 0) -> list[Schedule]:
        """Return schedules that the language takes, with replacement; fewer where nearly all are refused.

        They are drawn uniformly, or stage by stage where the space takes too long to count (``moves``).
        """
        draw = self._space.sample if self.is_counted else self._space.drawn
        self._watch.forever()
        return draw(count, seed)

    def __contains__(self, schedule: object) -> bool:
        self._watch.forever()
        return schedule in self._space or schedule in self._besides
