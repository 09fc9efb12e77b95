"""Forests among the structures that ``tune`` and ``lookup`` choose from: those of least work, one for every contraction path."""

from __future__ import annotations

from collections.abc import Iterator

from ...errors import ExpressionError, ScheduleError
from ...notation.nodes import Assignment
from ...schedule.directives import WorkspaceDirective
from ...schedule.schedule import Schedule
from ..situation import Situation, Structure, further
from ..template import Template
from .choice import promising, sizes_of
from .space import Forests

MOST_FORESTS = 10


def forest_structures(assignment: Assignment, situation: Situation) -> Iterator[Structure]:
    """Yield forests of a product of three tensors or more, by their work; none of other expressions.

    Raises ``TimeOver`` as ``Deadline.watch`` where the time is over; half of it may be spent on finding them.
    """
    if assignment.operator == "+=":
        return
    try:
        forests = Forests(assignment, situation.formats)
    except ExpressionError:
        return
    contraction = forests.contraction
    sizes = sizes_of(contraction, situation.lengths or situation.extents, situation.fibres, situation.joins)
    half = situation.deadline.part(0.5)  # the rest is for what is made of them
    for forest in promising(contraction, sizes, MOST_FORESTS, half.watch):
        try:
            schedule = _plain(forests.spelled(forest))
        except ScheduleError:
            continue
        program = further(situation.program, schedule, situation)
        if program is not None:
            yield Structure(Template(schedule.directives), program, "forest")


def _plain(schedule: Schedule) -> Schedule:
    """Return a schedule that leaves the kinds of workspaces to the compiler, which keeps small ones in registers."""
    return Schedule([one for one in schedule if not isinstance(one, WorkspaceDirective)])
