"""The presets "spttn" and "sparseauto" of ``explore``: their spaces, and the stages that prune them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from ...compiler.errors import TuningError
from ...compiler.format import Format
from ...compiler.notation.nodes import Assignment
from ...compiler.space.forests.costs import Costs, costs_of
from ...compiler.space.forests.forest import Forest
from ...compiler.space.forests.optimum import Optimizer, Optimum
from ...compiler.space.forests.orders import OrderedForests, PricedOrders
from ...compiler.space.forests.paths import PathRules, path_count
from ...compiler.space.forests.peeling import ForestRules, path_depth
from ...compiler.space.forests.separable import cost_of
from ...compiler.space.forests.space import Forests
from ..stage_clock import Clock
from .domain import Range, domain_of
from .dominance import Dominance
from .exploration import ForestClass, ForestExploration, FrontierForests

MOST_OPERANDS = 7
"""Most operands of a product: larger ones have millions of contraction trees, and are refused before any is made."""


def spttn(
    assignment: Assignment, formats: Mapping[str, Format], clock: Clock, cost: object, memory_depth: int, ranges: Mapping[str, Range] | None
) -> ForestExploration:
    """Explore fully fused forests in storage order: of those of least depth, the cheapest (Kanakagiri and Solomonik, section 5).

    If the time is over before all contraction paths were looked at, the best so far are returned; the stage says how many paths were.

    Args:
        assignment, formats: the expression.
        clock: of the exploration.
        cost: "dense_loops" (None), "buffer_dimension", "buffer_size", "cache", a ``SeparableCost``, or a pair (phi, operator).
        memory_depth: how many modes buffers have at most, for "dense_loops".
        ranges: of extents; costs take the geometric mean.
    """
    space = Forests(assignment, formats, watch=clock.watch)
    _check_size(space)
    domain = domain_of(space.contraction, ranges)
    chosen = cost_of(cost or "dense_loops", {name: (low * high) ** 0.5 for name, (low, high) in domain.extents.items()}, memory_depth)
    clock.note("generated", space.count())
    depths = {path: path_depth(space.contraction, path) for path in space.peeling.paths()}
    least = min(depths.values())
    clock.note("min_depth", Forests(assignment, formats, ForestRules(loop_depth=least), watch=clock.watch).count())
    optimizer = Optimizer(space.peeling, chosen)
    shallow = [path for path, depth in depths.items() if depth == least]
    found: list[Optimum] = []
    with _suppressed_after(found):
        for path in shallow:
            clock.watch()
            found.append(optimizer.optimum(path))
    best = min(one.cost for one in found)
    forests = [one.forest for one in found if one.forest is not None and one.cost == best]
    clock.note(chosen.name, len(forests), paths=len(found), of=len(shallow))
    classes: dict[Costs, list[Forest]] = {}
    for forest in forests:
        classes.setdefault(costs_of(forest, formats), []).append(forest)
    kinds = [ForestClass(one, len(same), same.__iter__) for one, same in classes.items()]
    return _exploration(assignment, "spttn", OrderedForests(space, 0), clock, Dominance(domain), kinds)


SPARSEAUTO = ForestRules(PathRules(pairwise=False, reducing=True), fused=False, derived=False)
"""The space of Dias et al. (sections 4.5 and 5.1): products split at any place, producers that reduce, fusion or none at every level.
Intermediates are dense, so that only terms that read a sparse operand keep its storage order."""


def sparseauto(
    assignment: Assignment,
    formats: Mapping[str, Format],
    clock: Clock,
    ranges: Mapping[str, Range] | None,
    memory_depth: int,
    memory_bound: float | None,
) -> ForestExploration:
    """The compile-time stages of Dias et al., section 5.2: memory depth, depth poset, costs over all admitted sizes.

    Sparse operands may first be copied into other orders of their levels, which takes time and memory for every entry (section 6.5); a copy
    with more modes than buffers may have is not generated. Depths tell what is better only where sizes grow without bounds, so where ranges
    are given, the depth poset drops only what costs drop too.
    """
    given = Forests(assignment, formats, SPARSEAUTO, watch=clock.watch)
    _check_size(given)
    space = OrderedForests(given, memory_depth)
    domain = domain_of(space.contraction, ranges, [one.contraction for one in space.spaces])
    clock.note("generated", space.count())
    shallow = space.under(replace(SPARSEAUTO, memory_depth=memory_depth))
    priced = PricedOrders(shallow)
    every = priced.costs()
    clock.note("memory_depth", shallow.count(), buckets=len(every))
    if memory_bound is not None:
        smallest = domain.sizes({name: low for name, (low, _) in (*domain.extents.items(), *domain.shares.items())})
        every = tuple(one for one in every if one.memory.at(smallest) <= memory_bound)
        clock.note("memory_bound", sum(map(priced.count, every)), buckets=len(every))
    dominance = Dominance(domain, watch=clock.watch)
    cheap = dominance.undominated(every) if ranges else None
    kept = [one for one in every if not any(_is_shallower(other, one) for other in every) or (cheap is not None and one in cheap)]
    clock.note("depth_poset", sum(map(priced.count, kept)), buckets=len(kept))
    left = dominance.undominated(kept) if cheap is None else cheap
    clock.note("smt", sum(map(priced.count, left)), buckets=len(left))

    def listed(costs: Costs) -> Callable[[], Any]:
        return lambda: priced.forests(costs)

    kinds = [ForestClass(one, priced.count(one), listed(one)) for one in left]
    return _exploration(assignment, "sparseauto", space, clock, dominance, kinds)


def _is_shallower(one: Costs, other: Costs) -> bool:
    first, second = (one.loop_depth, one.memory_depth), (other.loop_depth, other.memory_depth)
    return first != second and first[0] <= second[0] and first[1] <= second[1]


def _exploration(
    assignment: Assignment, preset: str, space: OrderedForests, clock: Clock, dominance: Dominance, classes: list[ForestClass]
) -> ForestExploration:
    frontier = FrontierForests(classes, space)
    return ForestExploration(assignment.text, preset, clock.stages, frontier, tuple(classes), space, dominance)


@contextmanager
def _suppressed_after(found: Sequence[object]) -> Iterator[None]:
    """Leave the block without an error when the time is over, if something was found by then."""
    try:
        yield
    except TuningError:
        if not found:
            raise


def _check_size(space: Forests) -> None:
    count = len(space.contraction.operands)
    if count > MOST_OPERANDS:
        raise TuningError(
            f"a product of {count} tensors has {path_count(count):,} contraction paths; presets of forests take products of up to"
            f" {MOST_OPERANDS}"
        )
