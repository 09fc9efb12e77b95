"""Forests among the structures that ``tune`` and ``lookup`` choose from: those of least work, one for every contraction path."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain

from ...errors import ExpressionError, ScheduleError
from ...notation.nodes import Assignment
from ...schedule.directives import WorkspaceDirective
from ...schedule.schedule import Schedule
from ..situation import Situation, Structure, further
from ..template import Template
from .choice import promising, sizes_of
from .forest import Forest
from .optimum import evaluated
from .space import Forests
from .work import work

MOST_FORESTS = 10
MOST_PAIRWISE = 5
"""Operands of a product whose pairwise nests over stored fibres are looked at."""
NEAR = 2.0
"""Pairwise nests of so many times the least work are not tried: they pass more through memory than forests that share loops."""


def forest_structures(assignment: Assignment, situation: Situation) -> Iterator[Structure]:
    """Yield forests of a product of three tensors or more, by their work, and pairwise nests over stored fibres; none of other
    expressions.

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
    cheapest = list(promising(contraction, sizes, MOST_FORESTS, half.watch))
    over_fibres = _over_fibres(forests, situation, NEAR * evaluated(cheapest[0], work(sizes)), half.watch) if cheapest else ()
    for space, forest in chain(((forests, forest) for forest in cheapest), over_fibres):
        try:
            schedule = _plain(space.spelled(forest))
        except ScheduleError:
            continue
        program = further(situation.program, schedule, situation)
        if program is not None:
            yield Structure(Template(schedule.directives), program, "forest")


def _over_fibres(forests: Forests, situation: Situation, limit: float, watch: Callable[[], None]) -> Iterator[tuple[Forests, Forest]]:
    """Yield the pairwise nest of least work over the stored fibres of every stretch of levels, where it is below a limit."""
    if len(forests.contraction.operands) > MOST_PAIRWISE:
        return
    for space in forests.over_fibres:
        sizes = sizes_of(space.contraction, situation.lengths or situation.extents, situation.fibres, situation.joins)
        yield from ((space, forest) for forest in promising(space.contraction, sizes, 1, watch, limit))


def _plain(schedule: Schedule) -> Schedule:
    """Return a schedule that leaves the kinds of workspaces to the compiler, which keeps small ones in registers; those with slots for
    positions are told apart by their kind."""
    return Schedule([one for one in schedule if not isinstance(one, WorkspaceDirective) or one.kind == "positions"])
