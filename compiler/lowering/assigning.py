"""Assignments: where a value is stored, whether threads may conflict there, and whether zeros must be there before."""

from __future__ import annotations

from dataclasses import replace

from ..concrete.apart import apart
from ..concrete.loop_tag import PRIVATE
from ..concrete.nodes import Assign
from ..errors import ScheduleError
from ..ir.nodes import Cast, If, Step, Steps, Store, Value
from ..notation.nodes import Access
from ..workspaces.dense import DenseWorkspace
from ..workspaces.held import row_major
from ..workspaces.levels import Storage
from ..workspaces.table import TableWorkspace
from .carries import carry_of
from .context import Context
from .device_copies import Coordinate, device_copies
from .privatize import NeedsCopies, private_copies
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
        race = race_at(context, scope.around(target.tensor), statement, op)
        if race is not None and isinstance(held, DenseWorkspace):
            return [*noted, *_kept_apart(context, scope, statement, held.stored, known(context, scope), position, value, op, race)]
        steps = held.update(position, value, op, context.names)
        if race is not None and isinstance(held, TableWorkspace):
            steps = [found for step in steps for found in _met(context, scope, statement, held.stored, step, race)]
        return [*noted, *_if_nonempty(context, scope, kept, steps)]
    if scope.assembly is not None:
        atomic = _atomically_assembled(context, scope, statement, op)
        return _if_nonempty(context, scope, kept, scope.assembly.store(dict(scope.coordinates), value, op, atomic=atomic))
    noted = _noted(scope, target.tensor, op, scope.shared)
    stored = context.tensors.storage(scope, target)
    if stored.type != context.value_type:
        value = Cast(value, stored.type)
    position = result_position(context, scope, target)
    race = race_at(context, scope.parallel, statement, op)
    if race is None:
        return [*noted, Store(stored.values, position, value, op)]
    meeting = tuple(loop for loop in scope.parallel if _meets(context, loop, statement))
    carry = carry_of(context, scope, stored, meeting) if meeting[0].member is not None else None
    if carry is not None:
        return [*noted, Store(stored.values, position, value, op, atomic=True, carry=carry)]
    return [*noted, *_kept_apart(context, scope, statement, stored, known(context, scope), position, value, op, race)]


def _kept_apart(
    context: Context, scope: Scope, write: Assign, stored: Storage, coordinate: Coordinate, position: Value, value: Value, op: str,
    race: str,
) -> list[Step]:  # fmt: skip
    """Return the store to a component that several threads may write at once, by the race strategy, and what it asks for."""
    if scope.parallel[0].member is not None:
        return _kept_apart_on_gpu(context, scope, write, stored, coordinate, position, value, op)
    if race in PRIVATE and all(level.kind.full for level in stored.levels):
        copies = private_copies(context, scope, stored)
        return [NeedsCopies(copies), Store(copies.array, copies.position(position), value, op)]
    return [Store(stored.values, position, value, op, race != "ignore_races")]


def _atomically_assembled(context: Context, scope: Scope, write: Assign, op: str) -> bool:
    """Whether the store to a component of an assembled result is atomic. Raises ``ScheduleError`` if members of a GPU need copies of it."""
    meeting = [loop for loop in scope.parallel if op and loop.member is not None and _meets(context, loop, write)]
    for loop in meeting:
        if loop.race in PRIVATE:
            raise _without_copies(loop, write.target.tensor)
    return any(loop.race != "ignore_races" for loop in meeting)


def _without_copies(loop: ParallelLoop, tensor: str) -> ScheduleError:
    return ScheduleError(
        f"parallelize({loop.index}, {loop.unit}, {loop.race}): on a GPU several threads add to components of {tensor}, which is not dense,"
        " so that they have no copies of it; use atomics"
    )


def _kept_apart_on_gpu(
    context: Context, scope: Scope, write: Assign, stored: Storage, coordinate: Coordinate, position: Value, value: Value, op: str
) -> list[Step]:
    """Return the store to a component, or to a copy of it for the innermost loop that has copies: atomic where loops inside of that one
    meet in the copy.

    Raises:
        ScheduleError: the tensor has no copies, as it is not dense.
    """
    meeting = [loop for loop in scope.around(write.target.tensor) if _meets(context, loop, write)]
    place = max((place for place, loop in enumerate(meeting) if loop.race in PRIVATE), default=None)
    if place is None:
        return [Store(stored.values, position, value, op, any(loop.race != "ignore_races" for loop in meeting))]
    loop = meeting[place]
    if not all(level.kind.full for level in stored.levels):
        raise _without_copies(loop, stored.name)
    copies = device_copies(context, loop, stored, write, added)
    atomic = any(inner.race != "ignore_races" for inner in meeting[place + 1 :])
    return [copies, Store(copies.array, copies.position(coordinate), value, op, atomic)]


def added(context: Context, scope: Scope, write: Assign, stored: Storage, coordinate: Coordinate, value: Value) -> list[Step]:
    """Return the steps that add a value to a component of a dense tensor at a place of the nest."""
    op, position = context.semiring.add_on(stored.type), row_major(stored.levels, coordinate)
    race = race_at(context, scope.around(write.target.tensor), write, op)
    if race is None:
        return [Store(stored.values, position, value, op)]
    return _kept_apart(context, scope, write, stored, coordinate, position, value, op, race)


def _met(context: Context, scope: Scope, write: Assign, stored: Storage, step: Step, race: str) -> list[Step]:
    """Return a step in which several threads may write one slot of a table, made atomic if necessary."""
    if not isinstance(step, Store):
        return [step]
    return _kept_apart(context, scope, write, stored, known(context, scope), step.index, step.value, step.op, race)


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


def race_at(context: Context, parallel: tuple[ParallelLoop, ...], write: Assign, op: str) -> str | None:
    """Return the race strategy for a component that several iterations of parallel loops may write; None if only one does."""
    return next((loop.race or "atomics" for loop in parallel if op and _meets(context, loop, write)), None)


def _meets(context: Context, loop: ParallelLoop, write: Assign) -> bool:
    """Whether two iterations of a parallel loop, in different shares, may write the same component."""
    return loop.part != "own" and not apart(write, loop.index, loop.outside.loops, context.graph, context.tensors.format_of)
