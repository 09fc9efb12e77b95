"""Schedule templates in two stages, and the templates left after each rule (Senanayake et al., section 6).

Stage one partitions the iteration space: runs of directly nested loops are collapsed, every resulting loop may be iterated by
positions of an operand, split, and brought back to coordinates. Stage two orders the loops and gives some of them to parallel
units. Split sizes stay open. Loops are tiled once unless ``levels`` is larger than 1, since deeper tiling has no natural end. Every
rule (``space.template_filters``) can be left out; whole parts of the space are counted without being listed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import factorial

from ..concrete.concretize import concretize
from ..format import Format
from ..notation.nodes import Assignment
from ..schedule import directives as d
from ..schedule.addresses import chain
from ..schedule.apply import apply_schedule
from ..schedule.schedule import Schedule
from .orders import Orders
from .situation import Situation
from .template_filters import DEFAULT, Filter, OrderFilter, PartitionFilter, UnitFilter
from .template_space import Partition, Transformation, assignments_of_units, count_units, partitions


def templates(
    assignment: Assignment, formats: Mapping[str, Format], target: str = "cpu", filters: Sequence[Filter] | None = None, levels: int = 1
) -> Iterator[Transformation]:
    """Yield the templates that the filters leave, each once, in a fixed order.

    Args:
        assignment: a checked assignment whose default program is one nest of loops.
        formats: a format for every tensor.
        target: "cpu" or "cuda".
        filters: ``DEFAULT`` if None. ``legal_partition`` is always among them.
        levels: how often one loop may be split.
    """
    situation = _situation(assignment, formats)
    chosen = DEFAULT[target] if filters is None else filters
    for partition in partitions(situation, levels):
        if partition.program is not None and all(rule.keep(partition) for rule in chosen if isinstance(rule, PartitionFilter)):
            yield from _templates_of(partition, target, chosen)


def _templates_of(partition: Partition, target: str, filters: Sequence[Filter]) -> Iterator[Transformation]:
    checks = [rule.keep for rule in filters if isinstance(rule, UnitFilter)]
    alone = [rule.allowed for rule in filters if isinstance(rule, UnitFilter) and rule.allowed is not None]
    for order in _orders(partition, filters).all():

        def allowed(loop: str, unit: str, order: tuple[str, ...] = order) -> bool:
            return all(rule(partition, order, loop, unit) for rule in alone)

        for units in assignments_of_units(order, target, allowed):
            template = Transformation(partition, order, units)
            if all(check(template) for check in checks):
                yield template


def _orders(partition: Partition, filters: Sequence[Filter]) -> Orders:
    return Orders(partition.loops, [rule.allowed(partition) for rule in filters if isinstance(rule, OrderFilter)])


def _situation(assignment: Assignment, formats: Mapping[str, Format]) -> Situation:
    found = concretize(assignment, formats)
    return Situation(found.program, found.formats, {})


def report(
    assignment: Assignment, formats: Mapping[str, Format], target: str = "cpu", filters: Sequence[Filter] | None = None, levels: int = 1
) -> list[tuple[str, str, int]]:
    """Return (filter, kind, templates left) before any filter and after each, in the order in which they apply."""
    situation = _situation(assignment, formats)
    chosen = tuple(DEFAULT[target] if filters is None else filters)
    rows = list(partitions(situation, levels))
    found = [("unpruned", "", sum(factorial(len(row.loops)) * count_units(len(row.loops), target, nested=False) for row in rows))]
    for number, rule in enumerate(chosen, 1):
        if isinstance(rule, PartitionFilter):
            rows = [row for row in rows if rule.keep(row)]
        found.append((rule.name, rule.kind, _count(rows, target, chosen[:number])))
    return found


def _count(rows: Sequence[Partition], target: str, filters: Sequence[Filter]) -> int:
    if any(isinstance(rule, UnitFilter) for rule in filters):
        return sum(1 for row in rows for _ in _templates_of(row, target, filters))
    ordered = any(isinstance(rule, OrderFilter) for rule in filters)
    return sum(
        (_orders(row, filters).count() if ordered else factorial(len(row.loops)))
        * count_units(len(row.loops), target, nested=False)
        for row in rows
    )


def template_of(assignment: Assignment, formats: Mapping[str, Format], schedule: Schedule, extents: Mapping[str, int]) -> Transformation:
    """Return the template that a schedule is an instance of: its loops and units, without workspaces and tags."""
    situation = _situation(assignment, formats)
    kept = (d.Reorder, d.Split, d.SplitUp, d.Collapse, d.Pos, d.Coord, d.MergePath)
    steps = [directive for directive in schedule if isinstance(directive, kept)]
    program = apply_schedule(situation.program, Schedule(steps), situation.formats, extents)
    made = tuple(step for step in steps if not isinstance(step, d.Reorder))
    loops = chain(program.statement, ())
    renamed = {old: directive.index for directive in schedule if isinstance(directive, d.Bound) for old in (directive.bounded,)}
    units = [
        (renamed.get(directive.index, directive.index), directive.unit) for directive in schedule if isinstance(directive, d.Parallelize)
    ]
    return Transformation(Partition(made, loops, program, situation), loops, tuple((loop, unit) for loop, unit in units if loop in loops))


def removed_by(template: Transformation, filters: Sequence[Filter]) -> list[str]:
    """Return the names of the filters that would remove a template."""
    return [rule.name for rule in filters if not _keeps(rule, template)]


def _keeps(rule: Filter, template: Transformation) -> bool:
    match rule:
        case PartitionFilter():
            return rule.keep(template.partition)
        case OrderFilter():
            allowed = rule.allowed(template.partition)
            return all(allowed(frozenset(template.order[:place]), loop) for place, loop in enumerate(template.order))
        case UnitFilter():
            return rule.keep(template)
