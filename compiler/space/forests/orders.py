"""Forests of sparse operands as they are stored, and in other orders of their levels, as one space (Dias et al., sections 6.3 and 6.5).

Converting an operand takes operations for every stored entry, and memory for a copy, a buffer of as many modes as the operand has.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cached_property
from itertools import accumulate, chain, permutations, product

from ...concrete.nodes import Program
from ...schedule.schedule import Schedule
from ..conversions import turning
from .contraction import Contraction
from .costs import Costs, costs_of, position_symbols, positions
from .forest import Forest
from .peeling import ForestRules
from .posynomial import Posynomial
from .priced import PricedForests
from .space import Forests


class OrderedForests:
    """The forests of a space, and those that read sparse operands in other orders of their levels. Has what ``Forests`` has.

    Args:
        given: of operands as they are stored.
        modes: how many modes an operand has at most that may be converted. None is converted where a sparse result is made in the
        order of an operand.
    """

    def __init__(self, given: Forests, modes: int) -> None:
        self.assignment, self.contraction, self.default = given.assignment, given.contraction, given.default
        is_free = given.default.formats[given.assignment.target.tensor].is_dense
        self.spaces: tuple[Forests, ...] = (given, *(_turned(given, modes) if is_free else ()))

    @cached_property
    def _by_contraction(self) -> dict[Contraction, Forests]:
        return {space.contraction: space for space in self.spaces}

    @cached_property
    def stages(self) -> list[dict[str, str | int]]:
        """How many different schedules the stages up to each leave: {"stage", "kept"}; the last counts all."""
        each = [space.stages for space in self.spaces]
        return [{"stage": same[0]["stage"], "kept": sum(int(one["kept"]) for one in same)} for same in zip(*each, strict=True)]

    def under(self, rules: ForestRules) -> OrderedForests:
        """Return the space under other rules."""
        other = OrderedForests.__new__(OrderedForests)
        other.assignment, other.contraction, other.default = self.assignment, self.contraction, self.default
        other.spaces = tuple(space.under(rules) for space in self.spaces)
        return other

    def of(self, forest: Forest) -> Forests:
        """Return the part of the space that a forest belongs to."""
        return self._by_contraction[forest.contraction]

    def count(self) -> int:
        """Return how many forests there are; none is listed."""
        return sum(space.count() for space in self.spaces)

    def forests(self) -> Iterator[Forest]:
        """Yield every forest once, first those of operands as they are stored."""
        return chain.from_iterable(space.forests() for space in self.spaces)

    def __iter__(self) -> Iterator[Schedule]:
        return map(self.spelled, self.forests())

    def sample(self, count: int, seed: int = 0) -> list[Schedule]:
        """Return schedules drawn uniformly, with replacement."""
        return [self.spelled(forest) for forest in self.sample_forests(count, seed)]

    def sample_forests(self, count: int, seed: int = 0) -> list[Forest]:
        """Return forests drawn uniformly, with replacement."""
        source, sizes = random.Random(seed), list(accumulate(space.count() for space in self.spaces))
        drawn = source.choices(self.spaces, cum_weights=sizes, k=count if sizes[-1] else 0)
        return [forest for space in drawn for forest in space.sample_forests(1, source.randrange(1 << 30))]

    def __contains__(self, schedule: object) -> bool:
        return any(schedule in space for space in self.spaces)

    def find(self, schedule: Schedule | str) -> Forest | None:
        """Return the forest that a schedule makes; None where it makes none of the space."""
        return next((forest for space in self.spaces if (forest := space.find(schedule)) is not None), None)

    def spelled(self, forest: Forest) -> Schedule:
        """Return the directives that make a forest from the default program."""
        return self.of(forest).spelled(forest)

    def program(self, schedule: Schedule | str) -> Program:
        """Return what a schedule makes of the default program. Raises ScheduleError: it cannot be carried out."""
        return self.spaces[0].program(schedule)


def _turned(given: Forests, modes: int) -> Iterator[Forests]:
    chains = given.contraction.chains
    orders = (permutations(order) if len(order) <= modes else (order,) for _, order in chains)
    for chosen in product(*orders):
        turned = tuple((operand, order) for (operand, _), order in zip(chains, chosen, strict=True))
        if turned != chains:
            yield given.turned(turned)


def whole_costs(space: Forests, costs: Costs) -> Costs:
    """Return the costs of forests with those of converting operands, in the symbols of operands as they are stored.

    Args:
        space: of the forests.
        costs: of the forests alone, in the symbols of operands as they read them.
    """
    names, copied, spent, deepest = dict[str, str](), Posynomial(), Posynomial(), 0
    for operand, _ in space.contraction.chains:
        access = space.contraction.operands[operand]
        form = space.default.formats[access.tensor]
        stored = tuple(access.indices[mode] for mode in form.order)
        read = space.contraction.names_in_order(space.contraction.levels(operand))
        if read != stored:
            symbols = position_symbols(access.tensor, stored, read)
            names |= {f"nnz_{access.tensor}_{level}": symbol for level, symbol in enumerate(symbols, 1)}
            own = positions(access.tensor, form, stored, len(stored) - 1)
            copied, spent = copied + own, spent + own.scaled(int(turning(len(stored))))
            deepest = max(deepest, len(stored))
    if not deepest:
        return costs
    time, memory = costs.time.renamed(names) + spent, costs.memory.renamed(names) + copied
    return Costs(time, memory, max(costs.loop_depth, deepest), max(costs.memory_depth, deepest))


def forest_costs(space: Forests, forest: Forest) -> Costs:
    """Return the costs of a forest of a space with those of converting operands."""
    return whole_costs(space, costs_of(forest, space.formats))


class PricedOrders:
    """The forests of a space by their costs, converting included; see ``PricedForests``."""

    def __init__(self, whole: OrderedForests) -> None:
        self._found: dict[Costs, list[tuple[PricedForests, Costs]]] = {}
        for space in whole.spaces:
            priced = PricedForests(space.peeling, space.formats)
            for own in priced.costs():
                self._found.setdefault(whole_costs(space, own), []).append((priced, own))

    def costs(self) -> tuple[Costs, ...]:
        """Return all different costs."""
        return tuple(self._found)

    def count(self, costs: Costs) -> int:
        """Return how many forests have some costs."""
        return sum(priced.count(own) for priced, own in self._found[costs])

    def forests(self, costs: Costs) -> Iterator[Forest]:
        """Yield the forests of some costs, in canonical order."""
        return chain.from_iterable(priced.forests(own) for priced, own in self._found[costs])
