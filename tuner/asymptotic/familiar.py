"""Programs of a space that are known before it is searched: their costs bound the search, and are the answer if its time runs out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...compiler.errors import ExpressionError
from ...compiler.format import Format
from ...compiler.notation.nodes import Assignment
from ...compiler.schedule.schedule import Schedule
from ...compiler.space.forests.choice import promising, sizes_of
from ...compiler.space.forests.space import Forests
from ...compiler.space.schedules import Schedules
from ...compiler.space.space import Member

MOST = 100
"""Most forests that are looked at."""


def familiar(schedules: Schedules) -> Iterator[Member]:
    """Yield the default program and, of products, the loop nest forest of least work for every contraction path, cheapest first."""
    space = schedules.members
    for schedule in (Schedule(), *_forests(space.assignment, space.formats)):
        found = schedules.find(schedule)
        if found is not None:
            yield found


def _forests(assignment: Assignment, formats: Mapping[str, Format]) -> Iterator[Schedule]:
    try:
        forests = Forests(assignment, formats)
    except ExpressionError:
        return
    contraction = forests.contraction
    for forest in promising(contraction, sizes_of(contraction, {}, {}), MOST, lambda: None):
        yield forests.spelled(forest)
