"""Additions across the diagonal of a symmetric matrix of which only half is stored, and how threads share them.

Row i stores the coordinates j <= i, and each entry adds to component i and to component j (``concrete/mirrored.py``). If a share of
the work is a run of rows, j is a row of the same or of an earlier share. Only rows of earlier shares can conflict with other threads, so
that a share needs a private copy of only the components before its first row, and the first share needs none.
"""

from __future__ import annotations

from ..concrete.loop_tag import PRIVATE
from ..concrete.nodes import Unless
from ..ir.arithmetic import ONE, add, compare, minimum, multiply
from ..ir.nodes import I64, Fill, If, Load, Step, Steps, Store, Value
from ..workspaces.levels import Storage
from .context import Context
from .privatize import NeedsCopies, PrivateCopies, private_copies
from .recovery import known
from .scope import Scope


def added_across(context: Context, scope: Scope, statement: Unless) -> list[Step]:
    """Return the steps that add across the diagonal, if row and column differ."""
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
    return [NeedsCopies(copies), If(compare("<", column, copies.begin), Steps((_reached(context, copies, column), *earlier)), apart)]


def _shared_by_rows(context: Context, scope: Scope, statement: Unless) -> Storage | None:
    """Return the target if each share is a run of rows, and so adds only to its own rows and those of earlier shares; else None."""
    loop = scope.parallel[-1] if scope.parallel else None
    if loop is None or not loop.runs or loop.race not in PRIVATE:
        return None
    half = next(access for access in statement.reads if (form := context.tensors.format_of(access)) is not None and form.mirrors)
    (assign,) = statement.assignments
    row, column = context.tensors.storage(scope, half).levels
    target = context.tensors.storage(scope, assign.target)
    return target if loop.index == row.index and target.levels[0].index == column.index else None


def _reached(context: Context, copies: PrivateCopies, column: Value) -> Step:
    """Return the step that sets to zero the components of a copy from ``column`` on that the share has not reached before."""
    assert copies.begin is not None
    at = copies.span(copies.share)
    first = Load(copies.spans, at, I64)
    low, high = (copies.position(multiply(place, copies.inner)) for place in (column, minimum(first, copies.begin)))
    zeros = Fill(copies.array, low, high, context.semiring.zero(copies.stored.type))
    noted = (Store(copies.spans, at, column), Store(copies.spans, add(at, ONE), copies.begin))
    return If(compare("<", column, first), Steps((zeros, *noted)))
