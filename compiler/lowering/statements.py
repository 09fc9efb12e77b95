"""Statements of concrete notation to steps of the loop IR: dispatch, and the two versions if an operand may be missing."""

from __future__ import annotations

from ..concrete.nodes import Assign, Block, Forall, Stmt, Unless, Where, reads
from ..ir.nodes import If, Step, Steps
from ..notation.nodes import Access
from .accumulate import accumulated, at_place
from .across_diagonal import added_across
from .assigning import assigned
from .context import Context
from .foralls import lower_forall
from .resolve import restrict, settle, stepping_level
from .scope import Scope
from .where import lower_where


def lower_statement(context: Context, statement: Stmt, scope: Scope) -> list[Step]:
    """Return the steps of a statement at one place of the nest; nothing where all it adds is the fill value."""
    kept = restrict(context, scope, statement)
    if kept is not None and kept is not statement:
        kept = accumulated(context, kept, at_place(scope))  # chains that were none before: what stood beside them is gone
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
    """Return an access that is stored here or not as a variable says, where that must be known before the statement.

    A loop that steps through the access next can do without: where nothing is stored it steps through nothing.
    """
    if context.is_sum(statement):
        statement = statement.children[1]
    if not scope.doubtful or not isinstance(statement, Assign | Forall):
        return None
    if _writes_shared(context, statement) and context.shares in scope.doubtful:
        return context.shares
    for access in dict.fromkeys(reads(statement)):
        if access in scope.doubtful and not (isinstance(statement, Forall) and _steps(context, scope, statement.index, access)):
            return access
    return None


def _writes_shared(context: Context, statement: Stmt) -> bool:
    """Whether a statement stores a component where an operand stores its own."""
    return context.shares is not None and isinstance(statement, Assign) and statement.target.tensor == context.result.tensor


def _steps(context: Context, scope: Scope, index: str, access: Access) -> bool:
    if context.graph.is_derived(index) and context.graph.space(index) == "position":
        return False
    return any(stepping_level(context, scope, access, name) is not None for name in (index, *context.graph.originals(index)))


def _decided(context: Context, scope: Scope, statement: Stmt, access: Access) -> list[Step]:
    """Return the statement twice: where an access in question is stored, and where it is not."""
    present = scope.doubtful[access]
    with context.names.block():
        then = context.lower(statement, scope.found(access).guarded())
    otherwise: list[Step] = []
    if not (_writes_shared(context, statement) and access == context.shares):  # it has no place for it then
        with context.names.block():
            otherwise = context.lower(statement, scope.without(frozenset({access})).guarded())
    if not then and not otherwise:
        return []
    return [If(present, Steps(tuple(then)), Steps(tuple(otherwise)) if otherwise else None)]
