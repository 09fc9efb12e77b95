"""Sums of GPU threads that write the components of a result in order: race strategy ``temporary`` on blocks, warps and threads.

If tiles of positions are dealt out, consecutive threads add to consecutive components, and only the first component of a thread can belong
to an earlier thread as well. The thread keeps its sum for that one in a slot of its own, and adds to all others without atomics. The slots
are added in order after the kernel (``passes.carries``). The result does not depend on timing.
"""

from __future__ import annotations

from ..format import Format
from ..ir.arithmetic import ONE, add, integer, multiply
from ..ir.nodes import Carry, Value
from ..notation.nodes import Access
from ..workspaces.levels import Storage
from .context import Context
from .scope import ParallelLoop, Scope


def carry_of(context: Context, scope: Scope, stored: Storage, meeting: tuple[ParallelLoop, ...]) -> Carry | None:
    """Return where each thread keeps the sum for its first component; None if threads do not write components in order.

    Args:
        stored: the result.
        meeting: the parallel loops around, outermost first, of which two iterations may add to the same component.
    """
    names = tuple(loop.index for loop in meeting)
    leading = _in_order(context, scope, stored, names)
    if leading is None or any(loop.race != "temporary" for loop in meeting):
        return None
    slot: Value = scope.coordinates[names[0]]
    for name in names[1:]:
        extent = context.graph.constant_extent(name, context.extents)
        if extent is None:
            return None
        slot = add(multiply(slot, integer(extent)), scope.coordinates[name])
    width: Value = ONE
    for level in stored.levels[leading:]:
        width = multiply(width, level.extent)
    return Carry(slot, width)


def _in_order(context: Context, scope: Scope, stored: Storage, names: tuple[str, ...]) -> int | None:
    """Return through how many leading levels of the target the loops over tiles of positions run in order; None if they do not."""
    graph = context.graph
    if any(graph.space(name) != "position" for name in names):
        return None
    relations = {graph.position_relation(name) for name in names}
    if len(relations) != 1:
        return None
    counted = graph.position_relation(names[0])
    tiles = [leaf for child in counted.children for leaf in graph.leaves(child)]
    around = [name for name in scope.loops if name in tiles]
    if around != tiles[: len(around)] or around[: len(names)] != list(names):
        return None
    form = context.tensors.format_of(counted.access)
    if form is None:
        return None
    gone_through = _levels(counted.access, form)
    own = set(graph.originals(counted.parent))
    if not gone_through or gone_through[0] not in own:
        return None
    written = [level.index for level in stored.levels]
    leading = 0
    while leading < len(written) and leading < len(gone_through) and written[leading] == gone_through[leading]:
        leading += 1
    return None if own & set(written[leading:]) else leading


def _levels(access: Access, form: Format) -> tuple[str, ...]:
    """Return the indices of an access in the order in which it is stored."""
    return tuple(name for mode in form.order for name in access.subscripts[mode].indices)
