"""Finds the extents whose last vectors may overlap.

Rows of seven values are a vector of four, one of two and one value. If it does no harm to compute a value twice, they are two vectors of
four, the second of which begins at the fourth value: fewer loads, multiplications and stores. It does harm in sums over the lanes, and
where an element in memory is changed in place. Values that are summed in registers are the same in both vectors.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ..ir.nodes import Const, For, Load, SetVar, Store
from ..ir.rewrite import nodes_of


def overlapping_extents(loops: Iterable[For], registers: Collection[str]) -> frozenset[int]:
    """Return the extents for which no loop is changed by computing iterations twice.

    Args:
        loops: the vector loops of a kernel.
        registers: the arrays that are kept in registers, where each vector has its own.
    """
    extents: dict[int, bool] = {}
    for loop in loops:
        if isinstance(loop.low, Const) and isinstance(loop.high, Const):
            extent = int(loop.high.value) - int(loop.low.value)
            extents[extent] = extents.get(extent, True) and _may_repeat(loop, registers)
    return frozenset(extent for extent, may in extents.items() if may)


def _may_repeat(loop: For, registers: Collection[str]) -> bool:
    loaded = {node.array for node in nodes_of(loop.body, Load)}
    stores = [store for store in nodes_of(loop.body, Store) if store.array not in registers]
    sums = any(node.variable.name not in loop.body.declared for node in nodes_of(loop.body, SetVar))
    return not sums and not any(store.op or store.atomic or store.array in loaded for store in stores)
