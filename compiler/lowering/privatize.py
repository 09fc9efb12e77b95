"""Private copies of a result or workspace on which threads would race, one for each share of the work, and their reduction in order.

Race strategies ``temporary`` and ``parallel_reduction`` (Senanayake et al., section 5.5: worker and reduction loops that communicate
through a workspace). The reduction adds the copies in the order of shares for every component, and the number of a chunk decides its
share, so that the result does not depend on timing. If a share adds only to its own components and to those of earlier shares
(``across_diagonal.py``), its copy covers only what it reaches.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..frozen import frozen
from ..ir.arithmetic import ONE, ZERO, add, ceiling_quotient, integer, maximum, minimum, multiply, quotient
from ..ir.names import Names
from ..ir.nodes import (
    I64,
    SHARE_BEGIN,
    SHARE_NUMBER,
    Allocate,
    Call,
    Declare,
    Fill,
    For,
    Free,
    Load,
    Parallel,
    Step,
    Steps,
    Store,
    Value,
    Var,
)
from ..levels.level import Level
from ..workspaces.levels import Storage
from .context import Context
from .parameters import THREADS
from .scope import CopyNames, Scope

LINE = 64  # bytes of a cache line; copies of different shares do not share one
PRIVATE = ("temporary", "parallel_reduction")
_PARTS = ("stride", "copies", "spans", "begin")
_BLOCK = 512  # components that a thread adds at once, from one copy after another


@frozen
class PrivateCopies:
    """The copies of one tensor: ``array`` holds one after another, ``stride`` elements apart.

    ``begin`` is None if copies are whole. Otherwise it is the first iteration of a share, whose copy holds only components before that;
    ``spans`` has, for each share, the first coordinate of the outermost level that it reached, and its ``begin``.
    """

    stored: Storage
    array: str
    share: Var
    stride: Var
    spans: str
    begin: Var | None = None

    @property
    def inner(self) -> Value:
        """How many components each coordinate of the outermost level has."""
        return _product(self.stored.levels[1:])

    @property
    def length(self) -> Value:
        """How many components the whole tensor has."""
        return _product(self.stored.levels)

    def position(self, position: Value) -> Value:
        """Return where a position of the tensor is in the array: that of the own share's copy."""
        return add(multiply(self.share, self.stride), position)

    def span(self, share: Value) -> Value:
        """Return the place of a share's span."""
        return multiply(share, integer(LINE // I64.bytes))


def _product(levels: tuple[Level, ...]) -> Value:
    length: Value = ONE
    for level in levels:
        length = multiply(length, level.extent)
    return length


@frozen
class NeedsCopies(Step):
    """A store adds to private copies, which the parallel loop around it makes and reduces."""

    copies: PrivateCopies


def copy_names(names: Names, written: Iterable[str], across: bool) -> dict[tuple[str, bool], CopyNames]:
    """Return the names for private copies of the tensors that a parallel loop writes; ``across``: also of partial ones."""
    return {(tensor, partial): _named(names, tensor) for tensor in written for partial in ((True, False) if across else (False,))}


def _named(names: Names, tensor: str) -> CopyNames:
    share, stride, array, spans, begin = (names.permanent(wish) for wish in ("share", *(f"{tensor}_{part}" for part in _PARTS)))
    return CopyNames(share, stride, array, spans, begin)


def private_copies(scope: Scope, stored: Storage) -> PrivateCopies:
    """Return the copies of a dense tensor in the parallel loop around. Who writes to them asks for them by ``NeedsCopies``."""
    loop = scope.parallel[-1]
    partial = loop.part == "earlier"
    names = loop.copies[stored.name, partial]
    begin = Var(names.begin, I64) if partial else None
    return PrivateCopies(stored, names.array, Var(names.share, I64), Var(names.stride, I64), names.spans, begin)


def with_copies(context: Context, requests: Iterable[NeedsCopies], loop: list[Step]) -> list[Step]:
    """Add the allocation and the reduction of the copies that are asked for around a parallel loop, which is the last step."""
    *before, parallel = loop
    needed = {request.copies.array: request.copies for request in requests}.values()
    if needed and isinstance(parallel, For):
        numbers = [Declare(copies.share, Call(SHARE_NUMBER, (), I64)) for copies in needed]
        numbers += [Declare(copies.begin, Call(SHARE_BEGIN, (), I64)) for copies in needed if copies.begin is not None]
        loop = [*before, replace(parallel, body=Steps((*numbers, parallel.body)))]
    for copies in needed:
        loop = _around(context, copies, loop)
    return loop


def _around(context: Context, copies: PrivateCopies, loop: list[Step]) -> list[Step]:
    stored = copies.stored
    shares = context.size_parameter(THREADS)
    line = integer(max(1, LINE // stored.type.bytes))
    padded = multiply(quotient(add(copies.length, add(line, line)), line), line)
    whole = multiply(shares, copies.stride)
    make: list[Step] = [Declare(copies.stride, padded), Allocate(copies.array, stored.type, whole)]
    free: list[Step] = [Free(copies.array)]
    if copies.begin is None:
        make.append(Fill(copies.array, ZERO, whole, context.semiring.zero(stored.type)))
    else:
        share = Var(context.names.permanent("copy"), I64)
        at = copies.span(share)
        nothing = (Store(copies.spans, at, stored.levels[0].extent), Store(copies.spans, add(at, ONE), ZERO))
        make += [Allocate(copies.spans, I64, copies.span(shares)), For(share, ZERO, shares, Steps(nothing))]
        free.append(Free(copies.spans))
    return [*make, *loop, _reduction(context, copies, shares), *free]


def _reduction(context: Context, copies: PrivateCopies, shares: Value) -> Step:
    """Return the parallel loop over blocks of components that adds the copies of all shares in order."""
    names, stored, size = context.names, copies.stored, integer(_BLOCK)
    block, share, place = (Var(names.permanent(wish), I64) for wish in ("block", "copy", "place"))
    low, high = multiply(block, size), minimum(multiply(add(block, ONE), size), copies.length)
    if copies.begin is not None:
        first, past = (Load(copies.spans, at, I64) for at in (copies.span(share), add(copies.span(share), ONE)))
        low, high = maximum(low, multiply(first, copies.inner)), minimum(high, multiply(past, copies.inner))
    term = Load(copies.array, add(multiply(share, copies.stride), place), stored.type)
    gather = For(place, low, high, Steps((Store(stored.values, place, term, context.semiring.add_on(stored.type)),)))
    return For(block, ZERO, ceiling_quotient(copies.length, size), Steps((For(share, ZERO, shares, Steps((gather,))),)), Parallel("static"))
