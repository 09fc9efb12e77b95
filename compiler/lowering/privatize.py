"""Copies of a result, or of a workspace, that threads would race on, one for each share of the work, and their reduction in order.

Race strategies ``temporary`` and ``parallel_reduction`` (Senanayake et al., section 5.5: worker and reduction loops that communicate
through a workspace). The reduction runs over shares in order for every component, and chunks belong to shares by their number, so that
the result does not depend on timing.
"""

from __future__ import annotations

from dataclasses import replace

from ..frozen import frozen
from ..ir.arithmetic import ONE, ZERO, add, integer, multiply, quotient
from ..ir.nodes import I64, SHARE_NUMBER, Allocate, Call, Declare, Fill, For, Free, Load, Parallel, Step, Steps, Store, Value, Var
from ..workspaces.levels import Storage
from .context import Context

LINE = 64  # bytes; copies of different shares lie in different cache lines
PRIVATE = ("temporary", "parallel_reduction")


@frozen
class PrivateCopies:
    """The copies of one tensor: ``array`` holds one after another, ``stride`` elements apart."""

    stored: Storage
    array: str
    share: Var
    stride: Var
    length: Value

    def position(self, position: Value) -> Value:
        return add(multiply(self.share, self.stride), position)


def private_copies(context: Context, stored: Storage) -> PrivateCopies:
    """Return the copies of a dense tensor in the parallel loop that is being lowered, made at first use."""
    found = context.copies.get(stored.name)
    if found is None:
        names, name = context.names, stored.name
        length: Value = ONE
        for level in stored.levels:
            length = multiply(length, level.extent)
        share, stride = Var(names.permanent("share"), I64), Var(names.permanent(f"{name}_stride"), I64)
        found = context.copies[name] = PrivateCopies(stored, names.permanent(f"{name}_copies"), share, stride, length)
    return found


def with_copies(context: Context, loop: list[Step]) -> list[Step]:
    """Put the making and the reduction of all copies around a parallel loop, which is the last step, and their numbers into it."""
    *before, parallel = loop
    if context.copies and isinstance(parallel, For):
        numbers = [Declare(copies.share, Call(SHARE_NUMBER, (), I64)) for copies in context.copies.values()]
        loop = [*before, replace(parallel, body=Steps((*numbers, parallel.body)))]
    for name in tuple(context.copies):
        loop = _around(context, context.copies.pop(name), loop)
    return loop


def _around(context: Context, copies: PrivateCopies, loop: list[Step]) -> list[Step]:
    stored = copies.stored
    shares = context.size_parameter(("threads", "count"), "threads")
    line = integer(max(1, LINE // stored.type.bytes))
    padded = multiply(quotient(add(copies.length, add(line, line)), line), line)
    whole = multiply(shares, copies.stride)
    place, share = Var(context.names.permanent("place"), I64), Var(context.names.permanent("copy"), I64)
    term = Load(copies.array, add(multiply(share, copies.stride), place), stored.type)
    gather = Store(stored.values, place, term, context.semiring.add_on(stored.type))
    return [
        Declare(copies.stride, padded),
        Allocate(copies.array, stored.type, whole),
        Fill(copies.array, ZERO, whole, context.semiring.zero(stored.type)),
        *loop,
        For(place, ZERO, copies.length, Steps((For(share, ZERO, shares, Steps((gather,))),)), Parallel("static")),
        Free(copies.array),
    ]
