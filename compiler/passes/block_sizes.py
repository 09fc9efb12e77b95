"""Chooses the number of threads of a kernel's blocks, and of registers of a thread."""

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
"""The default number of threads of a block."""
ALONE_BYTES = 64 * 1024
"""A block with at least this many bytes of shared memory has a multiprocessor almost to itself, and gets the most threads."""

MOST_REGISTERS = 255
"""The most registers that a thread can have."""


def lanes_of(loop: For) -> int:
    """Return how many lanes the warps of a kernel have.

    Raises:
        ScheduleError: two loops ask for different numbers.
    """
    tags = (node.tag for node in nodes_of(loop, For) if isinstance(node.tag, Dealt))
    asked = {tag.lanes for tag in tags if tag.unit == "warp"}
    if len(asked) > 1:
        raise ScheduleError(f"on a GPU all warps of a kernel have as many lanes, not {' and '.join(map(str, sorted(asked)))}")
    return asked.pop() if asked else WARP


def threads_of(loop: For) -> int:
    """Return how many threads a block has: the iterations of its loops, if these are the same for all blocks, else the default."""
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
    """Return the most registers of a thread; 0: the compiler decides.

    The compiler uses few registers, so that many threads run at once. If several iterations load at once, so that their loads overlap, it
    would put the loads one after another to save registers; in that case it may use all of them.
    """
    tags = [node.tag for node in nodes_of(loop, For)]
    asked = [tag.registers for tag in tags if isinstance(tag, Dealt) and tag.registers]
    ahead = any(isinstance(tag, Unroll) or (isinstance(tag, Dealt) and tag.at_once > 1) for tag in tags)
    return min(asked, default=MOST_REGISTERS if ahead else 0)


def _extent(loop: For, values: Mapping[str, Value]) -> int | None:
    """Return the most iterations of a loop if that is a constant, else None; ``values`` has the declared values of scalars."""
    low = loop.low
    match loop.high:
        case Binary("/", Binary("+", Binary("-", last, first), Const(rest)), Const(size)) if low == ZERO:  # of tiles in a tile
            most = _beyond(last, first, values)
            return None if most is None else max((most + int(rest)) // int(size), 1)
    most = _beyond(loop.high, low, values)
    return None if most is None else max(most, 1)


def _beyond(value: Value, low: Value, values: Mapping[str, Value]) -> int | None:
    """Return the largest difference of a value to another one if that is a constant, else None."""
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
