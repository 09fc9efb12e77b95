"""Atomic updates taken out of loops that do not move their target.

``for p: atomic y[i] += ...`` locks one element for every p. Where nothing else in the loop touches ``y``, the sum is made in a
variable of the thread, or in a small array for the elements of a row, and added atomically once after the loop.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from .nodes import (
    BOOL,
    I64,
    Allocate,
    ArrayRef,
    Binary,
    Block,
    Call,
    Const,
    Declare,
    Expr,
    Fill,
    For,
    Free,
    Grow,
    If,
    Load,
    Node,
    Parallel,
    Publish,
    SetVar,
    Stmt,
    Store,
    Type,
    Var,
    Vector,
)
from .rewrite import block, mentions, walk

IDENTITY = {"+": 0, "*": 1}
LONGEST_ROW = 256
"""Elements of a row up to which a thread keeps one beside the result."""


@dataclass(frozen=True)
class _Target:
    """What a loop updates atomically: one element, or those of a row, ``store.index`` for ``row.variable`` in 0 .. constant."""

    store: Store
    row: For | None


def gather_atomics(body: Block, types: dict[str, Type], fresh: Callable[[str], str]) -> Block:
    """Return statements in which outermost loops that only update a place atomically do so once.

    Args:
        types: the element type of every array.
        fresh: gives a name that nothing else has.
    """

    def visit(statement: Stmt) -> Stmt:
        if isinstance(statement, For) and not isinstance(statement.tag, Parallel):
            found = _targets(statement)
            if found:
                return _gathered(statement, found, types, fresh)
        children = tuple(visit(child) if isinstance(child, Stmt) else child for child in statement.children)
        return statement.rebuild(children) if children else statement  # type: ignore[return-value]  # statements stay statements

    if not any(isinstance(node, Store) and node.atomic for node in walk(body)):
        return body
    made = visit(body)
    return made if isinstance(made, Block) else Block((made,))


def _targets(loop: For) -> list[_Target]:
    """Return the places that a loop updates atomically and does not move, of arrays that it does not touch otherwise."""
    if any(isinstance(node, For) and isinstance(node.tag, Parallel) for node in walk(loop.body)):
        return []
    moved = {loop.variable.name, *(node.variable.name for node in walk(loop.body) if isinstance(node, Declare | SetVar | For))}
    written = {node.array for node in walk(loop.body) if isinstance(node, Store | Fill | Grow | Allocate)}
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

    visit(loop.body, None)
    return [target for array, target in found.items() if array not in spoilt]


def _target(store: Store, inner: For | None, moved: set[str], written: set[str]) -> _Target | None:
    if not store.atomic or store.op not in IDENTITY or not _stays(store.index, written):
        return None
    if not mentions(store.index, moved):
        return _Target(store, None)
    if inner is None or inner.step != 1 or mentions(store.index, moved - {inner.variable.name}):
        return None
    match inner.low, inner.high:
        case Const(0), Const(extent) if extent <= LONGEST_ROW:
            return _Target(store, inner)
    return None


def _stays(index: Expr, written: set[str]) -> bool:
    """Return whether an index reads nothing that the loop writes."""
    return not any(isinstance(node, Call) or (isinstance(node, Load) and node.array in written) for node in walk(index))


@dataclass(frozen=True)
class _Detour:
    """What stands before the loop, in place of the update, and after the loop."""

    before: list[Stmt]
    update: Stmt
    after: list[Stmt]


def _gathered(loop: For, found: list[_Target], types: dict[str, Type], fresh: Callable[[str], str]) -> Stmt:
    detours = {target.store: _detour(target, types[target.store.array], fresh) for target in found}
    low, high = (Var(fresh(f"{loop.variable.name}_{end}"), I64) for end in ("from", "to"))
    inside = replace(loop, low=low, high=high, body=_replaced(loop.body, {store: detour.update for store, detour in detours.items()}))
    before = [statement for detour in detours.values() for statement in detour.before]
    after = [statement for detour in detours.values() for statement in detour.after]
    some = If(Binary("<", low, high, BOOL), block([*before, inside, *after]))
    return Block((Declare(low, loop.low), Declare(high, loop.high), some))


def _detour(target: _Target, kind: Type, fresh: Callable[[str], str]) -> _Detour:
    """Gather in a variable, or a row in an array; that is copied before it is added, so that it can live in registers itself."""
    store, row = target.store, target.row
    neutral = Const(IDENTITY[store.op], kind)
    if row is None:
        total = Var(fresh(f"{store.array}_sum"), kind)
        return _Detour([Declare(total, neutral)], SetVar(total, store.value, store.op), [replace(store, value=total)])
    place, sums, copied = row.variable, fresh(f"{store.array}_sums"), fresh(f"{store.array}_copied")
    made: list[Stmt] = [Allocate(array, kind, row.high, "registers") for array in (sums, copied)]
    begin = replace(row, body=Store(sums, place, neutral), tag=Vector())
    copy = replace(row, body=Store(copied, place, Load(sums, place, kind)), tag=Vector())
    add = replace(row, body=replace(store, value=Load(copied, place, kind)), tag=None)
    return _Detour([*made, begin], Store(sums, place, store.value, store.op), [copy, add])


def _replaced(statement: Stmt, changes: dict[Store, Stmt]) -> Stmt:
    if isinstance(statement, Store):
        return changes.get(statement, statement)
    children = tuple(_replaced(child, changes) if isinstance(child, Stmt) else child for child in statement.children)
    return statement.rebuild(children) if children else statement  # type: ignore[return-value]
