"""Statements of concrete notation to steps of the loop IR: dispatch, assignments."""

from __future__ import annotations

from dataclasses import replace

from ..concrete.apart import apart
from ..concrete.nodes import Assign, Block, Forall, Stmt, Where, reads
from ..errors import ScheduleError
from ..ir.nodes import Cast, If, Step, Steps, Store, Value
from ..notation.nodes import Access
from ..workspaces.dense import DenseWorkspace
from ..workspaces.held import row_major
from ..workspaces.levels import Storage
from .accumulate import accumulated, at_place
from .context import Context, StoreFacts
from .foralls import lower_forall
from .privatize import PRIVATE, private_copies
from .recovery import known
from .resolve import restrict, settle, stepping_level
from .scope import ParallelLoop, Scope
from .values import nonempty, value_of
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
            return settle(context, scope, kept, lambda inner: _assign(context, inner, kept))
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
    if not (_writes_shared(context, statement) and access == context.shares):  # which has no place for it then
        with context.names.block():
            otherwise = context.lower(statement, scope.without(frozenset({access})).guarded())
    if not then and not otherwise:
        return []
    return [If(present, Steps(tuple(then)), Steps(tuple(otherwise)) if otherwise else None)]


def _assign(context: Context, scope: Scope, statement: Assign) -> list[Step]:
    target = statement.target
    kept = restrict(context, scope, statement)
    if not isinstance(kept, Assign):
        return []
    value = value_of(context, scope, kept.value)
    op = context.semiring.add_on(context.value_type) if statement.operator == "+=" else ""
    held = context.held.get(target.tensor)
    if held is not None:
        _note(context, scope, target.tensor, op, held.depth)
        position = row_major(held.stored.levels, known(context, scope))
        if scope.assembly is not None and scope.assembly.counting:
            return _if_nonempty(context, scope, kept, held.mark(position, context.names))
        race = _race(context, scope.parallel[context.outside[target.tensor] :], target, op)
        if race is not None and isinstance(held, DenseWorkspace):
            return [_kept_apart(context, scope, held.stored, position, value, op, race)]
        return _if_nonempty(context, scope, kept, held.update(position, value, op, context.names))
    if scope.assembly is not None:
        return _if_nonempty(context, scope, kept, scope.assembly.store(dict(scope.coordinates), value, op))
    _note(context, scope, target.tensor, op, scope.shared)
    stored = context.storage(target)
    if stored.type != context.value_type:
        value = Cast(value, stored.type)
    position = _result_position(context, scope, target)
    race = _race(context, scope.parallel, target, op)
    if race is None:
        return [Store(stored.values, position, value, op)]
    return [_kept_apart(context, scope, stored, position, value, op, race)]


def _kept_apart(context: Context, scope: Scope, stored: Storage, position: Value, value: Value, op: str, race: str) -> Step:
    """Return the store to a component that threads may reach at once, as a race strategy says.

    Raises:
        ScheduleError: on a GPU, whose threads combine sums of one block alone.
    """
    if race in PRIVATE and scope.parallel[0].unit != "cpu_thread":
        loop = next(loop for loop in scope.parallel if loop.race in PRIVATE)
        raise ScheduleError(
            f"parallelize({loop.index}, {loop.unit}, {race}): on a GPU the threads of one block or warp combine what they add to one"
            f" component of {stored.name}, and these add to several, or in several blocks; use atomics"
        )
    if race in PRIVATE and all(level.kind.full for level in stored.levels):
        copies = private_copies(context, stored)
        return Store(copies.array, copies.position(position), value, op)
    return Store(stored.values, position, value, op, race != "ignore_races")


def _if_nonempty(context: Context, scope: Scope, statement: Assign, steps: list[Step]) -> list[Step]:
    """Return the steps under the condition that the value has an entry, where that is not certain."""
    condition = nonempty(context, scope, statement)
    return [If(condition, Steps(tuple(steps)))] if condition is not None else steps


def _note(context: Context, scope: Scope, tensor: str, op: str, depth: int) -> None:
    """Remember that a store accumulates or is conditional, so that zeros must stand there before."""
    facts = context.facts.setdefault(tensor, StoreFacts())
    facts.needs_zero |= bool(op) or scope.guards > depth


def _result_position(context: Context, scope: Scope, target: Access) -> Value:
    stored = context.storage(target)
    if context.shares is None:
        return stored.dense_position(scope.place(target), known(context, scope))
    place = scope.place(context.shares)
    depth = max(depth for depth, level in enumerate(stored.levels, 1) if not level.kind.full)
    return stored.dense_position(replace(place, positions=place.positions[:depth], end=None), known(context, scope))


def _race(context: Context, parallel: tuple[ParallelLoop, ...], target: Access, op: str) -> str | None:
    """Return the strategy for a component at which the threads of parallel loops may meet, None where they cannot."""
    return next((loop.race or "atomics" for loop in parallel if op and _meets(context, loop, target)), None)


def _meets(context: Context, loop: ParallelLoop, target: Access) -> bool:
    """Whether two iterations of a parallel loop may write one component of a target."""
    return not apart(target.indices, loop.index, loop.around, context.graph, context.format_of)
