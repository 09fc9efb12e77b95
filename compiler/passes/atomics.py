"""Moves atomic updates out of loops in which their target does not change.

``for p: atomic y[i] += ...`` locks one element for every p. Where nothing else in the loop touches ``y``, the sum is made in a
variable of the thread, or in a small array for the elements of a row, and added atomically once after the loop. Where threads have
tiles of equally many positions, as in ``for p in max(pos[i], low) .. min(pos[i + 1], high)``, no other thread adds to the row of a segment
that lies inside its tile, so that no lock is needed, however long the row is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ..frozen import frozen
from ..ir.arithmetic import ZERO, integer, subtract
from ..ir.nodes import (
    BOOL,
    I64,
    Allocate,
    Binary,
    Const,
    Dealt,
    Declare,
    For,
    Function,
    If,
    Load,
    Node,
    Parallel,
    SetVar,
    Step,
    Steps,
    Store,
    Type,
    Value,
    Var,
    Vector,
    While,
)
from ..ir.rewrite import array_types, as_steps, block, nodes_of, substitute, transform
from .atomic_targets import IDENTITY, AtomicTarget, atomic_targets
from .manager import Setting
from .segments import is_in_row
from .tiles import Tiles, inside_tile, tiles_of

LONGEST_COPY = 300
"""Nodes of a loop's body up to which the loop is copied, so that it has a form with locks and one without."""


def gather_atomics(function: Function, setting: Setting) -> Function:
    """Return a kernel in which outermost loops that only update a place atomically do so once, after the loop."""
    if not any(node.atomic for node in nodes_of(function.body, Store)):
        return function
    types = {name: Type(kind) for name, kind in array_types(function).items()}
    fresh = setting.fresh

    def visit(statement: Step, tiles: Tiles) -> Step:
        if isinstance(statement, For) and isinstance(statement.tag, Parallel):
            tiles = tiles_of(statement)
        elif isinstance(statement, For) and not isinstance(statement.tag, Dealt) and (found := atomic_targets(statement)):
            return _gathered(statement, found, tiles, types, fresh)
        elif isinstance(statement, While) and (found := atomic_targets(statement)):
            return _gathered_while(statement, found, types, fresh)
        children = tuple(visit(child, tiles) if isinstance(child, Step) else child for child in statement.children)
        made: Step = statement.rebuild(children) if children else statement  # type: ignore[assignment]  # statements stay statements
        alone = _alone(statement, tiles, types, fresh) if isinstance(statement, For) else None
        return made if alone is None or not isinstance(made, For) else alone.beside(made)

    return replace(function, body=as_steps(visit(function.body, {})))


@frozen
class _Detour:
    """The steps before the loop, in place of the update, and after the loop."""

    before: list[Step]
    update: Step
    after: list[Step]


def _gathered(loop: For, found: list[AtomicTarget], tiles: Tiles, types: dict[str, Type], fresh: Callable[[str], str]) -> Step:
    low, high = (Var(fresh(f"{loop.variable.name}_{end}"), I64) for end in ("from", "to"))
    owned = inside_tile(loop, tiles, types)
    detours = {
        target.store: _detour(target, owned[1] if owned and target.goes_along(owned[0]) else None, types[target.store.array], fresh)
        for target in found
    }
    inside = replace(loop, low=low, high=high, body=_replaced(loop.body, {store: detour.update for store, detour in detours.items()}))
    before = [statement for detour in detours.values() for statement in detour.before]
    after = [statement for detour in detours.values() for statement in detour.after]
    some = If(Binary("<", low, high, BOOL), block([*before, inside, *after]))
    return Steps((Declare(low, loop.low), Declare(high, loop.high), some))


@frozen
class _Alone:
    """A loop through a segment that needs no locks if no other tile has a part of the segment.

    Attributes:
        loop: the loop.
        low, high: variables for its ends.
        condition: that no other tile has a part of the segment.
    """

    loop: For
    low: Var
    high: Var
    condition: Value

    def beside(self, locked: For) -> Step:
        """Return the loop without locks where that condition holds, and else the other, which has them."""
        alone, shared = (replace(loop, low=self.low, high=self.high) for loop in (self.loop, locked))
        return Steps((Declare(self.low, self.loop.low), Declare(self.high, self.loop.high), _unlocked(self.condition, alone, shared)))


