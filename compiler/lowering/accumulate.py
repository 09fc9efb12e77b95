"""Local accumulators for chains of loops that add to one component, or to one short row of components.

``for j: y(i) += ...`` accumulates in a variable, which is stored once. ``for j: for r: Y(i,r) += ...`` accumulates in a row in registers
if the extent of ``r`` is known and small (DESIGN 2.8). Each component is then stored once and never read, so that it need not be
zero before. Producers of workspaces may run between the loops: ``for j: (for r: Y(i,r) += w(r) * B(j,r)) where (for k: ...)``.

This is a rewrite of concrete notation before lowering; what ``Where.local`` says of the result is all that lowering needs. Only statements
inside a collapsed loop are rewritten when that loop is lowered, since its loops are not known before.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from operator import is_

from ..concrete.apart import apart
from ..concrete.nodes import Assign, Block, Forall, LoopTag, Stmt, Unless, Where, Workspace
from ..concrete.shapes import Nest
from ..frozen import frozen
from ..notation.nodes import Access, accesses, index_subscript
from ..units import Member
from .context import Context
from .privatize import PRIVATE
from .scope import Scope

ROW_BYTES = 1024
"""The longest row that is kept in registers, in bytes: 16 vectors of 64 bytes, half of the registers of machines with such vectors."""


@frozen
class Around:
    """The loops around a statement, outermost first, and how those distribute iterations that do: inside which group of a GPU, None: to
    threads of the processor."""

    loops: tuple[str, ...] = ()
    members: tuple[Member | None, ...] = ()

    def inside(self, loop: Forall) -> Around:
        return Around((*self.loops, loop.index), (*self.members, loop.tag.member) if loop.tag.is_dealt else self.members)


OUTERMOST = Around()


def at_place(scope: Scope, *inside: str) -> Around:
    """Return the loops around a place of the nest, and ``inside`` them those that are opened next."""
    return Around((*scope.loops, *inside), tuple(loop.member for loop in scope.parallel))


def accumulated(context: Context, statement: Stmt, around: Around = OUTERMOST) -> Stmt:
    """Return a statement in which every chain of loops that adds to one component, or to a short row, uses a workspace for the sum."""
    if isinstance(statement, Forall):
        if statement.tag.routine is not None:
            return statement
        sums = _promoted(context, around, statement)
        if sums is not None:
            return replace(sums, producer=accumulated(context, sums.producer, around))
        if is_collapsed(context, statement.index):
            return statement
        around = around.inside(statement)
    children = tuple(accumulated(context, child, around) for child in statement.children)
    return statement if all(map(is_, children, statement.children)) else statement.rebuild(children)


def is_collapsed(context: Context, index: str) -> bool:
    """Whether a loop runs through a collapsed nest, or through a part of one."""
    return any(isinstance(context.graph.shape(name), Nest) for name in context.graph.ancestors(index))


def _promoted(context: Context, around: Around, forall: Forall) -> Where | None:
    """Return a statement that accumulates the sums of a chain of loops in a local variable or row; None if other loops write the target.

    Variable and row are ordinary workspaces, and are treated as such.
    """
    frames: list[Forall | Where] = []
    beside: dict[int, Unless] = {}  # additions to other components, by the number of frames around them
    inner: Stmt = forall
    while isinstance(inner, Forall | Where):
        frames.append(inner)
        if isinstance(inner, Where):
            inner = inner.consumer
            continue
        if inner.tag.is_dealt and not _combines(around, inner):
            return None
        inner = inner.body
        match inner:
            case Block((first, Unless() as other)):
                inner, beside[len(frames)] = first, other
    if not isinstance(inner, Assign) or inner.operator != "+=":
        return None
    chain = [frame for frame in frames if isinstance(frame, Forall)]
    once = not beside and _once(context, around, inner.target)
    if len(chain) < len(frames) and (not once or context.assembly is not None):
        return None
    rows = _rows(context, chain, inner) if once or beside else []
    kept = {loop.index for loop in rows}
    moving = {original for loop in chain for original in (loop.index, *context.graph.originals(loop.index))} - kept
    own = {name for index in inner.target.indices for name in context.graph.ancestors(index)}
    if moving & own or (context.is_workspace(inner.target.tensor) and not inner.target.subscripts):
        return None
    indices = tuple(loop.index for loop in rows)
    workspace = Workspace(context.name_of_sum(f"t{inner.target.tensor}"), indices, "registers" if indices else "scalar")
    local = Access(workspace.name, tuple(map(index_subscript, indices)))
    producer: Stmt = Assign(local, "+=", inner.value)
    for place, frame in reversed(tuple(enumerate(frames, 1))):
        if isinstance(frame, Where):
            producer = replace(frame, consumer=producer)
        else:
            producer = replace(frame, body=Block((producer, beside[place])) if place in beside else producer)
    consumer: Stmt = Assign(inner.target, "=" if once else "+=", local)
    for loop in reversed(rows):
        consumer = Forall(loop.index, consumer, LoopTag(unit=loop.tag.unit))
    return Where(consumer, producer, workspace)


def _combines(around: Around, loop: Forall) -> bool:
    """Whether the threads of a block or warp of a GPU combine what they add to one component."""
    inside = around.members[-1:] in (("block",), ("warp",))
    return inside and loop.tag.member in ("warp", "thread") and loop.tag.race in PRIVATE


def _rows(context: Context, chain: list[Forall], inner: Assign) -> list[Forall]:
    """Return the loops of a chain that run through a short row of a dense array, in every iteration of a sum outside."""
    target = inner.target
    rows = [loop for loop in chain if loop.index in target.indices]
    others = [loop for loop in chain if loop.index not in target.indices]
    if not rows or chain[0] in rows or context.is_workspace(target.tensor) or context.assembly is not None:
        return []
    if not context.value_type.is_float or any(loop.tag.unit for loop in others):
        return []
    extents = [0 if context.graph.is_derived(loop.index) else context.extents.get(loop.index, 0) for loop in rows]
    if not 0 < prod(extents) * context.value_type.bytes <= ROW_BYTES:
        return []
    dense = all(_is_dense(context, access, loop.index) for loop in rows for access in (target, *accesses(inner.value)))
    return rows if dense else []


def _is_dense(context: Context, access: Access, index: str) -> bool:
    """Whether all components along an index are stored."""
    form = context.tensors.format_of(access)
    kinds = [form.levels[form.order.index(mode)] for mode, name in enumerate(access.indices) if name == index] if form is not None else []
    return all(kind.full for kind in kinds)


def _once(context: Context, around: Around, target: Access) -> bool:
    """Whether each component of a target is written once: one assignment writes it, and all iterations of the loops around differ in it."""
    if len(context.writes(target.tensor)) != 1:
        return False
    loops = enumerate(around.loops)
    return all(apart(target.indices, loop, around.loops[:place], context.graph, context.tensors.format_of) for place, loop in loops)
