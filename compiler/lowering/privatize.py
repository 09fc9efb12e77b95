"""Private copies of a result or workspace on which threads would race, one for each share of the work, and their reduction in order.

Race strategies ``temporary`` and ``parallel_reduction`` (Senanayake et al., section 5.5: worker and reduction loops that communicate
through a workspace). The reduction adds the copies in the order of shares for every component, and the number of a chunk decides its
share, so that the result does not depend on timing. If a share adds only to its own components and to those of earlier shares
(``across_diagonal.py``), its copy covers only what it reaches. If leading coordinates of the tensor have values outside the parallel loop,
the copies cover only the components that have these coordinates: a sum over k inside loops over i and j needs one component for each share.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ..frozen import frozen
from ..ir.arithmetic import ONE, ZERO, add, ceiling_quotient, integer, maximum, minimum, multiply, quotient, subtract
from ..ir.names import Names
from ..ir.nodes import (
    I64,
    SHARE_BEGIN,
    SHARE_NUMBER,
    Allocate,
    Call,
    Const,
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
from ..notation.nodes import Access
from ..workspaces.levels import Storage
from .context import Context
from .parameters import THREADS
from .recovery import UnknownIndexError, known
from .scope import CopyNames, Scope

LINE = 64  # bytes of a cache line; copies of different shares do not share one
_PARTS = ("stride", "copies", "spans", "begin", "first")
_BLOCK = 512  # components that a thread adds at once, from one copy after another


@frozen
class PrivateCopies:
    """The copies of one tensor: ``array`` holds one after another, ``stride`` elements apart.

    ``fixed`` are the coordinates of leading levels that are the same for all that the loop writes, and ``first`` is the position of the
    first component that has them.
    ``begin`` is None if copies have all these components. Otherwise it is the first iteration of a share, whose copy holds only components
    before that; ``spans`` has, for each share, the first coordinate of the outermost level that it reached, and its ``begin``.
    """

    stored: Storage
    array: str
    share: Var
    stride: Var
    spans: str
    first: Var
    fixed: tuple[Value, ...] = ()
    begin: Var | None = None

    @property
    def inner(self) -> Value:
        """How many components each coordinate of the outermost level has."""
        return _product(self.stored.levels[1:])

    @property
    def length(self) -> Value:
        """How many components the loop may write."""
        return _product(self.stored.levels[len(self.fixed) :])

    @property
    def begins(self) -> Value:
        """The position of the first component that the loop may write."""
        position: Value = ZERO
        for level, coordinate in zip(self.stored.levels, self.fixed, strict=False):
            position = add(multiply(position, level.extent), coordinate)
        return multiply(position, self.length)

    def position(self, position: Value) -> Value:
        """Return where a position of the tensor is in the array: that of the own share's copy."""
        if len(self.fixed) == len(self.stored.levels):
            return multiply(self.share, self.stride)
        return add(multiply(self.share, self.stride), subtract(position, self.first) if self.fixed else position)

    def place(self, number: Value) -> Value:
        """Return the position in the tensor of a component of the copies, which are counted from zero."""
        return add(self.first, number) if self.fixed else number

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


def copy_names(names: Names, written: Iterable[Access], across: bool) -> dict[tuple[str, bool], CopyNames]:
    """Return the names for private copies of the tensors that a parallel loop writes; ``across``: also of partial ones."""
    indices: dict[str, tuple[str, ...]] = {}
    for access in written:
        indices[access.tensor] = access.indices if indices.get(access.tensor, access.indices) == access.indices else ()
    partials = (True, False) if across else (False,)
    return {(tensor, partial): _named(names, tensor, some) for tensor, some in indices.items() for partial in partials}


def _named(names: Names, tensor: str, indices: tuple[str, ...]) -> CopyNames:
    return CopyNames(indices, *(names.permanent(wish) for wish in ("share", *(f"{tensor}_{part}" for part in _PARTS))))


def private_copies(context: Context, scope: Scope, stored: Storage) -> PrivateCopies:
    """Return the copies of a dense tensor in the parallel loop around. Who writes to them asks for them by ``NeedsCopies``."""
    loop = scope.parallel[-1]
    partial = loop.part == "earlier"
    names = loop.copies[stored.name, partial]
    share, stride, first, begin = (Var(name, I64) for name in (names.share, names.stride, names.first, names.begin))
    fixed = () if partial else tuple(_fixed(context, loop.outside, stored, names.indices))
    return PrivateCopies(stored, names.array, share, stride, names.spans, first, fixed, begin if partial else None)


def _fixed(context: Context, outside: Scope, stored: Storage, indices: tuple[str, ...]) -> Iterator[Value]:
    """Yield the coordinates of leading levels that have values outside the parallel loop and are the same for all that it writes; none if
    positions are not row-major."""
    value = known(context, outside)
    for level in stored.levels if all(level.kind.full for level in stored.levels) else ():
        if level.index not in indices:
            return
        try:
            yield value(level.index)
        except UnknownIndexError:
            return


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
    if copies.fixed:
        make.append(Declare(copies.first, copies.begins))
    free: list[Step] = [Free(copies.array)]
    if copies.begin is None:
        make.append(_cleared(context, copies, whole))
    else:
        share = Var(context.names.permanent("copy"), I64)
        at = copies.span(share)
        nothing = (Store(copies.spans, at, stored.levels[0].extent), Store(copies.spans, add(at, ONE), ZERO))
        make += [Allocate(copies.spans, I64, copies.span(shares)), For(share, ZERO, shares, Steps(nothing))]
        free.append(Free(copies.spans))
    return [*make, *loop, _reduction(context, copies, shares), *free]


def _cleared(context: Context, copies: PrivateCopies, whole: Value) -> Step:
    """Return the step that clears copies of all components: by threads, where there may be many, so that each has its own near."""
    zero = context.semiring.zero(copies.stored.type)
    if isinstance(copies.length, Const) and copies.length.value < _BLOCK:
        return Fill(copies.array, ZERO, whole, zero)
    place = Var(context.names.permanent("place"), I64)
    return For(place, ZERO, whole, Steps((Store(copies.array, place, zero),)), Parallel("static"))


def _reduction(context: Context, copies: PrivateCopies, shares: Value) -> Step:
    """Return the parallel loop over blocks of components that adds the copies of all shares in order."""
    names, stored, size = context.names, copies.stored, integer(_BLOCK)
    block, share, place = (Var(names.permanent(wish), I64) for wish in ("block", "copy", "place"))
    low, high = multiply(block, size), minimum(multiply(add(block, ONE), size), copies.length)
    if copies.begin is not None:
        first, past = (Load(copies.spans, at, I64) for at in (copies.span(share), add(copies.span(share), ONE)))
        low, high = maximum(low, multiply(first, copies.inner)), minimum(high, multiply(past, copies.inner))
    term = Load(copies.array, add(multiply(share, copies.stride), place), stored.type)
    gather = For(place, low, high, Steps((Store(stored.values, copies.place(place), term, context.semiring.add_on(stored.type)),)))
    return For(block, ZERO, ceiling_quotient(copies.length, size), Steps((For(share, ZERO, shares, Steps((gather,))),)), Parallel("static"))
