"""Schedule templates drawn at random from sets too large to list: those that filters keep, and those that one filter removes."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice

from ...compiler.space.orders import Orders
from ...compiler.space.situation import Situation
from ...compiler.space.template_filters import DEFAULT, PAPER, Filter, OrderFilter, PartitionFilter
from ...compiler.space.template_space import Partition, Transformation, assignments_of_units, partitions
from ...compiler.space.templates import removed_by

TARGET = "cpu"
KINDS = ("redundant", "inefficient")
_ATTEMPTS = 400
_ORDERS = 24
"""How many orders of a partition are among the shortest templates."""


@dataclass
class Group:
    """A set of templates, from which some are drawn at random.

    Attributes:
        filters: the filters that keep them.
        without: a rule that must remove them.
        rows: the partitions from which they are drawn.
        seen: the texts that were drawn.
    """

    name: str
    kind: str
    switched: str
    filters: tuple[Filter, ...]
    without: Filter | None
    rows: Sequence[Partition]
    seen: set[str] = field(default_factory=set)
    drawn: int = 0
    fitting: int = 0
    refused: int = 0

    @cached_property
    def kept(self) -> list[tuple[Partition, Orders, int]]:
        """(partition, its allowed orders, number of templates) of each partition with templates that all filters keep."""
        rules = [rule for rule in self.filters if isinstance(rule, PartitionFilter)]
        orders = [rule for rule in self.filters if isinstance(rule, OrderFilter)]
        found = []
        for row in self.rows:
            if row.program is not None and all(rule.keep(row) for rule in rules):
                ways = Orders(row.loops, [rule.allowed(row) for rule in orders])
                units = len(list(assignments_of_units(row.loops, TARGET)))
                if count := ways.count() * units:
                    found.append((row, ways, count))
        return found

    def estimate(self) -> int:
        """Return about how many templates the set has, estimated from the share of draws that fit."""
        total = sum(count for _, _, count in self.kept)
        return round(total * self.fitting / self.drawn) if self.drawn else 0

    def shortest(self, most: int) -> list[Transformation]:
        """Return the templates with the shortest texts, half of them with threads: a few orders of each partition of fewest steps."""
        rows = sorted(self.kept, key=lambda entry: len(entry[0].steps))[:most]
        ordered = ((row, order) for row, ways, _ in rows for order in islice(ways.all(), _ORDERS))
        made = (Transformation(row, order, units) for row, order in ordered for units in assignments_of_units(order, TARGET))
        ranked = sorted(made, key=lambda one: len(one.text))
        found: list[Transformation] = []
        for threads in (True, False):
            own = (one for one in ranked if ("cpu_thread" in dict(one.units).values()) == threads)
            found += islice((one for one in own if not removed_by(one, self.filters)), most // 2)
        return found

    def plainer(self, like: Transformation) -> Iterator[Transformation]:
        """Yield the templates that leave out steps of another one; a loop that is not cut any more takes the place and unit of its
        pieces."""
        graph, units = like.partition.graph, dict(like.units)
        for row, _, _ in self.kept:
            if set(row.steps) < set(like.partition.steps):
                made = {loop: graph.leaves(loop) for loop in row.loops}
                order = tuple(sorted(row.loops, key=lambda loop: min(like.order.index(leaf) for leaf in made[loop])))
                taken = ((loop, next((units[leaf] for leaf in made[loop] if leaf in units), None)) for loop in order)
                template = Transformation(row, order, tuple((loop, unit) for loop, unit in taken if unit is not None))
                if not removed_by(template, self.filters):
                    yield template

    def draw(self, rng: random.Random, like: Transformation | None = None) -> Transformation | None:
        """Return a template that was not drawn before, with the partition of ``like`` if given; None if no new one is found."""
        pool = [one for one in self.kept if like is None or one[0].steps == like.partition.steps]
        if not pool:
            return None
        for _ in range(_ATTEMPTS):
            ((row, ways, _),) = rng.choices(pool, [count for _, _, count in pool])
            order = ways.draw(rng)
            template = Transformation(row, order, rng.choice(list(assignments_of_units(order, TARGET))))
            fits = not removed_by(template, self.filters) and (self.without is None or removed_by(template, [self.without]))
            if like is None:
                self.drawn, self.fitting = self.drawn + 1, self.fitting + bool(fits)
            if fits and template.text not in self.seen:
                self.seen.add(template.text)
                return template
        return None


def groups_of(situation: Situation) -> list[Group]:
    """Return the sets to compare: the templates that the default rules keep, those that each rule removes, and those that are kept with a
    rule of the paper in place of ours."""
    rows, rules, theirs = list(partitions(situation)), DEFAULT[TARGET], PAPER[TARGET]
    found = [Group("", "", "", rules, None, rows)]
    switchable = [rule for rule in rules if rule.kind in KINDS]
    found += [Group(rule.name, rule.kind, "off", tuple(other for other in rules if other != rule), rule, rows) for rule in switchable]
    for place, (ours, paper) in enumerate(zip(rules, theirs, strict=False)):  # what we add stands behind
        if ours != paper:
            found.append(Group(paper.name, paper.kind, "as in the paper", (*rules[:place], paper, *rules[place + 1 :]), None, rows))
    return found
