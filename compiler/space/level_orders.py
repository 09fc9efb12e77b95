"""In which orders the loops of a partition may stand, by the levels of its tensors (Senanayake et al., section 6.1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from ..notation.nodes import Access, accesses
from .orders import Allowed, Orders
from .situation import Situation, result_leaf
from .template_space import Partition


class _Levels:
    """The levels of some accesses, and which loops complete them while loops are placed from the outside inwards."""

    def __init__(self, partition: Partition, accesses: Sequence[Access], *, constant_loops: bool = True) -> None:
        self.partition, self.graph = partition, partition.graph
        self.chains = [[self._leaves(names) for _, names in partition.levels(access)] for access in accesses]
        self.needed = [[self._varying(leaves) if not constant_loops else leaves for leaves in levels] for levels in self.chains]
        self.stored = [[kind.stores_coordinates for kind, _ in partition.levels(access)] for access in accesses]

    def _leaves(self, names: Sequence[str]) -> frozenset[str]:
        return frozenset(leaf for name in names for leaf in self.graph.leaves(name))

    def _varying(self, leaves: frozenset[str]) -> frozenset[str]:
        return frozenset(leaf for leaf in leaves if not self.partition.is_constant(leaf))

    def complete_in_order(self, placed: frozenset[str], loop: str, *, stored_only: bool) -> bool:
        """Return whether placing a loop completes no level before those above it. Without ``constant_loops``, loops of constant
        length may be missing above."""
        now = placed | {loop}
        for levels, needed, stored in zip(self.chains, self.needed, self.stored, strict=True):
            for below, leaves in enumerate(levels):
                completes = leaves <= now and not leaves <= placed
                if completes and (stored[below] or not stored_only) and not all(above <= now for above in needed[:below]):
                    return False
        return True

    def range_known(self, placed: frozenset[str], loop: str) -> bool:
        """Return whether the levels above those of a position loop are complete."""
        family = [name for name in self.graph.ancestors(loop) if self.graph.space(name) == "position"]
        if not family or self.partition.is_constant(loop):
            return True
        names = [names for _, names in self.partition.levels(self.graph.position_access(family[-1]))]
        first = next(level for level, found in enumerate(names) if self.graph.originals(loop)[0] in found)
        return all(self._leaves(found) <= placed for found in names[:first])


def storage_order(partition: Partition) -> Allowed:
    """Return which loop may come next, so that every stored level is gone through below those above it."""
    rule = _Levels(partition, partition.situation.stored(partition.situation.program))
    return lambda placed, loop: rule.complete_in_order(placed, loop, stored_only=True) and rule.range_known(placed, loop)


def dense_in_order(*, within_tiles: bool) -> Callable[[Partition], Allowed]:
    """Dense tensors are run through as they lie in memory, as far as the storage orders allow, earlier ones first.

    With ``within_tiles`` loops of constant length count; without, they may stand anywhere, which keeps more orders.
    """

    def allowed(partition: Partition) -> Allowed:
        legal = storage_order(partition)
        kept: list[Access] = []
        for access in _dense_accesses(partition.situation):
            levels = _Levels(partition, [*kept, access])
            if Orders(partition.loops, [legal, partial(levels.complete_in_order, stored_only=False)]).count():
                kept.append(access)
        return partial(_Levels(partition, kept, constant_loops=within_tiles).complete_in_order, stored_only=False)

    return allowed


def _dense_accesses(situation: Situation) -> list[Access]:
    """Return the accesses of dense tensors of two modes and more, the result last."""
    leaf = result_leaf(situation.program)[1]
    found = dict.fromkeys((*accesses(leaf.value), leaf.target))
    dense = [access for access in found if access.tensor in situation.formats and situation.formats[access.tensor].is_dense]
    return [access for access in dense if len(access.subscripts) > 1]
