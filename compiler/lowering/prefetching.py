"""Prefetches of data that a loop will read some iterations ahead, at addresses that are already known."""

from __future__ import annotations

from collections.abc import Callable

from ..concrete.loop_tag import FAR_AHEAD, LoopTag
from ..concrete.nodes import Stmt, assignments, reads
from ..concrete.said import means, said_of
from ..ir.arithmetic import ZERO, add, integer, multiply
from ..ir.nodes import Const, Prefetch, Step, Value
from ..notation.nodes import Access
from .context import Context
from .recovery import known
from .scope import Place, Scope

MOST_ELEMENTS = 128  # the most elements of a row that are prefetched: after the first cache lines the hardware prefetches by itself
SEGMENTS_AHEAD = 6  # default distance, in iterations, of prefetches of sparse rows; it is enough for rows in memory


def prefetches(
    context: Context, scope: Scope, index: str, statement: Stmt, tag: LoopTag, ahead: Callable[[int], Value],
    stepped: tuple[Access, Value, int] | None = None,
) -> list[Step]:  # fmt: skip
    """Return the prefetches that the tag of a loop over ``index`` asks for.

    Args:
        ahead: returns the coordinate a given number of iterations ahead.
        stepped: the operand through whose entries the loop steps, the position of the current entry, and the number of its levels.
    """
    steps: list[Step] = []
    for operand, distance in tag.prefetch:
        for access in dict.fromkeys((*reads(statement), *_added_to(statement))):
            if means(operand, access) and index in access.indices and access not in scope.absent:
                if stepped is not None and access == stepped[0]:
                    steps += _entries(context, scope, access, stepped[1], stepped[2], distance)
                    continue
                steps += _row(context, scope, index, access, ahead(distance)) or _segment(context, scope, index, access, ahead, distance)
    return steps


def _added_to(statement: Stmt) -> tuple[Access, ...]:
    """Return the targets to which a statement adds, which are read as well as written."""
    return tuple(assign.target for assign in assignments(statement) if assign.operator == "+=")


def scattered_segments(
    context: Context, scope: Scope, index: str, statement: Stmt, tag: LoopTag, ahead: Callable[[int], Value]
) -> list[Step]:
    """Return the prefetches of a loop whose coordinates come from memory, for operands whose segments it reads in scattered order.

    Waiting for rows of the second factor takes most of the time of a product of two scattered matrices.
    """
    steps: list[Step] = []
    for access in statement.operands:
        if index not in access.indices or context.is_workspace(access.tensor) or access in scope.absent:
            continue
        if said_of(access, tag.prefetch) is None:
            steps += _segment(context, scope, index, access, ahead, SEGMENTS_AHEAD)
    return steps


def _entries(context: Context, scope: Scope, access: Access, here: Value, count: int, distance: int) -> list[Step]:
    """Prefetch an entry ahead of a position of an operand: its coordinates, and its value or the begin of the segment below.

    Processors prefetch data that is read in order by themselves, but not across pages, and only a short time ahead.
    """
    storage, first = context.tensors.storage(scope, access), scope.place(access).depth
    past, position, cache = first + count, add(here, integer(distance)), 2 if distance >= FAR_AHEAD else 1
    steps: list[Step] = []
    for level in reversed(storage.levels[first:past]):
        if level.has("crd"):
            steps.insert(0, Prefetch(level.array("crd").name, position, cache=cache))
        if not level.kind.shares_positions:
            break  # levels above have other positions
    if past == len(storage.levels):
        return [*steps, Prefetch(storage.values, position, cache=cache)]
    below = storage.levels[past]
    return [*steps, Prefetch(below.array("pos").name, position, cache=cache)] if below.kind.has_fibres else steps


def _segment(context: Context, scope: Scope, index: str, access: Access, ahead: Callable[[int], Value], distance: int) -> list[Step]:
    """Prefetch the begin of the segment below a dense level, and, when that is loaded, its first coordinates and values."""
    storage, place = context.tensors.storage(scope, access), scope.place(access)
    levels = storage.levels[place.depth : place.depth + 2]
    if len(levels) < 2 or not levels[0].kind.full or not levels[1].kind.has_fibres or levels[0].index != index:
        return []
    dense, below = levels

    def parent(distance: int) -> Value:
        here = known(context, scope)
        return dense.descend(place, lambda name: ahead(distance) if name == index else here(name)).parent

    start = below.load("pos", parent(distance))
    steps: list[Step] = [Prefetch(below.array("pos").name, parent(2 * distance), 1)]
    steps += [Prefetch(below.array("crd").name, start, 1)] if below.has("crd") else []
    return [*steps, Prefetch(storage.values, start, 1)] if place.depth + 2 == len(storage.levels) else steps


def _row(context: Context, scope: Scope, index: str, access: Access, coordinate: Value) -> list[Step]:
    """Prefetch the components that inner loops will read, if they are neighbours in memory."""
    storage = context.tensors.storage(scope, access)
    if any(not level.kind.full for level in storage.levels):
        return []
    place = Place()
    row: Value = Const(1, ZERO.type)

    def start(name: str) -> Value:
        value = coordinate if name == index else scope.coordinates.get(name)
        window = scope.windows.get(name)
        return value if value is not None else window.low if window is not None else ZERO

    for level in storage.levels:
        place = level.descend(place, start)
        if level.index == index or level.index in scope.coordinates:
            row = Const(1, ZERO.type)
        else:
            window = scope.windows.get(level.index)
            width = window.width if window is not None else None
            row = multiply(row, Const(width, ZERO.type) if width is not None else level.extent)
    count = min(int(row.value), MOST_ELEMENTS) if isinstance(row, Const) else 1
    return [Prefetch(storage.values, place.parent, count)]
