"""Finds the extents for which sums use vectors of half the width.

At its end a sum adds the lanes of its vectors, with two instructions for each halving. With few vectors that costs more than wide vectors
save. For example, 16 products of float64 take two multiplications of 64 bytes and six instructions to add eight lanes, or four
multiplications of 32 bytes and four instructions to add four lanes. Many processors also split vectors of 64 bytes in two, or lower their
clock for them.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..ir.nodes import Const, For, Load, SetVar, Steps, Store
from ..ir.rewrite import nodes_of

WIDE = 64
"""The width in bytes of vectors that are halved."""

FEW = 3
"""Sums of at most this many vectors of full width use twice as many of half the width."""


def narrow_extents(loops: Iterable[For], lanes: int) -> frozenset[int]:
    """Return the extents for which all loops are sums or only copy, as into registers that sums read repeatedly.

    Args:
        loops: the vector loops of a kernel.
        lanes: the lanes of vectors of full width.
    """
    sums, others = set[int](), set[int]()
    for loop in loops:
        if isinstance(loop.low, Const) and isinstance(loop.high, Const):
            extent = int(loop.high.value) - int(loop.low.value)
            if any(node.variable.name not in loop.body.declared for node in nodes_of(loop.body, SetVar)):
                sums.add(extent)
            elif not _copies(loop):
                others.add(extent)
    return frozenset(extent for extent in sums - others if extent <= FEW * lanes)


def _copies(loop: For) -> bool:
    body = loop.body.statements[0] if isinstance(loop.body, Steps) and len(loop.body.statements) == 1 else loop.body
    return isinstance(body, Store) and not body.op and isinstance(body.value, Load)
