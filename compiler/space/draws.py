"""Random draws from a space that is too large to be listed: loop nests, and transformations of their loops.

Draws are uniform at each stage given those before: all loop nests are equally likely, and of one nest all ways to collapse, split and
take positions. Loops are then ordered and given to parallel units as ``template_filters`` allow.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ..concrete.concretize import started
from ..deadline import Deadline
from ..errors import ScheduleError
from ..format import Format
from ..notation.nodes import Assignment
from ..schedule.addresses import chain
from ..schedule.schedule import Schedule
from ..units import UNITS
from .orders import Orders
from .schedules import Schedules
from .situation import Situation, Structure
from .space import Rules, ScheduleSpace
from .template_filters import DEFAULT, OrderFilter, PartitionFilter
from .template_space import Transformation, assignments_of_units, drawn_partition
from .templates import removed_by

MOST_LOOPS = 8
"""Most loops of a nest that is transformed: there are exponentially many ways to collapse loops."""

_ATTEMPTS = 10
"""Draws for each wanted transformation, since many are refused."""


def drawn_nests(
    assignment: Assignment,
    formats: Mapping[str, Format],
    count: int,
    seed: int,
    deadline: Deadline,
    semiring: tuple[str, str] = ("+", "*"),
) -> Iterator[Schedule]:
    """Yield loop nests of an expression, with the default protocols of its formats: all if there are few, else some.

    Args:
        assignment: the checked expression.
        formats: a format for every tensor.
        count: how many are wanted.
        seed: of the draws.
        deadline: until which the space is counted and nests are written.
        semiring: (add, multiply).

    Raises:
        TimeOver: at the deadline.
    """
    space = ScheduleSpace(*started(assignment, formats), rules=Rules(protocols=False), watch=deadline.watch)
    schedules = Schedules(space, *semiring)
    drawn = iter(space) if space.count <= count else iter(space.sample(count, seed))
    for member in drawn:
        deadline.watch()
        try:
            yield schedules.spelled(member)
        except ScheduleError:
            continue


def drawn_transformations(
    structures: Sequence[Structure], situation: Situation, threads: int, count: int, seed: int, target: str = "cpu"
) -> Iterator[tuple[Structure, Transformation]]:
    """Yield structures with a transformation of their loops each, as the default filters for the target allow.

    Args:
        structures: to be transformed.
        situation: the expression.
        threads: with one thread no loop is parallel.
        count: how many are wanted; fewer are yielded where most draws are refused.
        seed: of the draws.
        target: "cpu" or "cuda".

    Raises:
        TimeOver: at the deadline of the situation.
    """
    source = random.Random(seed)
    small = [one for one in structures if 0 < len(chain(one.program.statement, ())) <= MOST_LOOPS]
    found = 0
    for _ in range(_ATTEMPTS * count if small else 0):
        situation.deadline.watch()
        structure = source.choice(small)
        transformation = _drawn(replace(situation, program=structure.program), threads, source, target)
        if transformation is not None:
            yield structure, transformation
            found += 1
            if found == count:
                return


def _drawn(situation: Situation, threads: int, source: random.Random, target: str) -> Transformation | None:
    """Return a transformation that changes loops, None where what was drawn is refused."""
    filters = DEFAULT[target]
    partition = drawn_partition(situation, source)
    if not partition.steps or partition.program is None:
        return None
    if not all(rule.keep(partition) for rule in filters if isinstance(rule, PartitionFilter)):
        return None
    orders = Orders(partition.loops, [rule.allowed(partition) for rule in filters if isinstance(rule, OrderFilter)])
    if not orders.count():
        return None
    order = orders.draw(source)
    units = [units for units in assignments_of_units(order, target) if threads > 1 or not any(UNITS[unit].is_thread for _, unit in units)]
    transformation = Transformation(partition, order, source.choice(units))
    return None if removed_by(transformation, filters) else transformation
