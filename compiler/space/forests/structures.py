"""Forests among the structures that ``tune`` and ``lookup`` choose from: those of least work, one for every contraction path."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

from ...deadline import TimeOver
from ...errors import ExpressionError, ScheduleError
from ...notation.nodes import Assignment
from ...schedule.directives import Join, WorkspaceDirective
from ...schedule.schedule import Schedule
from ..situation import Situation, Structure, further
from ..template import Template
from .choice import promising, sizes_of
from .forest import Forest
from .optimum import evaluated
from .space import Forests
from .transposed import transposed
from .work import Sizes, work

MOST_FORESTS = 10
MOST_PAIRWISE = 5
"""Most operands of a product whose pairwise nests over stored fibres are examined."""
NEAR = 2.0
"""Pairwise nests of more than this many times the least work are not tried: they use more memory traffic than forests that share loops."""


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
    half = situation.deadline.part(0.5)  # the rest is for the candidates made of them
    found = list(promising(contraction, sizes, MOST_FORESTS, half.watch))
    for forest in found:
        yield from _structure(forest, forests, situation)
        if situation.blas and not contraction.chains:
            yield from _structure(forest, forests, situation, apart=True)
    if found:
        least = evaluated(found[0], work(sizes))
        for forest in _over_fibres(forests, situation, NEAR * least, half.watch):
            yield from _structure(forest, forests, situation)
        yield from _transposed(forests, sizes, situation, least, half.watch)


def _structure(forest: Forest, forests: Forests, situation: Situation, apart: bool = False) -> Iterator[Structure]:
    """Yield a forest as a structure, unless it cannot be carried out; ``apart``: with the same terms, which share no loops, so that BLAS
    may do them."""
    try:
        schedule = _plain(forests.spelled(forest))
    except ScheduleError:
        return
    if apart:
        schedule = Schedule([one for one in schedule if not isinstance(one, Join)])
    program = further(situation.program, schedule, situation)
    if program is not None:
        yield Structure(Template(schedule.directives), program, "conversion" if forests.conversions else "forest")


def _over_fibres(forests: Forests, situation: Situation, limit: float, watch: Callable[[], None]) -> Iterator[Forest]:
    """Yield the pairwise nest of least work over the stored fibres of every stretch of levels, where it is below a limit."""
    if len(forests.contraction.operands) > MOST_PAIRWISE:
        return
    for space in forests.over_fibres:
        sizes = sizes_of(space.contraction, situation.lengths or situation.extents, situation.fibres, situation.joins)
        yield from promising(space.contraction, sizes, 1, watch, limit)


def _transposed(forests: Forests, sizes: Sizes, situation: Situation, limit: float, watch: Callable[[], None]) -> Iterator[Structure]:
    """Yield forests of the sparse operand in another order, which take less than a limit with the conversion; none for a sparse
    result, which would have to be sorted."""
    contraction = forests.contraction
    if situation.joins is None or not situation.formats[contraction.target.tensor].is_dense or not situation.fibres:
        return
    with suppress(TimeOver):
        for one in transposed(contraction, sizes, situation.joins, limit, watch):
            yield from _structure(one.forest, forests.turned(one.forest.contraction.chains), situation)


def _plain(schedule: Schedule) -> Schedule:
    """Return a schedule that leaves the kinds of workspaces to the compiler, which keeps small ones in registers; those with slots
    for positions keep their kind."""
    return Schedule([one for one in schedule if not isinstance(one, WorkspaceDirective) or one.kind == "positions"])
