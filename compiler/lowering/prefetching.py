"""Prefetch: ask for what an operand will be read at some iterations ahead, while its address is known already."""

from __future__ import annotations

from collections.abc import Callable

from ..concrete.nodes import LoopTag, Stmt, reads
from ..format import LevelKind
from ..loops.nodes import Const, Prefetch
from ..loops.nodes import Expr as Value
from ..loops.nodes import Stmt as Step
from ..notation.nodes import Access
from .arithmetic import ZERO, add, multiply
from .context import Context
from .scope import Scope

MOST_ELEMENTS = 128  # of a row that one prefetch asks for: the first cache lines suffice to start the hardware's own


def prefetches(context: Context, scope: Scope, index: str, statement: Stmt, tag: LoopTag, ahead: Callable[[int], Value]) -> list[Step]:
    """Return the prefetches of a loop over ``index``; ``ahead`` gives the coordinate so many iterations on."""
    steps: list[Step] = []
    for operand, distance in tag.prefetch:
        for access in dict.fromkeys(reads(statement)):
            if access.tensor == operand and index in access.indices and access not in scope.absent:
                steps += _row(context, scope, index, access, ahead(distance))
    return steps


def _row(context: Context, scope: Scope, index: str, access: Access, coordinate: Value) -> list[Step]:
    """Ask for the components that the loops further in will read, where these lie side by side."""
    storage = context.storage(access)
    if any(level.kind is not LevelKind.DENSE for level in storage.levels):
        return []
    position: Value = ZERO
    row: Value = Const(1, ZERO.type)
    for level in storage.levels:
        known = coordinate if level.index == index else scope.coordinates.get(level.index)
        window = scope.windows.get(level.index)
        start = known if known is not None else window.low if window is not None else ZERO
        position = add(multiply(position, level.extent), start)
        if known is not None:
            row = Const(1, ZERO.type)
        else:
            width = window.width if window is not None else None
            row = multiply(row, Const(width, ZERO.type) if width is not None else level.extent)
    count = min(int(row.value), MOST_ELEMENTS) if isinstance(row, Const) else 1
    return [Prefetch(storage.values, position, count)]
