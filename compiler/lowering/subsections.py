"""Loops over the non-empty subsections of a stored level: the offsets at which what a compound subscript still lacks finds something.

Liu et al., "Compiler support for sparse tensor convolutions", sections 3 and 5.2. A subsection begins at an offset and is as long as the
indices that are known later reach. The loop keeps the first position that is in the present one; the next is at the first offset behind
that reaches what is stored from there on. Where subsections end is found by those who step through them.
"""

from __future__ import annotations

from ..concrete.nodes import Stmt
from ..ir.arithmetic import ONE, add, compare, maximum
from ..ir.nodes import I64, Declare, Select, SetVar, Step, Steps, Value, Var, While
from ..levels.affine import SubsectionLevel, passed
from ..notation.nodes import Access
from .context import Context
from .resolve import Body, anchored, bounds, named, settle
from .scope import Scope, Window


def subsections(
    context: Context, scope: Scope, index: str, window: Window, statement: Stmt, access: Access, level: SubsectionLevel, body: Body
) -> list[Step]:
    """Return the loop over the offsets in a window of the non-empty subsections of one operand."""
    steps: list[Step] = []
    above = scope.place(access)
    name = f"{context.storage(access).name}{above.depth + 1}"
    with context.names.block():
        found = anchored(context, level, steps)
        assert isinstance(found, SubsectionLevel)
        low, high = bounds(scope, access, found)
        low, high = named(context, f"first_{name}", low, steps), named(context, f"last_{name}", high, steps)
        end = named(context, f"{index}_end", window.high, steps)
        position, offset = Var(context.names.local(f"p_{name}"), I64), Var(context.names.local(index), I64)

        def first(least: Value) -> Value:
            return Select(compare("<", position, high), maximum(least, found.offset(position)), end, I64)

        steps += [Declare(position, found.sought(low, high, found.least(window.low))), Declare(offset, first(window.low))]
        with context.names.block():
            inside = scope.guarded().inside(index).know(index, offset).found(access, passed(above, position))
            inner = settle(context, inside, statement, body)
            following = Var(context.names.local(f"next_{index}"), I64)
        if not inner:
            return []
        onward = [
            Declare(following, add(offset, ONE)),
            SetVar(position, found.inner.search(position, high, found.least(following), "gallop", ONE)),
            SetVar(offset, first(following)),
        ]
        return [*steps, While(compare("<", offset, end), Steps((*inner, *onward)))]
