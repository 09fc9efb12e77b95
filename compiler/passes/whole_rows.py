"""Rows of a dense result that are entirely in one tile of positions are stored, and not added to zeros.

If threads have tiles of equally many positions, a row of the result may belong to two tiles, so that the whole result is set to zero
first and every row is added. But only the first and the last row of a tile can be shared; those between belong to the tile
alone (see ``segments``). They are stored once, including empty ones, and zeros are written before only where tiles meet. So most of
the result is neither filled before nor read back, and its stores may bypass the caches (``streams``). The first and the last row are
stored too where they turn out not to be cut: no vectors are added in place then, so that those of all rows may overlap (``overlaps``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..frozen import frozen
from ..ir.nodes import (
    BOOL,
    I64,
    ArrayRef,
    Binary,
    Const,
    Declare,
    Fill,
    For,
    Function,
    If,
    Load,
    Node,
    Parallel,
    Prefetch,
    SetVar,
    Step,
    Steps,
    Store,
    Value,
    Var,
)
from ..ir.rewrite import block, leaves, nodes_of, substitute
from .folding import simplify_expression
from .manager import Setting

_ONE = Const(1, I64)


def store_whole_rows(function: Function, setting: Setting) -> Function:
    """Return a kernel in which rows of only one tile are stored."""
    made = leaves(function.body)
    for at, zeros in enumerate(made):
        array = _zeroed(zeros)
        following = next((place for place in range(at + 1, len(made)) if array and _uses(made[place], array)), None)
        if array is None or following is None:
            continue
        tiles = _tiles(made[following], array)
        ahead = made[at + 1 : following]
        if tiles is not None and isinstance(zeros, For) and all(isinstance(step, Declare) for step in ahead):
            made[at : following + 1] = [*ahead, _zeros_between(zeros, tiles, setting.fresh), tiles.stored()]
            return replace(function, body=Steps(tuple(made)))
    return function


def _uses(node: Node, array: str) -> int:
    return sum(inner.array == array for inner in nodes_of(node, Load, Store, ArrayRef, Fill, Prefetch))


def _zeroed(statement: Step) -> str | None:
    """Return the array of which a loop sets all elements to zero; None for other steps."""
    match statement:
        case For(variable, Const(0), _, body, step=1):
            match leaves(body):
                case [Store(array, index, Const(0.0), "", False)] if index == variable:
                    return array
    return None


@frozen
class _Tiles:
    """A parallel loop over tiles, each of which runs through its rows in three loops.

    Attributes:
        loop: the parallel loop.
        ahead: its declarations before the loops over rows.
        ends: the loops over the first and the last row.
        whole: the loop over rows of which no other tile has a part.
        kept: the steps of that loop for a row, without the update.
        update: the step that adds a row to the result: a loop over its elements, or the store of its only element.
        width: the number of elements of a row.
    """

    loop: For
    ahead: tuple[Declare, ...]
    ends: tuple[For, For]
    whole: For
    kept: tuple[Step, ...]
    update: For | Store
    width: int

    def stored(self) -> For:
        """Return the parallel loop that stores whole rows."""
        body = _with(self.loop.body, self.whole, replace(self.whole, body=Steps((*self.kept, _stored(self.update)))))
        for end in self.ends:
            body = _with(body, end, _stored_unless_cut(end, _array(self.update)))
        return replace(self.loop, body=body)


def _tiles(statement: Step, array: str) -> _Tiles | None:
    """Return the tiles of a loop whose segments are the rows of an array; None for other loops, or if the array is used otherwise."""
    if not isinstance(statement, For) or not isinstance(statement.tag, Parallel) or statement.private or statement.finish:
        return None
    match leaves(statement.body):
        case [*ahead, For() as first, For() as whole, For() as last] if (first.high, last.low) == (whole.low, whole.high):
            declared = tuple(step for step in ahead if isinstance(step, Declare))
            found = _row(whole, array)
            if found is not None and len(declared) == len(ahead) and isinstance(whole.low, Var) and isinstance(whole.high, Var):
                return _Tiles(statement, declared, (first, last), whole, *found)
    return None


def _row(loop: For, array: str) -> tuple[tuple[Step, ...], For | Store, int] | None:
    """Return the steps of a loop for a row before it adds the row to an array, the step that adds it, and the number of its elements."""
    match leaves(loop.body):
        case [*declared, If(Binary("<"), then, None)] if all(isinstance(step, Declare) for step in declared):
            *steps, last = [_decided(step) for step in leaves(then)]
        case _:
            return None
    width = _width(last, loop.variable, array)
    alone = not any(_uses(step, array) for step in (*declared, *steps))
    return ((*declared, *steps), last, width) if isinstance(last, For | Store) and width is not None and alone else None


def _width(update: Step, row: Var, array: str) -> int | None:
    """Return how many elements a row of an array has to which a step adds what it does not read from there; None for other steps."""
    match update:
        case For(place, Const(0), Const(width), Store(name, index, value, "+", False), step=1):
            element: Value = Binary("+", Binary("*", row, Const(width, I64), I64), place, I64)
        case Store(name, index, value, "+", False):
            element, width = row, 1
        case _:
            return None
    return int(width) if name == array and index == element and not _uses(value, array) else None


def _stored_unless_cut(loop: For, array: str) -> For:
    """Return a loop over the first or the last row of a tile that stores the row if no other tile has a part of it: if the step that adds
    it is chosen by a condition, in place of one that locks."""
    match leaves(loop.body):
        case [*declared, If(Binary("<") as some, then, None)]:
            *steps, last = leaves(then)
        case _:
            return loop
    alone = not any(_uses(step, array) for step in (*declared, *steps))
    match last:
        case If(whole, (For() | Store()) as update, Step() as shared) if alone and _width(update, loop.variable, array) is not None:
            if any(store.atomic for store in nodes_of(shared, Store)):
                either = If(whole, _stored(update), shared)
                return replace(loop, body=Steps((*declared, If(some, Steps((*steps, either))))))
    return loop


def _stored(update: For | Store) -> For | Store:
    """Return a step that stores what another adds."""
    if isinstance(update, Store):
        return replace(update, op="")
    assert isinstance(update.body, Store)
    return replace(update, body=replace(update.body, op=""))


def _array(update: For | Store) -> str:
    """Return the array that a step adds to."""
    return next(store.array for store in nodes_of(update, Store))


def _decided(statement: Step) -> Step:
    """Return the branch of a condition that certainly holds; other statements are returned as they are."""
    if isinstance(statement, If) and simplify_expression(statement.condition) == Const(True, BOOL):
        return statement.then
    return statement


def _with(statement: Step, old: For, new: For) -> Step:
    if statement is old:
        return new
    if not isinstance(statement, Steps):
        return statement
    return Steps(tuple(_with(inner, old, new) for inner in statement.statements))


def _zeros_between(zeros: For, tiles: _Tiles, fresh: Callable[[str], str]) -> For:
    """Return the loop that sets to zero all elements between the whole rows of one tile and those of the next, and before the first."""
    loop, width = tiles.loop, Const(tiles.width, I64)
    tile = Var(fresh(loop.variable.name), I64)
    begin, end = (Var(fresh(f"{loop.variable.name}_{name}"), I64) for name in ("behind", "before"))
    low, high = loop.low, loop.high

    def reach(number: Value, bound: Value, into: Var) -> Steps:
        renamed: dict[str, Value] = {loop.variable.name: number}
        steps: list[Step] = []
        for step in tiles.ahead:
            variable = Var(fresh(step.variable.name), step.variable.type)
            steps.append(Declare(variable, substitute(step.value, renamed)))
            renamed[step.variable.name] = variable
        return Steps((*steps, SetVar(into, Binary("*", substitute(bound, renamed), width, I64))))

    before = Binary("-", tile, _ONE, I64)
    body = block([
        Declare(begin, Const(0, I64)),
        If(Binary("<", low, tile, BOOL), reach(before, tiles.whole.high, begin)),
        Declare(end, zeros.high),
        If(Binary("<", tile, high, BOOL), reach(tile, tiles.whole.low, end)),
        For(zeros.variable, begin, end, zeros.body),
    ])  # fmt: skip
    return For(tile, low, Binary("+", high, _ONE, I64), body, loop.tag, origin=f"where tiles of {loop.variable.name} meet")
