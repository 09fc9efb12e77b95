"""Extents at which sums take vectors of half the width.

A sum over some elements ends with the lanes of its vectors being added: two instructions for each time that they are halved. With few
vectors that costs more than wide ones save. 16 products of float64 are two multiplications of 64 bytes and six instructions for eight
lanes, or four of 32 bytes and four for four lanes; and vectors of 64 bytes are what processors take two turns for, or lower their clock.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..ir.nodes import Const, For, Load, SetVar, Steps, Store
from ..ir.rewrite import nodes_of

WIDE = 64
"""Bytes of the vectors that are halved."""

FEW = 3
"""Vectors of the full width up to which sums take twice as many of half the width."""


def narrow_extents(loops: Iterable[For], lanes: int) -> frozenset[int]:
    """Return the extents at which all that loops do but sums is to copy, as into registers that sums read again and again.

    Args:
        loops: the vector loops of a kernel.
        lanes: of vectors of the full width.
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
