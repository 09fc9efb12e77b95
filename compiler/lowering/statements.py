"""Lowers statements of concrete notation to steps of the loop IR, in two versions if it is not known whether an operand is stored."""

from __future__ import annotations

from ..concrete.nodes import Assign, Block, Forall, Stmt, Unless, Where, reads
from ..ir.nodes import If, Step, Steps
from ..notation.nodes import Access
from .across_diagonal import added_across
from .assigning import assigned
from .context import Context
from .foralls import lower_forall
from .resolve import restrict, settle, stepping_level
from .scope import Scope
from .where import lower_where


def lower_statement(context: Context, statement: Stmt, scope: Scope) -> list[Step]:
    """Return the steps of a statement at one place of the nest; empty if it would add only the fill value."""
    kept = restrict(context, scope, statement)
    if kept is not None and (access := _in_question(context, scope, kept)) is not None:
        return _decided(context, scope, kept, access)
    match kept:
        case None:
            return []
        case Assign():
            return settle(context, scope, kept, lambda inner: assigned(context, inner, kept))
        case Unless():
            return added_across(context, scope, kept)
        case Block(statements):
            return [Steps(tuple(steps)) for part in statements if (steps := context.lower(part, scope))]
        case Where():
            return lower_where(context, scope, kept)
        case Forall():
            return lower_forall(context, scope, kept)
        case _:
            raise TypeError(f"cannot lower {type(kept).__name__}")


def _in_question(context: Context, scope: Scope, statement: Stmt) -> Access | None:
    """Return an access that is stored here only if a variable is true, if the statement needs to know that.

    A loop that steps through the access does not need it: if nothing is stored, its range is empty.
    """
    if isinstance(statement, Where) and statement.local is not None:
        statement = statement.producer  # a sum counts as one statement, although it has two parts
    if not scope.doubtful or not isinstance(statement, Assign | Forall):
        return None
    if _writes_shared(context, statement) and context.shares in scope.doubtful:
        return context.shares
    for access in dict.fromkeys(reads(statement)):
        if access in scope.doubtful and not (isinstance(statement, Forall) and _steps(context, scope, statement.index, access)):
            return access
    return None


def _writes_shared(context: Context, statement: Stmt) -> bool:
    """Whether a statement stores a component at the position of an operand's component."""
    return context.shares is not None and isinstance(statement, Assign) and statement.target.tensor == context.result.tensor


def _steps(context: Context, scope: Scope, index: str, access: Access) -> bool:
    if context.graph.is_derived(index) and context.graph.space(index) == "position":
        return False
    return any(stepping_level(context, scope, access, name) is not None for name in (index, *context.graph.originals(index)))


def _decided(context: Context, scope: Scope, statement: Stmt, access: Access) -> list[Step]:
    """Return the statement in two versions: with the access stored, and with the access absent."""
    present = scope.doubtful[access]
    with context.names.block():
        then = context.lower(statement, scope.found(access).guarded())
    otherwise: list[Step] = []
    if not (_writes_shared(context, statement) and access == context.shares):  # otherwise the result has no position for it
        with context.names.block():
            otherwise = context.lower(statement, scope.without(frozenset({access})).guarded())
    if not then and not otherwise:
        return []
    return [If(present, Steps(tuple(then)), Steps(tuple(otherwise)) if otherwise else None)]
