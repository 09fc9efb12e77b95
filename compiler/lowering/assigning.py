"""Assignments: where a value is stored, whether threads may conflict there, and whether zeros must be there before."""

from __future__ import annotations

from dataclasses import replace

from ..concrete.apart import apart
from ..concrete.nodes import Assign
from ..errors import ScheduleError
from ..ir.nodes import Carry, Cast, If, Step, Steps, Store, Value
from ..notation.nodes import Access
from ..workspaces.dense import DenseWorkspace
from ..workspaces.held import row_major
from ..workspaces.levels import Storage
from ..workspaces.table import TableWorkspace
from .carries import carry_of
from .context import Context
from .privatize import PRIVATE, NeedsCopies, private_copies
from .recovery import known
from .requests import NeedsZeros
from .resolve import restrict
from .scope import ParallelLoop, Scope
from .values import nonempty, value_of


def assigned(context: Context, scope: Scope, statement: Assign, value: Value | None = None) -> list[Step]:
    """Return the steps of an assignment; ``value`` replaces the value of its right side if that was computed otherwise."""
    target = statement.target
    kept = restrict(context, scope, statement)
    if not isinstance(kept, Assign):
        return []
    if value is None:
        value = value_of(context, scope, kept.value)
    op = context.semiring.add_on(context.value_type) if statement.operator == "+=" else ""
    held = scope.held(target.tensor)
    if held is not None:
        noted = _noted(scope, target.tensor, op, held.depth)
        position = row_major(held.stored.levels, known(context, scope))
        if scope.assembly is not None and scope.assembly.counting:
            return [*noted, *_if_nonempty(context, scope, kept, held.mark(position, context.names))]
        race = race_at(context, scope.around(target.tensor), target, op)
        if race is not None and isinstance(held, DenseWorkspace):
            return [*noted, *_kept_apart(context, scope, held.stored, position, value, op, race, None)]
        steps = held.update(position, value, op, context.names)
        if race is not None and isinstance(held, TableWorkspace):
            steps = [found for step in steps for found in _met(context, scope, held.stored, step, race)]
        return [*noted, *_if_nonempty(context, scope, kept, steps)]
    if scope.assembly is not None:
        return _if_nonempty(context, scope, kept, scope.assembly.store(dict(scope.coordinates), value, op))
    noted = _noted(scope, target.tensor, op, scope.shared)
    stored = context.tensors.storage(scope, target)
    if stored.type != context.value_type:
        value = Cast(value, stored.type)
    position = result_position(context, scope, target)
    race = race_at(context, scope.parallel, target, op)
    if race is None:
        return [*noted, Store(stored.values, position, value, op)]
    meeting = tuple(loop for loop in scope.parallel if _meets(context, loop, target))
    carry = carry_of(context, scope, stored, meeting) if meeting[0].member is not None else None
    return [*noted, *_kept_apart(context, scope, stored, position, value, op, race, carry)]


def _kept_apart(
    context: Context, scope: Scope, stored: Storage, position: Value, value: Value, op: str, race: str, carry: Carry | None
) -> list[Step]:
    """Return the store to a component that several threads may write at once, by the race strategy, and what it asks for.

    Raises:
        ScheduleError: on a GPU, if the sums are neither of one block or warp, nor of tiles of positions in order.
    """
    if carry is not None:
        return [Store(stored.values, position, value, op, atomic=True, carry=carry)]
    if race in PRIVATE and scope.parallel[0].member is not None:
        loop = next(loop for loop in scope.parallel if loop.race in PRIVATE)
        raise ScheduleError(
            f"parallelize({loop.index}, {loop.unit}, {race}): on a GPU the threads of one block or warp combine what they add to one"
            f" component of {stored.name}, or carry sums from tile to tile of positions in order; these add to several; use atomics"
        )
    if race in PRIVATE and all(level.kind.full for level in stored.levels):
        copies = private_copies(context, scope, stored)
        return [NeedsCopies(copies), Store(copies.array, copies.position(position), value, op)]
    return [Store(stored.values, position, value, op, race != "ignore_races")]


def _met(context: Context, scope: Scope, stored: Storage, step: Step, race: str) -> list[Step]:
    """Return a step in which several threads may write one slot of a table, made atomic if necessary."""
    return _kept_apart(context, scope, stored, step.index, step.value, step.op, race, None) if isinstance(step, Store) else [step]


def _if_nonempty(context: Context, scope: Scope, statement: Assign, steps: list[Step]) -> list[Step]:
    """Return the steps under the condition that the value has an entry, unless that is certain."""
    condition = nonempty(context, scope, statement)
    return [If(condition, Steps(tuple(steps)))] if condition is not None else steps


def _noted(scope: Scope, tensor: str, op: str, depth: int) -> list[Step]:
    """Return the request of a store that does not add if there are more than ``depth`` guards around it."""
    return [NeedsZeros(tensor)] if not op and scope.guards > depth else []


def result_position(context: Context, scope: Scope, target: Access) -> Value:
    """Return the position of a component of the result, which may be that of the operand whose pattern it shares."""
    stored = context.tensors.storage(scope, target)
    if context.shares is None:
        return stored.dense_position(scope.place(target), known(context, scope))
    place = scope.place(context.shares)
    depth = max(depth for depth, level in enumerate(stored.levels, 1) if not level.kind.full)
    return stored.dense_position(replace(place, positions=place.positions[:depth], end=None), known(context, scope))


def race_at(context: Context, parallel: tuple[ParallelLoop, ...], target: Access, op: str) -> str | None:
    """Return the race strategy for a component that several iterations of parallel loops may write; None if only one does."""
    return next((loop.race or "atomics" for loop in parallel if op and _meets(context, loop, target)), None)


def _meets(context: Context, loop: ParallelLoop, target: Access) -> bool:
    """Whether two iterations of a parallel loop, in different shares, may write the same component of a target."""
    return loop.part != "own" and not apart(target.indices, loop.index, loop.outside.loops, context.graph, context.tensors.format_of)
