"""Local accumulators for what a chain of loops adds to one component, or to one short row of components.

``for j: y(i) += ...`` accumulates in a variable that is stored once. ``for j: for r: Y(i,r) += ...`` does so in a row that lives in
registers where the extent of ``r`` is known and small (DESIGN 2.8): each component is stored once and never read, so that no
zeros need to stand there before.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from ..concrete.apart import apart
from ..concrete.nodes import Assign, Forall, LoopTag, Stmt, Where
from ..notation.nodes import Access, accesses, index_subscript
from .context import Context
from .privatize import PRIVATE
from .scope import Scope

ROW_BYTES = 1024
"""The longest row that is kept: 16 vectors of 64 bytes, half of the registers of machines that have such."""


def promote(context: Context, scope: Scope, forall: Forall) -> Where | None:
    """Accumulate in a local variable or row what a chain of loops adds to a target; None where the components change otherwise.

    Both are ordinary workspaces, so everything that is known of those holds for them.
    """
    chain: list[Forall] = []
    inner: Stmt = forall
    while isinstance(inner, Forall):
        if inner.tag.unit not in (None, "cpu_vector") and not _combines(scope, inner):
            return None
        chain.append(inner)
        inner = inner.body
    if not isinstance(inner, Assign) or inner.operator != "+=":
        return None
    rows = _rows(context, scope, chain, inner)
    kept = {loop.index for loop in rows}
    moving = {original for loop in chain for original in (loop.index, *context.graph.originals(loop.index))} - kept
    own = {name for index in inner.target.indices for name in context.graph.ancestors(index)}
    if moving & own or (inner.target.tensor in context.workspaces and not inner.target.subscripts):
        return None
    workspace = context.accumulator(inner.target.tensor, tuple(loop.index for loop in rows))
    local = Access(workspace, tuple(index_subscript(loop.index) for loop in rows))
    producer: Stmt = Assign(local, "+=", inner.value)
    for loop in reversed(chain):
        producer = replace(loop, body=producer)
    consumer: Stmt = Assign(inner.target, "=" if _once(context, scope, inner.target) else "+=", local)
    for loop in reversed(rows):
        consumer = Forall(loop.index, consumer, LoopTag(unit=loop.tag.unit))
    return Where(consumer, producer)


def _combines(scope: Scope, loop: Forall) -> bool:
    """Whether what the threads of a block or warp of a GPU add to one component is combined among them."""
    inside = bool(scope.parallel) and scope.parallel[-1].unit in ("gpu_block", "gpu_warp")
    return inside and loop.tag.unit in ("gpu_warp", "gpu_thread") and loop.tag.race in PRIVATE


def _rows(context: Context, scope: Scope, chain: list[Forall], inner: Assign) -> list[Forall]:
    """Return the loops of a chain that run through a short row of a dense array in every iteration of a sum outside."""
    target = inner.target
    rows = [loop for loop in chain if loop.index in target.indices]
    others = [loop for loop in chain if loop.index not in target.indices]
    if not rows or chain[0] in rows or target.tensor in context.workspaces or context.assembly is not None:
        return []
    if not context.value_type.is_float or any(loop.tag.unit for loop in others) or not _once(context, scope, target):
        return []
    extents = [0 if context.graph.is_derived(loop.index) else context.extents.get(loop.index, 0) for loop in rows]
    if not 0 < prod(extents) * context.value_type.bytes <= ROW_BYTES:
        return []
    dense = all(_is_dense(context, access, loop.index) for loop in rows for access in (target, *accesses(inner.value)))
    return rows if dense else []


def _is_dense(context: Context, access: Access, index: str) -> bool:
    """Whether all components along an index are stored."""
    form = context.format_of(access)
    kinds = [form.levels[form.order.index(mode)] for mode, name in enumerate(access.indices) if name == index] if form is not None else []
    return all(kind.full for kind in kinds)


def _once(context: Context, scope: Scope, target: Access) -> bool:
    """Whether each component of a target is reached once: one writer, and all loops around write different ones in each iteration."""
    if len(context.writes(target.tensor)) != 1:
        return False
    loops = enumerate(scope.loops)
    return all(apart(target.indices, loop, scope.loops[:place], context.graph, context.format_of) for place, loop in loops)
