"""Structural programs that no other beats asymptotically, as schedules that the tuner can start from.

The space is that of ``explore``; the cost is the time in the formats that the operands have (Ahrens et al., section 5). Memory is judged
later, by the sizes of the operands. Of programs of equal cost those that convert the fewest operands come first. Each loop nest comes once,
with the protocols that the compiler takes by itself if these cost the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice

from ...compiler.concrete.concretize import started
from ...compiler.deadline import Deadline, TimeOver
from ...compiler.errors import ScheduleError
from ...compiler.format import Format
from ...compiler.notation.nodes import Assignment
from ...compiler.schedule import directives as d
from ...compiler.schedule.schedule import Schedule
from ...compiler.space.arrays import array_workspaces
from ...compiler.space.schedules import Schedules
from ...compiler.space.situation import Situation
from ...compiler.space.space import Member, ScheduleSpace
from .algebra import Algebra
from .model import CostModel

MOST_COSTS = 4
MOST_OF_A_COST = 3
_LOOKED_AT = 64  # most programs of one cost that are looked at


def undominated_schedules(
    assignment: Assignment, formats: Mapping[str, Format], deadline: Deadline, semiring: tuple[str, str] = ("+", "*")
) -> list[Schedule]:
    """Return schedules of undominated programs, a few of every cost; none if the deadline passes before the frontier is known.

    Args:
        assignment: the checked expression.
        formats: a format for every tensor.
        deadline: until which the frontier is sought.
        semiring: (add, multiply).
    """
    found: dict[Schedule, None] = {}
    with suppress(TimeOver):
        whole, known = started(assignment, formats)
        space = ScheduleSpace(whole, known, watch=deadline.watch)
        schedules = Schedules(space, *semiring)
        model = CostModel(whole, known, algebra=Algebra(*semiring, looks_ahead=True), as_stored=True, watch=deadline.watch)
        for kind in islice(model.frontier(space).classes, MOST_COSTS):
            equals = {schedules.spelled(member): member for member in islice(kind.schedules, _LOOKED_AT)}
            found.update(dict.fromkeys(islice(_distinct(equals, schedules, deadline), MOST_OF_A_COST)))
    return list(found)


def _plain(schedule: Schedule, schedules: Schedules) -> Schedule:
    """Return a schedule without protocols, and without kinds of workspaces where the same ones are arrays that are read whole."""
    kinds = Schedule([one for one in schedule if not isinstance(one, d.ProtocolDirective)])
    short = Schedule([one for one in kinds if not isinstance(one, d.WorkspaceDirective)])
    return short if _arrays(short, schedules) == _arrays(kinds, schedules) else kinds


def _arrays(schedule: Schedule, schedules: Schedules) -> frozenset[str]:
    with suppress(ScheduleError):  # without protocols the directives need not be legal
        program = schedules.program(schedule)
        return array_workspaces(program, Situation(program, schedules.default.formats, {}))
    return frozenset()


def _changes(schedule: Schedule) -> tuple[int, int]:
    return sum(isinstance(one, d.Convert) for one in schedule), sum(not isinstance(one, d.ProtocolDirective) for one in schedule)


def _distinct(equals: dict[Schedule, Member], schedules: Schedules, deadline: Deadline) -> Iterator[Schedule]:
    """Yield those of some schedules of one cost that differ in more than protocols and compute nothing twice."""
    ranks = set(map(schedules.members.rank, equals.values()))
    seen = set[Schedule]()
    for whole in sorted(equals, key=_changes):
        deadline.watch()
        short = _plain(whole, schedules)
        if short not in seen and not any(isinstance(one, d.Recompute) for one in short):
            seen.add(short)
            found = schedules.find(short)
            yield short if found is not None and schedules.members.rank(found) in ranks else whole
