"""Additions across the diagonal of a symmetric matrix of which half is stored, and how threads share them.

Rows i store the coordinates j <= i, and each entry adds to component i and to component j (``concrete/mirrored.py``). Where a share of
the work is a run of rows, j is a row of its own or of an earlier share: only the latter meet what other threads write, so that a share
needs a copy of the components before its first row alone, and the first share none.
"""

from __future__ import annotations

from ..concrete.nodes import Unless
from ..ir.arithmetic import ONE, add, compare, minimum, multiply
from ..ir.nodes import I64, Fill, If, Load, Step, Steps, Store, Value
from ..workspaces.levels import Storage
from .context import Context
from .privatize import PRIVATE, PrivateCopies, private_copies
from .recovery import known
from .scope import Scope


def added_across(context: Context, scope: Scope, statement: Unless) -> list[Step]:
    """Return the steps that add across the diagonal, under the condition that row and column differ."""
    scope = scope.guarded()
    target = _shared_by_rows(context, scope, statement)
    with context.names.block():
        own = context.lower(statement.body, scope if target is None else scope.part("own"))
    if not own:
        return []
    one, other = map(known(context, scope), (statement.first, statement.second))
    apart = If(compare("!=", one, other), Steps(tuple(own)))
    if target is None:
        return [apart]
    scope = scope.part("earlier")
    copies, column = private_copies(context, scope, target), known(context, scope)(target.levels[0].index)
    with context.names.block():
        earlier = context.lower(statement.body, scope)
    assert copies.begin is not None
    return [If(compare("<", column, copies.begin), Steps((_reached(context, copies, column), *earlier)), apart)]


def _shared_by_rows(context: Context, scope: Scope, statement: Unless) -> Storage | None:
    """Return what is added to where a share is a run of the rows of the half, and adds to rows of its own and of earlier shares."""
    loop = scope.parallel[-1] if scope.parallel else None
    if loop is None or not loop.runs or loop.race not in PRIVATE:
        return None
    half = next(access for access in statement.reads if (form := context.tensors.format_of(access)) is not None and form.mirrors)
    (assign,) = statement.assignments
    row, column = context.tensors.storage(scope, half).levels
    target = context.tensors.storage(scope, assign.target)
    return target if loop.index == row.index and target.levels[0].index == column.index else None


def _reached(context: Context, copies: PrivateCopies, column: Value) -> Step:
    """Return what makes zeros of the components from one on that the share has not reached before."""
    assert copies.begin is not None
    at = copies.span(copies.share)
    first = Load(copies.spans, at, I64)
    low, high = (copies.position(multiply(place, copies.inner)) for place in (column, minimum(first, copies.begin)))
    zeros = Fill(copies.array, low, high, context.semiring.zero(copies.stored.type))
    noted = (Store(copies.spans, at, column), Store(copies.spans, add(at, ONE), copies.begin))
    return If(compare("<", column, first), Steps((zeros, *noted)))
