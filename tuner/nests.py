"""Loop nests of the structural space that a search begins with, by the filter that keeps them.

They depend on expression and formats and not on sizes, so each process finds them once: a campaign over many inputs would otherwise spend
a part of each tuning on finding them again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress

from ..compiler.deadline import Deadline, TimeOver
from ..compiler.notation.functions import has_functions
from ..compiler.schedule.schedule import Schedule
from ..compiler.space.draws import drawn_nests
from ..compiler.space.selection import DRAWN, ENCODINGS, UNDOMINATED
from .asymptotic.undominated import undominated_schedules
from .encodings import encoded_schedules
from .problem import Problem

FRONTIER_SECONDS = 2.0
"""Seconds of processor time that the asymptotic frontier may take."""

DRAWING_SECONDS = 0.5
"""Seconds of processor time that drawing loop nests may take."""

DRAWN_NESTS = 32
"""Loop nests that are drawn from a space that has more."""

_KEPT = 64
_found: OrderedDict[tuple[object, ...], tuple[Schedule, ...]] = OrderedDict()


def nests_of(problem: Problem, rules: Collection[str], deadline: Deadline, seed: int) -> dict[str, list[Schedule]]:
    """Return loop nests of a problem by the filter that keeps them, of those in ``rules``.

    A filter that takes too long gives none, as large products have too many programs, and so does the frontier of expressions with
    functions, which have no asymptotic cost.
    """
    found: dict[str, list[Schedule]] = {}
    assignment, formats, semiring = problem.assignment, problem.formats, problem.semiring
    if has_functions(assignment.value):
        return found
    if ENCODINGS in rules:
        found[ENCODINGS] = encoded_schedules(problem)
    key = (assignment, tuple(formats.items()), semiring)
    if UNDOMINATED in rules:
        limit = deadline.spared(1 / 2, FRONTIER_SECONDS)
        found[UNDOMINATED] = _once((*key, UNDOMINATED), limit, lambda: undominated_schedules(assignment, formats, limit, semiring))
    if DRAWN in rules:
        drawing = deadline.spared(1 / 4, DRAWING_SECONDS)
        found[DRAWN] = _once((*key, DRAWN, seed), drawing, lambda: drawn_nests(assignment, formats, DRAWN_NESTS, seed, drawing, semiring))
    return found


def _once(key: tuple[object, ...], limit: Deadline, find: Callable[[], Iterable[Schedule]]) -> list[Schedule]:
    """Return the loop nests found before under a key; else find them now, and keep them unless the deadline cut the search short."""
    if key in _found:
        return list(_found[key])
    nests: list[Schedule] = []
    with suppress(TimeOver):
        nests.extend(find())
    if not limit.cut:
        _found[key] = tuple(nests)
        while len(_found) > _KEPT:
            _found.popitem(last=False)
    return nests
