"""Static pruning: a pipeline of named stages, each of which takes candidates and gives those worth keeping.

Nothing is run. Every stage reports how many it kept and how long it took. A candidate is dropped only if it does not fit, or if
another one is no worse in every cost known at that point and better in one (Dias et al.: what is deeper but needs less memory stays
until sizes decide). The default schedule and the library of known good ones always stay.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import field
from functools import cache
from typing import Any, Generic, TypeVar

from ..compiler.concrete.concretize import Concretized
from ..compiler.concrete.depth import check_depth
from ..compiler.concrete.nodes import Program
from ..compiler.deadline import Deadline, TimeOver
from ..compiler.errors import TuningError
from ..compiler.frozen import frozen
from ..compiler.notation.functions import has_functions
from ..compiler.shown import is_word, shown
from ..compiler.space.candidates import Candidate
from ..compiler.space.races import by_race
from ..compiler.space.selection import CLOSED, DRAWN, ENCODINGS, RULES, UNDOMINATED, Selection
from ..compiler.space.situation import Situation
from .asymptotic.screening import Screening, beaten
from .costs import operations
from .encodings import converted_entries
from .kernels import default_keeps_bound, lowers
from .limits import workspace_elements
from .model import Ranked, nothing_within, problem_candidates, rank
from .nests import nests_of
from .problem import Problem
from .search.space import Space
from .searched import DRAW_SECONDS, Beyond
from .whole_space import other_compilers, whole_space

Item = TypeVar("Item")


@frozen
class Stage(Generic[Item]):
    """A named step of pruning, list to list.

    Attributes:
        deadline: by which the step ends; it then keeps what it has not judged, or leaves out what it has not found.
    """

    name: str
    keep: Callable[[list[Item]], list[Item]]
    deadline: Deadline = field(default_factory=Deadline)


def run_stages(items: list[Item], stages: Sequence[Stage[Item]]) -> tuple[list[Item], list[dict[str, Any]]]:
    """Return the candidates that all stages keep, and {"stage", "kept", "seconds"} for each stage, with "stopped" if its time was over."""
    report = []
    for stage in stages:
        start = time.perf_counter()
        items = stage.keep(items)
        stopped = {"stopped": "time over"} if stage.deadline.cut else {}
        report.append({"stage": stage.name, "kept": len(items), "seconds": time.perf_counter() - start, **stopped})
    return items, report


_HOPELESS = 100.0  # a candidate of so many times the cost of the cheapest is dropped
_UNLIKELY = 2.0  # the same for candidates that were drawn, not listed by a rule
_DOUBT = 1.5  # drawn candidates are ranked as if they cost so many times what the model expects
SWITCHES = ("memory", "asymptotic", "loop depth")
"""Stages that can be left out, as the filters of ``compiler.space.selection.RULES`` can."""

PRUNING_SECONDS = 60.0
"""Seconds of processor time that pruning may take where no limit is given; products of many factors would take for ever."""

COUNTING_SECONDS = 2.0
"""Seconds of processor time that counting the stages of the whole space may take."""

_DRAWING_SHARE = 0.2
"""Share of the time for pruning that one draw from the whole space may take."""

DRAWN_TILES = 16
"""Transformations of loops that are drawn."""


def surviving_space(
    problem: Problem, skip: Collection[str] = (), deadline: Deadline | None = None, also: Collection[str] = (), seed: int = 0
) -> tuple[Space, list[dict[str, Any]]]:
    """Return the space that is left to search, best first by the static model, and what each stage kept.

    Args:
        problem: what is to be tuned.
        skip: stages and rules to leave out, of ``SWITCHES`` and ``RULES``.
        deadline: by which pruning ends with what it has; None: after ``PRUNING_SECONDS``.
        also: stages to open, of ``CLOSED``.
        seed: of what is drawn.

    Raises:
        TuningError: a stage cannot be left out or opened, or nothing found keeps the memory bound.
        ScheduleError: the default has too many loops inside one another.
    """
    check_stages(skip, also)
    allowed = math.inf if deadline is None else deadline.left
    default = problem.concretized()
    check_depth(default.program)
    end = deadline or Deadline(PRUNING_SECONDS)
    generating, comparing, proving, ranking = (end.part(share) for share in (0.4, 0.6, 0.9, 1.0))

    @cache
    def usable(item: Candidate) -> bool:
        return lowers(problem, item.program, default)

    def has_room(item: Candidate) -> bool:
        return item.is_given or problem.limits.hold(_workspace_bytes(item, problem), problem.nbytes)

    def keeps_bound(item: Candidate) -> bool:
        return not item.template or not problem.limits.binds(workspace_elements(item.program, problem))

    def selected() -> Selection:
        compilers = other_compilers() if "compilers" in also else ()
        nests = nests_of(problem, [rule for rule in (UNDOMINATED, DRAWN, ENCODINGS) if rule not in skip], generating, seed)
        return Selection(skip, also, nests, DRAWN_TILES, seed, compilers)

    bounded = [Stage("memory_bound", lambda items: list(filter(keeps_bound, items)))] if problem.limits.memory_bound is not None else []
    stages: list[Stage[Candidate]] = [
        Stage("generated", lambda _: list(problem_candidates(problem, generating, selected())), generating),
        *bounded,
        Stage("memory", lambda items: list(filter(has_room, items))),
        Stage("asymptotic", lambda items: _not_beaten(items, problem, default, usable, comparing), comparing),
        Stage("loop depth", lambda items: _undominated(items, problem, comparing), comparing),
        Stage("legal", lambda items: [item for item in items if not item.template or (not proving.over and usable(item))], proving),
        Stage("ranked", lambda items: _worth_a_trial(rank(problem, by_race(items), ranking)), ranking),
    ]
    kept, report = run_stages([], [stage for stage in stages if stage.name not in skip])
    if len(kept) < 2 and not default_keeps_bound(problem):
        raise nothing_within(problem)
    seconds = DRAW_SECONDS if deadline is None else min(DRAW_SECONDS, _DRAWING_SHARE * allowed)
    beyond = None if DRAWN in skip else Beyond(problem, seed, also, seconds)
    return Space(tuple(item.template for item in kept), problem.to_canonical, problem.from_canonical, beyond), report


def counted_stages(problem: Problem, also: Collection[str] = ()) -> list[dict[str, Any]]:
    """Return how many schedules there are in the whole space, stage by stage, and after every filter that narrows it (``searched``).

    What is not counted within ``COUNTING_SECONDS`` is left out.
    """
    deadline, rows = Deadline(COUNTING_SECONDS), list[dict[str, Any]]()
    start = time.perf_counter()
    with suppress(TimeOver):
        for row in whole_space(problem, deadline, also).stages():
            now = time.perf_counter()
            rows.append({**row, "seconds": now - start})
            start = now
    return rows


def check_stages(skip: Collection[str], also: Collection[str] = ()) -> None:
    """Raise TuningError unless all stages and rules can be left out, and all stages opened."""
    for option, given, known, what in (
        ("skip", skip, (*SWITCHES, *RULES), "stages and rules that can be left out"),
        ("also", also, CLOSED, "stages that can be opened"),
    ):
        for name in given if isinstance(given, (tuple, list, set, frozenset)) else [given]:
            if name is given or not is_word(name, *known):
                raise TuningError(f"{option} names {shown(name)}: {what} are {', '.join(known)}, given as a list")


def _not_beaten(
    items: list[Candidate], problem: Problem, default: Concretized, usable: Callable[[Candidate], bool], deadline: Deadline
) -> list[Candidate]:
    """Return the candidates whose loops and workspaces no usable one beats asymptotically (``asymptotic.screening``).

    Workspaces fit into the cache by now, so time alone counts. What is not compared before a deadline stays, and so does everything
    of expressions with functions, which that model does not know.
    """
    if has_functions(problem.assignment.value):
        return items
    screening = Screening(problem.assignment, Situation(default.program, default.formats, problem.extents, deadline))
    members: dict[Program, list[Candidate]] = {}
    for item in items:
        if item.structure is not None:
            members.setdefault(item.structure, []).append(item)
    programs = list(members)
    costs = [screening.cost(program) for program in programs]
    expected = [0.0 if deadline.over else operations(problem, program, default.sources) for program in programs]
    lost = beaten(costs, expected, lambda place: any(map(usable, members[programs[place]])), screening, deadline)
    dropped = {program for program, loses in zip(programs, lost, strict=True) if loses}
    return [item for item in items if item.is_given or item.structure not in dropped]


def undominated(items: Sequence[Item], costs: Callable[[Item], Sequence[float]]) -> list[Item]:
    """Return the items that no other one beats: no worse in every cost and better in one. Equal ones all stay."""
    vectors = [tuple(costs(item)) for item in items]
    distinct = set(vectors)
    frontier = {vector for vector in distinct if not any(_beats(other, vector) for other in distinct)}
    return [item for item, vector in zip(items, vectors, strict=True) if vector in frontier]


def _undominated(items: list[Candidate], problem: Problem, deadline: Deadline) -> list[Candidate]:
    """Return the candidates that no other beats in depth, in elements of workspaces, and in entries of operands that are converted, and the
    one that the static model expects to be the fastest: depth says nothing of loops that a call of BLAS does.

    Those of the asymptotic frontier stay, and beat none, since lowering still adds the workspaces that their sparse results need. Drawn
    candidates beat none that a rule keeps.
    """
    sources = problem.concretized().sources

    def converted(item: Candidate) -> int:
        return converted_entries(problem, item.program, sources)

    def costs(item: Candidate) -> tuple[float, ...]:
        return item.depth, item.elements(problem.extents), converted(item)

    frontier = undominated([item for item in items if item.is_given or item.is_by_rule], costs)
    judged = {id(item) for item in (*frontier, *undominated([*frontier, *(item for item in items if item.is_drawn)], costs))}
    judged |= {id(ranked.candidate) for ranked in rank(problem, items, deadline)[:1]}
    return [item for item in items if id(item) in judged or not (item.is_by_rule or item.is_drawn)]


def _worth_a_trial(ranked: list[Ranked]) -> list[Candidate]:
    """Return the candidates in their order, without those that the model expects to take far longer than the cheapest.

    A schedule of the library may fit an expression and be absurd for the data, for example start threads for every row. Drawn schedules
    come after those of rules unless they are expected to be clearly faster.
    """
    cheapest = min((item.cost for item in ranked), default=0.0)

    def is_hopeless(item: Ranked) -> bool:
        return item.cost > cheapest * (_UNLIKELY if item.candidate.is_drawn else _HOPELESS)

    worthy = [item for item in ranked if not is_hopeless(item) or not item.candidate.template]
    return [item.candidate for item in sorted(worthy, key=lambda item: item.cost * (_DOUBT if item.candidate.is_drawn else 1.0))]


def _workspace_bytes(item: Candidate, problem: Problem) -> int:
    return item.elements(problem.extents) * problem.dtype.itemsize * problem.threads


def _beats(left: Sequence[float], right: Sequence[float]) -> bool:
    return left != right and all(a <= b for a, b in zip(left, right, strict=True))
