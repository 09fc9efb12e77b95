"""How many threads the blocks of a kernel have, and how many registers each of these."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import ScheduleError
from ..ir.arithmetic import ZERO
from ..ir.nodes import (
    Allocate,
    Binary,
    Const,
    Dealt,
    Declare,
    For,
    Unroll,
    Value,
    Var,
)
from ..ir.rewrite import nodes_of

WARP = 32

WARPS, THREADS, MOST_THREADS = 8, 256, 1024
"""Threads of a block, if the loops do not say how many."""
ALONE_BYTES = 64 * 1024
"""A block that shares so many bytes has a multiprocessor next to alone, and so all the threads that there may be."""

MOST_REGISTERS = 255
"""That a thread can have."""


def lanes_of(loop: For) -> int:
    """Return how many lanes the warps of a kernel have.

    Raises:
        ScheduleError: a loop asks for others than another.
    """
    tags = (node.tag for node in nodes_of(loop, For) if isinstance(node.tag, Dealt))
    asked = {tag.lanes for tag in tags if tag.unit == "warp"}
    if len(asked) > 1:
        raise ScheduleError(f"on a GPU all warps of a kernel have as many lanes, not {' and '.join(map(str, sorted(asked)))}")
    return asked.pop() if asked else WARP


def threads_of(loop: For) -> int:
    """Return how many threads a block has: as its loops say, where these are as long for all blocks."""
    assert isinstance(loop.tag, Dealt)
    if loop.tag.unit != "block":
        return THREADS
    values = {node.variable.name: node.value for node in nodes_of(loop.body, Declare)}
    inner = [node for node in nodes_of(loop.body, For) if isinstance(node.tag, Dealt) and node.tag.within == "block"]
    warps = [_extent(node, values) for node in inner if isinstance(node.tag, Dealt) and node.tag.unit == "warp"]
    threads = [_extent(node, values) for node in inner if isinstance(node.tag, Dealt) and node.tag.unit == "thread"]
    lanes = lanes_of(loop)
    known = [lanes * extent for extent in warps if extent] + [extent for extent in threads if extent]
    usual = MOST_THREADS if sum(map(_bytes_of_block, nodes_of(loop.body, Allocate))) >= ALONE_BYTES else THREADS
    most = min(max(known, default=usual if warps or threads else WARP), MOST_THREADS)
    return -(-most // WARP) * WARP


def _bytes_of_block(made: Allocate) -> int:
    return int(made.length.value) * made.type.bytes if made.storage == "block" and isinstance(made.length, Const) else 0


def registers_of(loop: For) -> int:
    """Return how many registers a thread has at most; 0: as many as the compiler gives it.

    The compiler takes few, so that many threads are there at once. Where several iterations load at once, so that loads do not wait for one
    another, it would put them off, one behind the other, to save registers: there it may take all.
    """
    tags = [node.tag for node in nodes_of(loop, For)]
    asked = [tag.registers for tag in tags if isinstance(tag, Dealt) and tag.registers]
    ahead = any(isinstance(tag, Unroll) or (isinstance(tag, Dealt) and tag.at_once > 1) for tag in tags)
    return min(asked, default=MOST_REGISTERS if ahead else 0)


def _extent(loop: For, values: Mapping[str, Value]) -> int | None:
    """Return how many iterations a loop has at most, where that is a constant; ``values``: what scalars were declared with."""
    low = loop.low
    match loop.high:
        case Binary("/", Binary("+", Binary("-", last, first), Const(rest)), Const(size)) if low == ZERO:  # of tiles in a tile
            most = _beyond(last, first, values)
            return None if most is None else max((most + int(rest)) // int(size), 1)
    most = _beyond(loop.high, low, values)
    return None if most is None else max(most, 1)


def _beyond(value: Value, low: Value, values: Mapping[str, Value]) -> int | None:
    """Return how far a value lies beyond another one at most, where that is a constant."""
    if value == low:
        return 0
    match value, low:
        case Const(last), Const(first):
            return int(last) - int(first)
        case Binary("+", left, Const(more)), _:
            most = _beyond(left, low, values)
            return None if most is None else most + int(more)
        case Binary("min", left, right), _:
            return min((most for side in (left, right) if (most := _beyond(side, low, values)) is not None), default=None)
        case Var(name), _ if name in values:
            return _beyond(values[name], low, values)
    return None
