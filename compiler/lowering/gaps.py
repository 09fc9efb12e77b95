"""Sets a result to zero only where a loop over stored rows leaves gaps.

``for p in B1: i = B1_crd[p]; A(i,:) = ...`` writes the rows that the outermost level of an operand stores. Setting all of ``A`` to zero
before would move a large result through memory once more, and with threads it would put its lines into the caches of other cores than
those that write them. So the iteration of a row also clears the rows up to the next stored one, and its own row if it adds to that. Rows
before the first and behind the last stored one are cleared before the loop. If few rows are stored, which is known when the kernel runs,
everything is cleared before the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import prod

from ..frozen import frozen
from ..ir.arithmetic import ONE, ZERO, add, compare, integer, load_index, multiply, subtract
from ..ir.nodes import (
    I64,
    ArrayRef,
    Binary,
    Const,
    Declare,
    Fill,
    For,
    If,
    Load,
    Parallel,
    Prefetch,
    SetVar,
    Step,
    Steps,
    Store,
    Value,
    Var,
)
from ..ir.rewrite import as_steps, leaves, nodes_of
from ..levels.level import Level, LevelArray
from ..notation.nodes import Access
from ..views import View
from ..workspaces.levels import Storage
from .context import Context

LEAST_BYTES = 64
"""The least bytes of a row, if its size is known: shorter rows are cleared faster all at once than one by one."""

ENOUGH = 2, 3
"""The least share of rows that must be stored: finding many gaps costs more than clearing all at once."""


@frozen
class _Rows:
    """A loop over the stored rows of a result.

    Attributes:
        loop: the loop over the positions of the outermost level of an operand.
        coordinates: the array of coordinates of that level.
        row: the coordinate in an iteration, which its first statement declares.
        whole: whether every element of the row is stored before anything is added to it.
    """

    loop: For
    coordinates: LevelArray
    row: Declare
    whole: bool


def zeros_in_gaps(context: Context, result: Access, steps: Sequence[Step]) -> list[Step] | None:
    """Return the steps with zeros for the elements of a dense result that they do not store; None if they do not visit rows in order."""
    stored = context.tensors.operand_storage(result)
    if context.on_gpu or context.shares is not None or isinstance(context.tensors.format_of(result), View) or not _is_wide(stored):
        return None
    return _begun(context, stored, steps)


def _begun(context: Context, stored: Storage, steps: Sequence[Step]) -> list[Step] | None:
    """Return the steps of a block with zeros added, if the first step that uses the result is its loop over rows. Blocks inside stay
    blocks, since they may hide names."""
    place = next((place for place, step in enumerate(steps) if _uses(step, stored.values)), None)
    if place is None:
        return None
    user = steps[place]
    if isinstance(user, Steps):
        inside = _begun(context, stored, user.statements)
        return None if inside is None else [*steps[:place], Steps(tuple(inside)), *steps[place + 1 :]]
    rows = _rows(context, user, stored)
    if rows is None:
        return None
    zero, variable = context.semiring.zero(stored.type), context.names.permanent
    until = Var(variable(f"{rows.row.variable.name}_until"), I64)
    ahead = _around(rows, stored, zero, variable, until)
    return [*steps[:place], *ahead, _cleared(rows, stored, zero, variable, until), *steps[place + 1 :]]


def _is_wide(stored: Storage) -> bool:
    """Whether the rows of the outermost level are long enough to be examined one by one."""
    sizes = [level.extent for level in stored.levels[1:]]
    known = [int(size.value) for size in sizes if isinstance(size, Const)]
    return bool(sizes) and (len(known) < len(sizes) or prod(known) * stored.type.bytes >= LEAST_BYTES)


def _uses(step: Step, array: str) -> bool:
    return any(node.array == array for node in nodes_of(step, Load, Store, ArrayRef, Fill, Prefetch))


def _rows(context: Context, loop: Step, stored: Storage) -> _Rows | None:
    """Return a step as a loop over rows; None if it is not one, or uses the result outside the row of the iteration."""
    if not isinstance(loop, For) or not isinstance(loop.tag, Parallel | None):
        return None
    body = as_steps(loop.body).statements
    row = body[0] if body else None
    level = next((one for one in _roots(context) if _is_through(loop, row, one)), None)
    if level is None or not isinstance(row, Declare):
        return None
    uses = [node for node in nodes_of(loop, Load, Store, ArrayRef, Fill, Prefetch) if node.array == stored.values]
    if not all(_is_in_row(use, stored, row.variable) for use in uses):
        return None
    first = next(step for step in leaves(loop.body) if _uses(step, stored.values))
    return _Rows(loop, level.array("crd"), row, _stores_all(first, stored))


def _roots(context: Context) -> Iterator[Level]:
    """Yield the outermost levels of operands with unique coordinates in order, without holes."""
    for access in context.tensors.keys:
        level = context.tensors.operand_storage(access).levels[:1]
        if level and level[0].unique and level[0].kind.has_segments and level[0].kind.merges and not level[0].kind.relative:
            yield level[0]


def _is_through(loop: For, row: Step | None, level: Level) -> bool:
    """Whether a loop runs through all positions of an outermost level, and declares the coordinate first."""
    pos, crd = level.array("pos"), level.array("crd")
    bounds = load_index(pos.name, ZERO, pos.type), load_index(pos.name, ONE, pos.type)
    declared = isinstance(row, Declare) and row.value == load_index(crd.name, loop.variable, crd.type)
    return declared and bounds == (loop.low, loop.high) and loop.step == 1


def _is_in_row(use: object, stored: Storage, row: Var) -> bool:
    """Whether a load or a store that is not atomic accesses an element of a row."""
    if not isinstance(use, Load | Store) or (isinstance(use, Store) and (use.atomic or use.carry is not None)):
        return False
    return _coordinates(use.index, stored)[:1] == [row]


def _coordinates(index: Value, stored: Storage) -> list[Value]:
    """Return the coordinates of a position, outermost first; empty if they cannot be found."""
    inner: list[Value] = []
    for level in reversed(stored.levels[1:]):
        match index:
            case Binary("+", Binary("*", outer, extent), last) if extent == level.extent:
                inner.append(last)
                index = outer
            case _:
                return []
    return [index, *reversed(inner)]


def _stores_all(step: Step, stored: Storage) -> bool:
    """Whether a step is a nest of loops that stores every element of a row."""
    ends: dict[Value, Value] = {}
    while isinstance(step, For) and step.low == ZERO and step.step == 1 and len(inside := leaves(step.body)) == 1:
        ends[step.variable] = step.high
        step = inside[0]
    if not isinstance(step, Store) or step.op:
        return False
    along = _coordinates(step.index, stored)[1:]
    extents = [level.extent for level in stored.levels[1:]]
    return len(set(along)) == len(along) == len(ends) and [ends.get(variable) for variable in along] == extents


def _width(stored: Storage) -> Value:
    width: Value = ONE
    for level in stored.levels[1:]:
        width = multiply(width, level.extent)
    return width


def _around(rows: _Rows, stored: Storage, zero: Const, name: Callable[[str], str], until: Var) -> list[Step]:
    """Return the steps that set to zero the rows before the first stored one and behind the last one; all rows if few are stored.

    Iterations up to position ``until`` must clear the rows behind their own.
    """
    loop, extent, width = rows.loop, stored.levels[0].extent, _width(stored)
    first, behind = (Var(name(f"{rows.row.variable.name}_{what}"), I64) for what in ("first", "behind"))

    def coordinate(position: Value) -> Value:
        return load_index(rows.coordinates.name, position, rows.coordinates.type)

    last, count = subtract(loop.high, ONE), subtract(loop.high, loop.low)
    ends = Steps((SetVar(until, loop.high), SetVar(first, coordinate(loop.low)), SetVar(behind, add(coordinate(last), ONE))))
    enough = compare("<=", multiply(integer(ENOUGH[0]), extent), multiply(integer(ENOUGH[1]), count))
    bounds = (ZERO, multiply(first, width)), (multiply(behind, width), multiply(extent, width))
    declared: list[Step] = [Declare(until, loop.low), Declare(first, extent), Declare(behind, extent)]
    declared.append(If(compare("<", loop.low, loop.high), If(enough, ends)))
    if loop.tag is None:
        return [*declared, *(Fill(stored.values, low, high, zero) for low, high in bounds)]
    place = Var(name("place"), I64)
    store = Steps((Store(stored.values, place, zero),))
    return [*declared, *(For(place, low, high, store, Parallel("static")) for low, high in bounds)]


def _cleared(rows: _Rows, stored: Storage, zero: Const, name: Callable[[str], str], until: Var) -> For:
    """Return the loop in which every iteration sets the rows up to the next stored one to zero, and its own row if it adds to that."""
    loop, row, width = rows.loop, rows.row.variable, _width(stored)
    after, following = Var(name(f"{row.name}_next"), I64), add(loop.variable, ONE)
    coordinate = load_index(rows.coordinates.name, following, rows.coordinates.type)
    low = add(row, ONE) if rows.whole else row
    found: Step = If(compare("<", following, until), SetVar(after, coordinate))
    if not rows.whole:
        found = If(compare("<", loop.variable, until), Steps((SetVar(after, add(row, ONE)), found)))
    zeros = If(compare("<", low, after), Fill(stored.values, multiply(low, width), multiply(after, width), zero))
    declared, *rest = as_steps(loop.body).statements
    return replace(loop, body=Steps((declared, Declare(after, low), found, zeros, *rest)))
