"""What an exploration of loop nest forests found: those that are left, with their costs as text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Any, overload

from ...compiler.concrete.nodes import Program
from ...compiler.concrete.printer import loop_nest
from ...compiler.errors import ExpressionError, TuningError
from ...compiler.frozen import frozen
from ...compiler.native.machine import this_machine
from ...compiler.schedule.schedule import Schedule
from ...compiler.space.forests.costs import Costs
from ...compiler.space.forests.forest import Forest
from ...compiler.space.forests.orders import OrderedForests, forest_costs
from ...compiler.space.forests.paths import PathRules
from ...compiler.space.forests.peeling import ForestRules
from ...compiler.space.forests.space import Forests
from ...compiler.space.forests.transposed import MOST_LEVELS
from .concrete import BYTES, fastest
from .dominance import Dominance

ANY_FOREST = ForestRules(PathRules(pairwise=False), fused=False, derived=False)


@frozen
class ForestClass:
    """Forests of equal cost.

    Attributes:
        costs: the cost of each.
        count: how many there are.
        listed: returns an iterator over them, in canonical order.
    """

    costs: Costs
    count: int
    listed: Callable[[], Iterator[Forest]]


class FrontierForest:
    """A forest that is left after the last stage.

    Attributes:
        forest: its loops and terms.
        costs: what it costs.
        task_set: always None, since forests are judged by counts and not by task sets.
    """

    task_set = None

    def __init__(self, forest: Forest, costs: Costs, space: OrderedForests) -> None:
        self.forest, self.costs, self._space = forest, costs, space

    @cached_property
    def schedule(self) -> Schedule:
        """The directives that make it from the default program, for ``compile``, ``evaluate``, ``tune`` and ``explain``."""
        return self._space.spelled(self.forest)

    @property
    def program(self) -> Program:
        """What the schedule makes of the default program."""
        return self._space.program(self.schedule)

    @property
    def loop_nest(self) -> str:
        """Readable concrete index notation."""
        return loop_nest(self.program.statement)

    @property
    def time(self) -> str:
        """Scalar operations, as a Python expression over extents and stored positions of levels (nnz_B_1 ..)."""
        return str(self.costs.time)

    @property
    def memory(self) -> str:
        """Elements of all buffers, as a Python expression over extents."""
        return str(self.costs.memory)

    @property
    def loop_depth(self) -> int:
        """How many loops stand inside each other, at most."""
        return self.costs.loop_depth

    @property
    def memory_depth(self) -> int:
        """How many modes a buffer has, at most."""
        return self.costs.memory_depth

    def __repr__(self) -> str:
        return f"<forest of time {self.time}, memory {self.memory}>"


class FrontierForests(Sequence[FrontierForest]):
    """The forests that are left, those of equal cost together; listed no further than they are asked for."""

    def __init__(self, classes: Sequence[ForestClass], space: OrderedForests) -> None:
        self._classes, self._space = classes, space
        self._listed: list[FrontierForest] = []

    @cached_property
    def _rest(self) -> Iterator[FrontierForest]:
        return (FrontierForest(forest, one.costs, self._space) for one in self._classes for forest in one.listed())

    def __len__(self) -> int:
        return sum(one.count for one in self._classes)

    @overload
    def __getitem__(self, place: int) -> FrontierForest: ...
    @overload
    def __getitem__(self, place: slice) -> list[FrontierForest]: ...
    def __getitem__(self, place: int | slice) -> FrontierForest | list[FrontierForest]:
        wanted = range(len(self))[place]
        if isinstance(wanted, range):
            return [self[one] for one in wanted]
        self._listed.extend(islice(self._rest, max(0, wanted + 1 - len(self._listed))))
        return self._listed[wanted]

    def spread(self, limit: int) -> list[FrontierForest]:
        """Return some forests: the first of every cost, then the others in order."""
        firsts = [FrontierForest(next(one.listed()), one.costs, self._space) for one in self._classes[:limit]]
        seen = {one.forest for one in firsts}
        return [*firsts, *islice((one for one in self if one.forest not in seen), limit - len(firsts))]


@frozen(repr=False)
class ForestExploration:
    """What ``explore`` found among loop nest forests.

    Attributes:
        expression: as given.
        preset: the pipeline.
        stages: for every stage its name, how many schedules it kept ("kept"), of how many costs ("buckets"), and its seconds.
        frontier: the schedules that are left after the last stage, those of equal cost together.
        classes: the different costs among them, each with the number of its schedules.
        space: all schedules of the preset before pruning: ``count()``, ``iter``, ``sample(n, seed)``, ``in``.
        dominance: compares costs over all admitted sizes.
        cache_share: share of the last-level cache that buffers may take (``chosen``).
    """

    expression: str
    preset: str
    stages: list[dict[str, Any]]
    frontier: FrontierForests
    classes: tuple[ForestClass, ...]
    space: OrderedForests
    dominance: Dominance
    cache_share: float = 0.5

    def __repr__(self) -> str:
        stages = ", ".join(f"{stage['stage']} {stage['kept']}" for stage in self.stages)
        return f"ForestExploration({self.expression!r}: {stages}; costs {', '.join(str(one.costs.time) for one in self.classes[:3])})"

    def chosen(self, sizes: Mapping[str, float], memory_bound: float | None = None) -> FrontierForest:
        """Return the schedule of the frontier that suits an input: the one of least time among those whose buffers take at most
        ``cache_share`` of the last-level cache (among all if none does); of equal ones, that which accesses memory best (section 5.3).

        Args:
            sizes: extents by index, and positions of the levels of sparse operands (nnz_B_1 ..).
            memory_bound: elements that buffers have at most; None: no further bound.

        Raises:
            TuningError: a size is missing, or no schedule is within the memory bound.
        """
        known = set(sizes)
        missing = sorted({name for one in self.classes for cost in (one.costs.time, one.costs.memory) for name in cost.symbols - known})
        if missing:
            raise TuningError(f"the size {missing[0]} is missing; costs of the frontier depend on it")
        priced = [(one.costs.time.at(sizes), one.costs.memory.at(sizes), one) for one in self.classes]
        bounded = [found for found in priced if memory_bound is None or found[1] <= memory_bound]
        if not bounded:
            least = min(found[1] for found in priced)
            raise TuningError(f"no schedule of the frontier has buffers of at most {memory_bound:g} elements; the least has {least:g}")
        share = self.cache_share * this_machine().last_level_cache / BYTES
        near = [found for found in bounded if found[1] <= share] or bounded
        least = min(found[0] for found in near)
        same = [(one, forest) for time, _, one in near if time == least for forest in one.listed()]
        costs = {forest: one.costs for one, forest in same}
        forest = fastest({forest: self.space.of(forest).formats for forest in costs}, sizes)
        return FrontierForest(forest, costs[forest], self.space)

    def costs(self, schedule: Schedule | str) -> Costs:
        """Return the costs of a schedule, conversions of operands included. Raises ``ExpressionError``: it makes no loop nest forest."""
        return forest_costs(*self._found(schedule))

    def _found(self, schedule: Schedule | str) -> tuple[Forests, Forest]:
        given = Forests(self.space.assignment, self.space.default.formats, ANY_FOREST)
        ordered = OrderedForests(given, MOST_LEVELS if self.space.program(schedule).conversions else 0)
        for space in (*ordered.spaces, *given.over_fibres):
            forest = space.find(schedule)
            if forest is not None:
                return space, forest
        raise ExpressionError(f"{str(schedule)!r} makes no loop nest forest: loops around products, each intermediate read once")

    def annotated(self, schedule: Schedule | str) -> str:
        """Return a schedule's loop nest and its costs."""
        found = self.costs(schedule)
        return f"{loop_nest(self.space.program(schedule).statement)}\ntime {found.time}; memory {found.memory}"

    def why(self, schedule: Schedule | str) -> str:
        """Say which costs of the frontier are never above a schedule's, in time and in memory, for any admitted sizes; or that none is."""
        space, forest = self._found(schedule)
        own, domain = forest_costs(space, forest), self.dominance.domain.knowing(space.contraction)
        dominance = self.dominance if domain == self.dominance.domain else Dominance(domain)
        better = [one for one in self.classes if _is_less(one.costs, own, dominance)]
        if not better:
            return "no schedule of the frontier is cheaper for all admitted sizes"
        shown = (f"time {one.costs.time}, memory {one.costs.memory} ({one.count} schedules)" for one in better)
        return "\n".join((f"it takes time {own.time}, memory {own.memory}; these never take more:", *shown))


def _is_less(one: Costs, own: Costs, dominance: Dominance) -> bool:
    same = (one.time, one.memory) == (own.time, own.memory)
    return not same and all(dominance.never_above(*pair) for pair in ((one.time, own.time), (one.memory, own.memory)))