def _alone(loop: For, tiles: Tiles, types: Mapping[str, Type], fresh: Callable[[str], str]) -> _Alone | None:
    """Return a loop that needs no locks if its segment lies inside its tile; None if it has no locks, updates more than the row of the
    segment, or is too long to be copied. This serves rows that are too long to be gathered."""
    low, high = (Var(fresh(f"{loop.variable.name}_{end}"), I64) for end in ("from", "to"))
    owned = inside_tile(loop, tiles, types)
    if owned is None or loop.body.size > LONGEST_COPY or not any(store.atomic for store in nodes_of(loop.body, Store)):
        return None
    within = any(isinstance(node.tag, Parallel | Dealt) for node in nodes_of(loop.body, For))
    return None if within or not _updates_row(loop.body, owned[0], {}) else _Alone(loop, low, high, owned[1])


def _updates_row(node: Node, row: Var, along: Mapping[str, Value]) -> bool:
    """Whether all atomic updates go to elements of the row of an index, so that no other index has the same; ``along`` are the loops from
    zero around them, with their ends."""
    if isinstance(node, For) and node.low == ZERO:
        along = {**along, node.variable.name: node.high}
    if isinstance(node, Store) and node.atomic and not is_in_row(node.index, row, along):
        return False
    return all(_updates_row(child, row, along) for child in node.children)


def _gathered_while(loop: While, found: list[AtomicTarget], types: dict[str, Type], fresh: Callable[[str], str]) -> Step:
    detours = {target.store: _detour(target, None, types[target.store.array], fresh) for target in found}
    inside = replace(loop, body=_replaced(loop.body, {store: detour.update for store, detour in detours.items()}))
    before = [statement for detour in detours.values() for statement in detour.before]
    after = [statement for detour in detours.values() for statement in detour.after]
    return If(loop.condition, block([*before, inside, *after]))


def _detour(target: AtomicTarget, owned: Value | None, kind: Type, fresh: Callable[[str], str]) -> _Detour:
    """Sum in a variable, or for a row in an array. The array is copied before it is added, so that it can be in registers itself.

    Args:
        owned: the condition that no other thread updates the target.
    """
    store, row, place = target.store, target.row, target.place
    neutral = Const(IDENTITY[store.op], kind)
    if row is None:
        total = Var(fresh(f"{store.array}_sum"), kind)
        added = replace(store, value=total)
        return _Detour([Declare(total, neutral)], SetVar(total, store.value, store.op), [_unlocked(owned, added, added)])
    along, length, update = subtract(row.variable, row.low), integer(target.length), replace(store, index=target.index)
    sums, copied = fresh(f"{store.array}_sums"), fresh(f"{store.array}_copied")
    begin = replace(row, body=Store(sums, along, neutral), tag=Vector())
    made = [Allocate(sums, kind, length, "registers"), begin, Allocate(copied, kind, length, "registers")]
    copy = replace(row, body=Store(copied, along, Load(sums, along, kind)), tag=Vector())
    direct = replace(row, body=replace(update, value=Load(sums, along, kind)), tag=Vector())
    added = _renamed(replace(row, body=replace(update, value=Load(copied, along, kind)), tag=None), fresh)
    return _Detour(made, Store(sums, place, store.value, store.op), [_unlocked(owned, direct, Steps((copy, added)))])


def _renamed(loop: For, fresh: Callable[[str], str]) -> For:
    """Return a loop whose variable has a name of its own: ``streams`` asks by name whether a variable goes on by whole vectors."""
    variable = Var(fresh(loop.variable.name), I64)
    return replace(loop, variable=variable, body=substitute(loop.body, {loop.variable.name: variable}))


def _unlocked(owned: Value | None, alone: Step, shared: Step) -> Step:
    """Return an update that is atomic only if another thread may update the same element."""
    if owned is None:
        return shared
    return If(owned, transform(alone, lambda node: replace(node, atomic=False) if isinstance(node, Store) else node), shared)


def _replaced(statement: Step, changes: dict[Store, Step]) -> Step:
    if isinstance(statement, Store):
        return changes.get(statement, statement)
    children = tuple(_replaced(child, changes) if isinstance(child, Step) else child for child in statement.children)
    return statement.rebuild(children) if children else statement  # type: ignore[return-value]
