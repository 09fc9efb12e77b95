"""Forests whose sparse operand is stored in another order of its levels first, where that pays (Dias et al., sections 6.3 and 6.5).

Their loops come in an order that the operand as it is stored forbids. More is then summed over entries with common coordinates before it
is multiplied further. The conversion takes operations for every stored entry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import permutations

from ...frozen import frozen
from ..conversions import turning
from ..joins import Joins
from ..relations import Scan, join
from .bound import LeastWork
from .choice import cheapest, paths_of
from .contraction import Contraction
from .forest import Forest
from .work import Sizes

MOST_LEVELS = 4
"""Most modes of an operand of which all orders of levels are examined."""

MOST_ORDERS = 4
"""For how many orders of levels, those with the least lower bounds, the best forest is searched."""


@frozen
class Transposed:
    """A forest, and the order of levels that its operand is converted to.

    Attributes:
        cost: its work, with the conversion.
        forest: of the contraction with the operand's levels in that order.
        modes: the operand's indices, outermost level first.
    """

    cost: float
    forest: Forest
    modes: tuple[str, ...]


def transposed(contraction: Contraction, sizes: Sizes, joins: Joins, limit: float, watch: Callable[[], None]) -> Iterator[Transposed]:
    """Yield the forest of least work for each other order of the one sparse operand, if it takes less than a limit.

    Args:
        contraction: with the operand as it is stored.
        sizes: of its operands.
        joins: tell how many prefixes of coordinates the operand has in another order.
        limit: of work, with the conversion.
        watch: called before each path is examined; it may raise ``TimeOver``, which ends the search.
    """
    if len(contraction.chains) != 1 or contraction.fibres is not None:
        return
    ((operand, chain),) = contraction.chains
    converting = turning(len(chain)) * sizes.fibres[operand][-1]
    if len(chain) > MOST_LEVELS or converting >= limit:
        return
    hopeful: list[tuple[float, tuple[int, ...], Contraction, Sizes]] = []
    for order in permutations(chain):
        other = replace(contraction, chains=((operand, order),))
        counts = _prefixes(contraction, operand, order, joins) if order != chain else None
        if counts is None:
            continue
        known = Sizes(sizes.extents, {operand: counts})
        bound = LeastWork(other, known)
        least = converting + min(map(bound.of_path, paths_of(other, bound)))
        if least < limit:
            hopeful.append((least, order, other, known))
    for _, order, other, known in sorted(hopeful, key=lambda item: item[:2])[:MOST_ORDERS]:
        for cost, forest in cheapest(other, known, 1, watch, limit - converting):
            yield Transposed(cost + converting, forest, contraction.names_in_order(order))


def _prefixes(contraction: Contraction, operand: int, order: tuple[int, ...], joins: Joins) -> tuple[float, ...] | None:
    """Return how many combinations of coordinates outermost levels have in some order; None where that takes too long to find out."""
    scan = Scan(contraction.operands[operand].tensor, contraction.names_in_order(contraction.levels(operand)))
    kept = (frozenset(contraction.names_in_order(order[:depth])) for depth in range(1, len(order) + 1))
    found = [joins.size(join({scan}, names)) for names in kept]
    counts = [count for count in found if count is not None]
    return tuple(counts) if len(counts) == len(found) else None
