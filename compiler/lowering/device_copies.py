"""Private copies on a GPU of what members of it would race on: one for each share of a loop's iterations, added in order afterwards.

Race strategies ``temporary`` and ``parallel_reduction`` (Senanayake et al., section 5.5: worker and reduction loops that communicate
through a workspace), as ``privatize`` has them for threads of a processor. The iterations of the loop are cut into shares, as many as there
are copies. A copy has the components that the loop may write: all with the coordinates that are known outside of it. Behind the loop each
of these is added up over the copies, in their order, by one thread, and then to the tensor as any addition outside of the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeAlias

from ..concrete.nodes import Assign
from ..frozen import frozen
from ..ir.arithmetic import ONE, ZERO, add, ceiling_quotient, integer, maximum, minimum, multiply, quotient, remainder, subtract
from ..ir.nodes import I64, Allocate, Dealt, Declare, Fill, For, Free, Load, SetVar, Step, Steps, Value, Var
from ..levels.level import Level
from ..notation.nodes import Access
from ..workspaces.held import row_major
from ..workspaces.levels import Storage
from .context import Context
from .recovery import UnknownIndexError, known
from .requests import allocated_once
from .scope import ParallelLoop, Scope

SHARES = {"block": 256, "warp": 1024, "thread": 8192}
"""The most shares of a loop over the whole GPU, by what takes them."""
WITHIN = {("thread", "block"): 256, ("thread", "warp"): 32, ("warp", "block"): 8}
"""The shares of a loop in a block or warp: as many as it usually has members."""
ROOM = 1 << 24
"""The most components of all copies of a loop over the whole GPU, but for one copy."""

Coordinate: TypeAlias = "Callable[[str], Value]"
Adding: TypeAlias = "Callable[[Context, Scope, Assign, Storage, Coordinate, Value], list[Step]]"
"""Adds a value to a component of a tensor at a place of the nest: (context, scope, the assignment, the tensor, its coordinates, value)."""


@frozen
class DeviceCopies(Step):
    """A store adds to copies of a tensor, which the loop of that index makes and adds up.

    Attributes:
        index: that of the loop.
        array: the copies, one after another.
        share: the number of the own one.
        stored: the tensor.
        open: its levels whose coordinates the loop chooses; the copies have these.
        write: the assignment to it, without the indices that are not known outside of the loop.
        adding: adds what is summed over the copies.
    """

    index: str
    array: str
    share: Var
    stored: Storage
    open: tuple[Level, ...]
    write: Assign
    adding: Adding

    @property
    def length(self) -> Value:
        """How many components a copy has."""
        length: Value = ONE
        for level in self.open:
            length = multiply(length, level.extent)
        return length

    def position(self, coordinate: Coordinate) -> Value:
        """Return where a component is in the own copy."""
        return add(multiply(self.share, self.length), row_major(self.open, coordinate))


def device_copies(context: Context, loop: ParallelLoop, stored: Storage, write: Assign, adding: Adding) -> DeviceCopies:
    """Return the copies of a tensor with dense levels for a loop of which iterations would write the same components."""
    names = loop.copies[stored.name, False]
    value = known(context, loop.outside)

    def is_open(level: Level) -> bool:
        try:
            value(level.index)
        except UnknownIndexError:
            return True
        return False

    chosen = tuple(level for level in stored.levels if is_open(level))
    away = {level.index for level in chosen}
    kept = tuple(subscript for subscript in write.target.subscripts if subscript.index not in away)
    told = replace(write, target=Access(write.target.tensor, kept))
    return DeviceCopies(loop.index, names.array, Var(names.share, I64), stored, chosen, told, adding)


def with_device_copies(context: Context, scope: Scope, asked: Iterable[DeviceCopies], loop: For) -> list[Step]:
    """Return a distributed loop with its copies, and what adds them up.

    Args:
        scope: the place of the loop.
        asked: the copies that stores in it add to.
    """
    needed = list({copies.array: copies for copies in asked}.values())
    if not needed:
        return [loop]
    assert isinstance(loop.tag, Dealt)
    names, made, added = context.names, list[Step](), list[Step]()
    low, high, count, share = (Var(names.permanent(wish), I64) for wish in ("low", "high", "shares", "share"))
    most = minimum(maximum(subtract(high, low), ONE), _most(loop.tag, needed))
    bounds = [Declare(low, loop.low), Declare(high, loop.high), Declare(count, most)]
    for copies in needed:
        made += _cleared(context, loop.tag, copies, count)
        added.append(_added_up(context, scope, loop.tag, copies, count))
    size = ceiling_quotient(maximum(subtract(high, low), ZERO), count)
    first = add(low, multiply(share, size))
    own = replace(loop, low=first, high=minimum(add(first, size), high), tag=None, private=(), finish=())
    numbers = (Declare(copies.share, share) for copies in needed)
    shares = replace(loop, variable=share, low=ZERO, high=count, body=Steps((*numbers, own)))
    free = [Free(copies.array) for copies in needed] if loop.tag.within == "grid" else []
    return [Steps((*bounds, *made, shares, *added, *free))]


def _most(tag: Dealt, needed: list[DeviceCopies]) -> Value:
    if tag.within != "grid":
        return integer(WITHIN[tag.unit, tag.within])
    components: Value = ONE
    for copies in needed:
        components = maximum(components, copies.length)
    return minimum(integer(SHARES[tag.unit]), maximum(quotient(integer(ROOM), components), ONE))


def _cleared(context: Context, tag: Dealt, copies: DeviceCopies, shares: Value) -> list[Step]:
    """Return the steps that make copies and clear them. Those of a block or warp are made once for all that it does."""
    zero = context.semiring.zero(copies.stored.type)
    clear = Fill(copies.array, ZERO, multiply(shares, copies.length), zero)
    if tag.within == "grid":
        return [Allocate(copies.array, copies.stored.type, multiply(shares, copies.length)), clear]
    room = multiply(integer(WITHIN[tag.unit, tag.within]), copies.length)
    return [allocated_once(copies.array, copies.stored.type, room, zero=False), clear]


def _added_up(context: Context, scope: Scope, tag: Dealt, copies: DeviceCopies, shares: Value) -> For:
    """Return the loop over components that adds up their copies."""
    names, stored = context.names, copies.stored
    number, copy, whole = (Var(names.permanent(wish), kind) for wish, kind in (("part", I64), ("copy", I64), ("whole", stored.type)))
    term = Load(copies.array, add(multiply(copy, copies.length), number), stored.type)
    total = For(copy, ZERO, shares, Steps((SetVar(whole, term, context.semiring.add_on(stored.type)),)))
    coordinates = dict[str, Value]()
    for place, level in enumerate(copies.open):
        inner = replace(copies, open=copies.open[place + 1 :]).length
        coordinates[level.index] = remainder(quotient(number, inner), level.extent) if place else quotient(number, inner)
    value = known(context, scope)
    steps = copies.adding(context, scope, copies.write, stored, lambda index: coordinates.get(index) or value(index), whole)
    body = Steps((Declare(whole, context.semiring.zero(stored.type)), total, *steps))
    return For(number, ZERO, copies.length, body, Dealt("thread", tag.within, tag.lanes))
