"""Local accumulators for chains of loops that add to one component, or to one short row of components.

``for j: y(i) += ...`` accumulates in a variable, which is stored once. ``for j: for r: Y(i,r) += ...`` accumulates in a row in registers
if the extent of ``r`` is known and small (DESIGN 2.8). Each component is then stored once and never read, so that it need not be
zero before. Producers of workspaces may run between the loops: ``for j: (for r: Y(i,r) += w(r) * B(j,r)) where (for k: ...)``.

This is a rewrite of concrete notation before lowering; what ``Where.local`` says of the result is all that lowering needs. A collapsed loop
is lowered as a nest: a sum of each row of it gets the loop over the row, ``for f: (y(i) += t where for j: t += ...)`` for ``f`` of (i, j).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from operator import is_

from ..concrete.apart import apart
from ..concrete.loop_tag import PRIVATE, LoopTag
from ..concrete.nodes import Assign, Block, Forall, Stmt, Unless, Where, Workspace, nest, reads, targets, walk
from ..concrete.shapes import Along, Entries, Nest
from ..fresh import FreshNames
from ..frozen import frozen
from ..notation.nodes import Access, accesses, index_subscript
from ..units import Member
from ..workspaces import keeps_entries
from .context import Context
from .windows import entries_of, is_cut, position_chain

ROW_BYTES = 1024
"""The longest row that is kept in registers, in bytes: 16 vectors of 64 bytes, half of the registers of machines with such vectors."""


@frozen
class Around:
    """The loops around a statement, outermost first, and how those distribute iterations that do: inside which group of a GPU, None: to
    threads of the processor."""

    loops: tuple[str, ...] = ()
    members: tuple[Member | None, ...] = ()

    def inside(self, loop: Forall) -> Around:
        """Return the loops around the body of one more loop."""
        return Around((*self.loops, loop.index), (*self.members, loop.tag.member) if loop.tag.is_dealt else self.members)

    def known(self, context: Context) -> set[str]:
        """Return the indices whose values are known inside: those of the loops, and those that follow from them."""
        return {*self.loops, *context.graph.derivation(self.loops)}


NameOf = Callable[[str], str]


def accumulated(context: Context, statement: Stmt) -> Stmt:
    """Return a statement in which every chain of loops that adds to one component, or to a short row, uses a workspace for the sum."""
    return _accumulated(context, FreshNames((*context.workspaces, *context.tensors.types)).fresh, statement, Around())


def _accumulated(context: Context, name_of: NameOf, statement: Stmt, around: Around) -> Stmt:
    """As ``accumulated``, inside some loops; ``name_of`` hands out the names of workspaces."""
    if isinstance(statement, Forall):
        if statement.tag.routine is not None:
            return statement
        sums = _promoted(context, name_of, around, statement)
        if sums is not None:
            return replace(sums, producer=_accumulated(context, name_of, sums.producer, around))
        if _is_collapsed(context, statement.index):
            body = _in_collapsed(context, name_of, statement, around)
            return statement if body is statement.body else replace(statement, body=body)
        around = around.inside(statement)
    children = tuple(_accumulated(context, name_of, child, around) for child in statement.children)
    return statement if all(map(is_, children, statement.children)) else statement.rebuild(children)


def _is_collapsed(context: Context, index: str) -> bool:
    """Whether a loop runs through a collapsed nest, or through a part of one."""
    return any(isinstance(context.graph.shape(name), Nest) for name in context.graph.ancestors(index))


def _in_collapsed(context: Context, name_of: NameOf, forall: Forall, around: Around) -> Stmt:
    """Return the body of a collapsed loop with sums; with the loops over rows if there are sums of rows."""
    inside = around.inside(forall)
    _, shape = context.graph.gone_through(forall.index, around.known(context))
    match shape:
        case Nest() if not is_by_pairs(context, forall, shape):
            rows = nested(forall, shape)
            if not _is_collapsed(context, rows.index):
                made = _accumulated(context, name_of, rows.body, around.inside(rows))
            else:
                made = _in_collapsed(context, name_of, rows, around)
            return forall.body if made is rows.body else made
        case Entries() | Along():
            entries = shape if isinstance(shape, Entries) else entries_of(context, shape.positions)
            _, chain = position_chain(context, entries)
            whole = not is_cut(context, entries, around.loops, around.known(context)) and not is_one_by_one(context, forall, entries)
            if not whole or has_every_slot(context, forall, entries):
                return _accumulated(context, name_of, forall.body, replace(inside, loops=(*around.loops, *chain)))
            rest = through_levels(forall, chain)
            made = _accumulated(context, name_of, rest, replace(inside, loops=(*around.loops, chain[0])))
            return forall.body if made is rest else made
    return _accumulated(context, name_of, forall.body, inside)


def nested(forall: Forall, rows: Nest) -> Forall:
    """Return a collapsed loop as the loop over its rows around the loop over each row. Whole rows are dealt out."""
    outer = replace(forall.tag, unit=forall.tag.unit if forall.tag.is_dealt else None, unroll=None)
    inner = replace(forall.tag, unit=None, race=None, chunking=None, chunk=None, unroll=None)
    return Forall(rows.outer, forall.body if has_loop(forall, rows.inner) else Forall(rows.inner, forall.body, inner), outer)


def through_levels(forall: Forall, chain: tuple[str, ...]) -> Stmt:
    """Return what a loop over positions does for each coordinate of the first of several levels: the loops through the levels below."""
    if len(chain) == 1 or has_loop(forall, chain[-1]):
        return forall.body
    own = replace(forall.tag, unit=None if forall.tag.is_dealt else forall.tag.unit)
    return nest(chain[1:-1], Forall(chain[-1], forall.body, own))


def has_loop(forall: Forall, index: str) -> bool:
    """Whether a collapsed loop has a loop over one of its indices, because of a sum inside."""
    return any(isinstance(node, Forall) and node.index == index for node in walk(forall.body))


def is_one_by_one(context: Context, forall: Forall, entries: Entries) -> bool:
    """Whether a loop over positions is always one over single positions, not a nest of loops over coordinates."""
    access, chain = position_chain(context, entries)
    form = context.tensors.format_of(access)
    assert form is not None
    first, *below = (level for level in range(len(form)) if access.subscripts[form.order[level]].index in chain)
    if forall.tag.is_dealt and not form.unique(first):  # separate threads cannot skip equal coordinates
        return True
    if any(form.levels[level].holes for level in below):  # entries above holes are found position by position
        return True
    return bool(below) and forall.tag.is_on_gpu  # with whole fibres, one unit would have all the work of a long one


def has_every_slot(context: Context, forall: Forall, entries: Entries) -> bool:
    """Whether a loop over positions of several levels visits all of them, for a workspace with a slot for each or for no operand."""
    access, chain = position_chain(context, entries)
    positions, read = {forall.index, *context.graph.ancestors(forall.index), *context.graph.descendants(forall.index)}, reads(forall.body)
    slots = any(context.is_workspace(each.tensor) and positions.intersection(each.indices) for each in read)
    return len(chain) > 1 and (slots or access not in read)


def is_by_pairs(context: Context, forall: Forall, pairs: Nest) -> bool:
    """Whether a collapsed loop is one loop over pairs, not a nest: units of a GPU get single iterations where every pair is stored, since
    with whole rows lanes would wait for the longest."""
    if not forall.tag.is_on_gpu or not context.tensors.types[context.result.tensor].format.is_dense:
        return False
    indices, inside = context.graph.originals(pairs.fused), targets(forall.body)
    seen = [access for access in reads(forall.body) if access.tensor not in inside]
    listed = [access for access in seen if access.tensor in context.workspaces and keeps_entries(context.workspaces[access.tensor].kind)]
    return all(_is_dense(context, access, index) for access in seen for index in indices) and not any(
        index in access.indices for access in listed for index in indices
    )


def _promoted(context: Context, name_of: NameOf, around: Around, forall: Forall) -> Where | None:
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
    once = not beside and _once(context, around, inner)
    if len(chain) < len(frames) and (not once or context.assembly is not None):
        return None
    rows = _rows(context, chain, inner) if once or beside else []
    kept = {loop.index for loop in rows}
    moving = {original for loop in chain for original in (loop.index, *context.graph.originals(loop.index))} - kept
    own = {name for index in inner.target.indices for name in context.graph.ancestors(index)}
    if moving & own or (context.is_workspace(inner.target.tensor) and not inner.target.subscripts):
        return None
    indices = tuple(loop.index for loop in rows)
    workspace = Workspace(name_of(f"t{inner.target.tensor}"), indices, "registers" if indices else "scalar")
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
    return form is None or not access.has_coordinates(index, form)


def _once(context: Context, around: Around, write: Assign) -> bool:
    """Whether each component of a target is written once: one assignment writes it, and all iterations of the loops around differ in it."""
    if len(context.writes(write.target.tensor)) != 1:
        return False
    loops = enumerate(around.loops)
    return all(apart(write, loop, around.loops[:place], context.graph, context.tensors.format_of) for place, loop in loops)
