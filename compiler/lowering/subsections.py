"""Loops over the non-empty subsections of a stored level: the offsets at which the open indices of a compound subscript reach entries.

Liu et al., "Compiler support for sparse tensor convolutions", sections 3 and 5.2. The loops inside a subsection find its end.
Subsections of several operands, and other stored levels, are merged like any levels (``merges``).
"""

from __future__ import annotations

from ..concrete.nodes import Stmt
from ..ir.arithmetic import TRUE
from ..ir.nodes import Step, Steps, While
from ..levels.subsection import SubsectionLevel
from ..notation.nodes import Access
from .context import Context
from .cursors import offset_cursor
from .resolve import Body, anchored, settle
from .scope import Scope, Window


def subsections(
    context: Context, scope: Scope, index: str, window: Window, statement: Stmt, access: Access, level: SubsectionLevel, body: Body
) -> list[Step]:
    """Return the loop over the offsets in a window of the non-empty subsections of one operand."""
    steps: list[Step] = []
    with context.names.block():
        found = anchored(context, level, steps)
        assert isinstance(found, SubsectionLevel)
        cursor = offset_cursor(context, scope, index, window, access, found, index, steps)
        with context.names.block():
            inside = scope.guarded().inside(index).know(index, cursor.position).found(access, cursor.place(scope))
            inner = settle(context, inside, statement, body)
        return [*steps, While(cursor.running, Steps((*inner, cursor.move_on(TRUE))))] if inner else []
