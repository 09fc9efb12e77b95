"""Private copies of a result, or of a workspace, that threads would race on, and their reduction in the order of the threads.

Race strategies ``temporary`` and ``parallel_reduction`` (Senanayake et al., section 5.5: worker and reduction loops that communicate
through a workspace). The reduction runs over threads in order for every component, so with static chunks the result does not
depend on timing.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..ir.nodes import I64, Allocate, Call, Declare, Fill, For, Free, Load, Parallel, Step, Steps, Store, Value, Var
from .arithmetic import ONE, ZERO, add, integer, multiply, quotient
from .context import Context
from .levels import Stored

LINE = 64  # bytes; copies of different threads share no cache line
PRIVATE = ("temporary", "parallel_reduction")


@dataclass(frozen=True)
class PrivateCopies:
    """The copies of one tensor: ``array`` holds one after another, ``stride`` elements apart."""

    stored: Stored
    array: str
    thread: Var
    stride: Var
    length: Value

    def position(self, position: Value) -> Value:
        return add(multiply(self.thread, self.stride), position)


def private_copies(context: Context, stored: Stored) -> PrivateCopies:
    """Return the copies of a dense tensor in the parallel loop that is being lowered, made at first use."""
    found = context.copies.get(stored.name)
    if found is None:
        names, name = context.names, stored.name
        length: Value = ONE
        for level in stored.levels:
            length = multiply(length, level.extent)
        thread, stride = Var(names.permanent("thread"), I64), Var(names.permanent(f"{name}_stride"), I64)
        found = PrivateCopies(stored, names.permanent(f"{name}_copies"), thread, stride, length)
        context.copies[name] = found
        context.hoisted[-1].before.append(Declare(thread, Call("thread_number", (), I64)))
    return found


def with_copies(context: Context, loop: list[Step]) -> list[Step]:
    """Put the making and the reduction of all copies around a parallel loop."""
    for name in tuple(context.copies):
        loop = _around(context, context.copies.pop(name), loop)
    return loop


def _around(context: Context, copies: PrivateCopies, loop: list[Step]) -> list[Step]:
    stored = copies.stored
    threads = context.size_parameter(("threads", "count"), "threads")
    line = integer(max(1, LINE // stored.type.bytes))
    padded = multiply(quotient(add(copies.length, add(line, line)), line), line)
    whole = multiply(threads, copies.stride)
    place, thread = Var(context.names.permanent("place"), I64), Var(context.names.permanent("copy"), I64)
    term = Load(copies.array, add(multiply(thread, copies.stride), place), stored.type)
    gather = Store(stored.values, place, term, context.semiring.add_on(stored.type))
    return [
        Declare(copies.stride, padded),
        Allocate(copies.array, stored.type, whole),
        Fill(copies.array, ZERO, whole, context.semiring.zero(stored.type)),
        *loop,
        For(place, ZERO, copies.length, Steps((For(thread, ZERO, threads, Steps((gather,))),)), Parallel("static")),
        Free(copies.array),
    ]
