"""Atomic updates taken out of loops that do not move their target.

``for p: atomic y[i] += ...`` locks one element for every p. Where nothing else in the loop touches ``y``, the sum is made in a
variable of the thread, or in a small array for the elements of a row, and added atomically once after the loop. Where threads have
tiles of equally many positions, as in ``for p in max(pos[i], low) .. min(pos[i + 1], high)``, a segment that lies inside its tile is
nobody else's, and is added without a lock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from ..frozen import frozen
from ..ir.arithmetic import ZERO, integer, subtract
from ..ir.nodes import (
    BOOL,
    I64,
    Allocate,
    ArrayRef,
    Binary,
    Call,
    Cast,
    Const,
    Dealt,
    Declare,
    Fill,
    For,
    Free,
    Function,
    Grow,
    If,
    Load,
    Node,
    Parallel,
    Publish,
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
from ..ir.rewrite import array_types, as_steps, block, mentions, nodes_of, transform, walk
from .manager import Setting

IDENTITY = {"+": 0, "*": 1}
LONGEST_ROW = 256
"""Elements of a row up to which a thread keeps one beside the result."""


@frozen
class _Target:
    """What a loop updates atomically: one element, or those of a row or a tile of it, as many as ``row`` goes along."""

    store: Store
    row: For | None


def gather_atomics(function: Function, setting: Setting) -> Function:
    """Return a kernel in which outermost loops that only update a place atomically do so once."""
    if not any(node.atomic for node in nodes_of(function.body, Store)):
        return function
    types = {name: Type(kind) for name, kind in array_types(function).items()}
    fresh = setting.fresh

    def visit(statement: Step, tiles: frozenset[_Tile]) -> Step:
        if isinstance(statement, For) and isinstance(statement.tag, Parallel):
            tiles = _tiles(statement)
        elif isinstance(statement, For) and not isinstance(statement.tag, Dealt) and (found := _targets(statement)):
            return _gathered(statement, found, tiles, types, fresh)
        elif isinstance(statement, While) and (found := _targets(statement)):
            return _gathered_while(statement, found, types, fresh)
        children = tuple(visit(child, tiles) if isinstance(child, Step) else child for child in statement.children)
        return statement.rebuild(children) if children else statement  # type: ignore[return-value]  # statements stay statements

    return replace(function, body=as_steps(visit(function.body, frozenset())))


_Tile = tuple[str, str]
"""The variables that hold the begin and end of a tile of positions."""


def _tiles(loop: For) -> frozenset[_Tile]:
    """Return the tiles that the iterations of a parallel loop declare: ``low = number * size``, ``high = min(low + size, ...)``."""
    declared = {node.variable.name: node.value for node in nodes_of(loop.body, Declare)}
    counts = Counter(node.variable.name for node in walk(loop.body) if isinstance(node, Declare | SetVar | For))
    found = set()
    for high, value in declared.items():
        match value:
            case Binary("min", Binary("+", Var(low), Const() | Var() as size), _):
                begins = declared.get(low) == Binary("*", loop.variable, size, I64)
                if begins and counts[low] == counts[high] == 1 and not mentions(size, counts.keys() | {loop.variable.name}):
                    found.add((low, high))
    return frozenset(found)


def _targets(loop: For | While) -> list[_Target]:
    """Return the places that a loop updates atomically and does not move, of arrays that it does not touch otherwise."""
    if any(isinstance(node.tag, Parallel | Dealt) for node in nodes_of(loop.body, For)):
        return []
    moved = {node.variable.name for node in nodes_of(loop, Declare, SetVar, For)}
    written = {node.array for node in nodes_of(loop.body, Store, Fill, Grow, Allocate)}
    found: dict[str, _Target] = {}
    spoilt: set[str] = set()

    def visit(node: Node, inner: For | None) -> None:
        match node:
            case Store(array):
                target = _target(node, inner, moved, written)
                if target is None or array in found:
                    spoilt.add(array)
                else:
                    found[array] = target
            case Load(array) | ArrayRef(array) | Fill(array) | Grow(array) | Allocate(array) | Free(array) | Publish(_, array):
                spoilt.add(array)
            case For():
                inner = node
        for child in node.children:
            visit(child, inner)

    visit(loop.condition if isinstance(loop, While) else ZERO, None)
    visit(loop.body, None)
    return [target for array, target in found.items() if array not in spoilt]


def _target(store: Store, inner: For | None, moved: set[str], written: set[str]) -> _Target | None:
    if not store.atomic or store.op not in IDENTITY or not _stays(store.index, written):
        return None
    if not mentions(store.index, moved):
        return _Target(store, None)
    if inner is None or inner.step != 1 or mentions(store.index, moved - {inner.variable.name}):
        return None
    length = _length(inner)
    return _Target(store, inner) if length is not None and length <= LONGEST_ROW and not mentions(inner.low, moved) else None


def _length(row: For) -> int | None:
    """Return how many elements a loop goes along, where that is a constant: of a whole row, or of a tile of one."""
    match row.low, row.high:
        case Const(0), Const(extent):
            return int(extent)
        case Var() as low, Binary("+", Var() as begin, Const(extent)) if begin == low:
            return int(extent)
    return None


def _stays(index: Value, written: set[str]) -> bool:
    """Return whether an index reads nothing that the loop writes."""
    return not any(isinstance(node, Call) or (isinstance(node, Load) and node.array in written) for node in walk(index))


@frozen
class _Detour:
    """The steps before the loop, in place of the update, and after the loop."""

    before: list[Step]
    update: Step
    after: list[Step]


def _gathered(loop: For, found: list[_Target], tiles: frozenset[_Tile], types: dict[str, Type], fresh: Callable[[str], str]) -> Step:
    low, high = (Var(fresh(f"{loop.variable.name}_{end}"), I64) for end in ("from", "to"))
    owned = _inside_tile(loop, low, high, tiles)
    detours = {
        target.store: _detour(target, owned[1] if owned and _is_row(target, owned[0]) else None, types[target.store.array], fresh)
        for target in found
    }
    inside = replace(loop, low=low, high=high, body=_replaced(loop.body, {store: detour.update for store, detour in detours.items()}))
    before = [statement for detour in detours.values() for statement in detour.before]
    after = [statement for detour in detours.values() for statement in detour.after]
    some = If(Binary("<", low, high, BOOL), block([*before, inside, *after]))
    return Steps((Declare(low, loop.low), Declare(high, loop.high), some))


def _gathered_while(loop: While, found: list[_Target], types: dict[str, Type], fresh: Callable[[str], str]) -> Step:
    detours = {target.store: _detour(target, None, types[target.store.array], fresh) for target in found}
    inside = replace(loop, body=_replaced(loop.body, {store: detour.update for store, detour in detours.items()}))
    before = [statement for detour in detours.values() for statement in detour.before]
    after = [statement for detour in detours.values() for statement in detour.after]
    return If(loop.condition, block([*before, inside, *after]))


def _inside_tile(loop: For, low: Var, high: Var, tiles: frozenset[_Tile]) -> tuple[Var, Value] | None:
    """Return the index of the segment that a loop runs through, and the condition that no other tile has a part of it."""
    match loop.low, loop.high:
        case Binary("max", begin, Var(first)), Binary("min", end, Var(past)) if (first, past) in tiles:
            match _uncast(begin), _uncast(end):
                case Load(pos, Var() as row), Load(other, Binary("+", Var() as same, Const(1), _)) if pos == other and row == same:
                    return row, Binary("and", Binary("==", low, begin, BOOL), Binary("==", high, end, BOOL), BOOL)
    return None


def _uncast(expr: Value) -> Value:
    return expr.operand if isinstance(expr, Cast) else expr


def _is_row(target: _Target, index: Var) -> bool:
    """Return whether a target is the element of an index, or all of its row, so that no other index has the same elements."""
    if target.row is None:
        return target.store.index == index
    match target.store.index:
        case Binary("+", Binary("*", Var() as row, Const(width), _), Var() as place, _):
            return row == index and place == target.row.variable and isinstance(target.row.high, Const) and target.row.high.value == width
    return False


def _detour(target: _Target, owned: Value | None, kind: Type, fresh: Callable[[str], str]) -> _Detour:
    """Gather in a variable, or a row in an array; that is copied before it is added, so that it can live in registers itself.

    Args:
        owned: where it holds no other thread updates the target.
    """
    store, row = target.store, target.row
    neutral = Const(IDENTITY[store.op], kind)
    if row is None:
        total = Var(fresh(f"{store.array}_sum"), kind)
        added = replace(store, value=total)
        return _Detour([Declare(total, neutral)], SetVar(total, store.value, store.op), [_unlocked(owned, added, added)])
    place, length = subtract(row.variable, row.low), integer(_length(row) or 0)
    sums, copied = fresh(f"{store.array}_sums"), fresh(f"{store.array}_copied")
    begin = replace(row, body=Store(sums, place, neutral), tag=Vector())
    made = [Allocate(sums, kind, length, "registers"), begin, Allocate(copied, kind, length, "registers")]
    copy = replace(row, body=Store(copied, place, Load(sums, place, kind)), tag=Vector())
    direct = replace(row, body=replace(store, value=Load(sums, place, kind)), tag=Vector())
    add = replace(row, body=replace(store, value=Load(copied, place, kind)), tag=None)
    return _Detour(made, Store(sums, place, store.value, store.op), [_unlocked(owned, direct, Steps((copy, add)))])


def _unlocked(owned: Value | None, alone: Step, shared: Step) -> Step:
    """Return an update that is atomic only where another thread may meet it."""
    if owned is None:
        return shared
    return If(owned, transform(alone, lambda node: replace(node, atomic=False) if isinstance(node, Store) else node), shared)


def _replaced(statement: Step, changes: dict[Store, Step]) -> Step:
    if isinstance(statement, Store):
        return changes.get(statement, statement)
    children = tuple(_replaced(child, changes) if isinstance(child, Step) else child for child in statement.children)
    return statement.rebuild(children) if children else statement  # type: ignore[return-value]
