"""What one pass over an operand costs, in products, and how its outermost and innermost loops run then."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ..native.machine import this_machine
from ..notation.nodes import Access
from .loop_tag import PLAIN, LoopTag
from .one_pass import OnePass

COPYING = 3
"""Cost, in products, of one element of a thread's own copy of a result: it is set to zero, read and added."""

ROWS_AHEAD = 8
"""How many entries ahead rows of factors are prefetched, if the factors do not fit into a core's own cache."""


def pass_time(one: OnePass, nodes: Sequence[int], extents: Mapping[str, int], shares: int) -> float:
    """Return the time of a pass, in products: with one thread, or with several and the copies that they need, whichever is less."""
    work = one.work(nodes, extents)
    return min(work, work / shares + _copied(one, extents, shares))


def _copied(one: OnePass, extents: Mapping[str, int], shares: int) -> float:
    elements = sum(math.prod(extents[name] for name in result.indices) for result in one.racing())
    return COPYING * shares * elements


def dealt(one: OnePass, nodes: Sequence[int], extents: Mapping[str, int], shares: int) -> LoopTag:
    """Return the tag of the outermost loop: threads run it, unless making copies for them takes longer."""
    work = one.work(nodes, extents)
    if shares == 1 or work / shares + _copied(one, extents, shares) >= work:
        return PLAIN
    race, chunk = "temporary" if one.racing() else "no_races", min(64, max(1, nodes[1] // (16 * shares)))
    return LoopTag(unit="cpu_thread", race=race, chunking="dynamic", chunk=1 << chunk.bit_length() - 1)


def far_rows(one: OnePass, levels: tuple[str, ...], extents: Mapping[str, int], size: int) -> tuple[tuple[Access, int], ...]:
    """Return what the innermost loop over entries prefetches: the rows at its coordinates, if they do not fit into the core's cache."""
    known = [access for product in one.products for access in (product.target, *product.factors)]
    every = dict.fromkeys(access for access in known if levels[-1] in access.indices)
    near = max((cache.bytes for cache in this_machine().caches if cache.level <= 2), default=0)
    if size * sum(math.prod(extents[name] for name in access.indices) for access in every) <= near:
        return ()
    return tuple((Access(access.tensor), ROWS_AHEAD) for access in every)
