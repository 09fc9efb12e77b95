"""What a loop updates atomically and does not use otherwise, at places that stay the same in it: one element, or those of a row."""

from __future__ import annotations

from dataclasses import replace

from ..frozen import frozen
from ..ir.arithmetic import ZERO, add, integer, multiply, subtract
from ..ir.limits import LONGEST_ROW
from ..ir.nodes import (
    Allocate,
    ArrayRef,
    Binary,
    Call,
    Const,
    Dealt,
    Declare,
    Fill,
    For,
    Free,
    Grow,
    Load,
    Node,
    Parallel,
    Publish,
    SetVar,
    Store,
    Value,
    Var,
    While,
)
from ..ir.rewrite import mentions, nodes_of
from .segments import is_in_row

IDENTITY = {"+": 0, "*": 1}


@frozen
class AtomicTarget:
    """What a loop updates atomically: one element, or those of a row or a tile of it.

    Attributes:
        store: the update.
        row: a loop over the elements; None: there is one.
        place: the number of the element that the update changes, among those of the row.
        index: the element of the array at which an iteration of ``row`` arrives.
    """

    store: Store
    row: For | None
    place: Value
    index: Value

    @property
    def length(self) -> int:
        return 1 if self.row is None else _length(self.row) or 0

    def goes_along(self, index: Var) -> bool:
        """Whether this is the element of an index, or all of its row, so that no other index has the same elements."""
        along = {self.row.variable.name: self.row.high} if self.row is not None and self.row.low == ZERO else {}
        return is_in_row(self.index, index, along)


def atomic_targets(loop: For | While) -> list[AtomicTarget]:
    """Return the places that a loop updates atomically, that do not change in it, and whose arrays it does not use otherwise."""
    if any(isinstance(node.tag, Parallel | Dealt) for node in nodes_of(loop.body, For)):
        return []
    moved = {node.variable.name for node in nodes_of(loop, Declare, SetVar, For)}
    written = {node.array for node in nodes_of(loop.body, Store, Fill, Grow, Allocate)}
    found: dict[str, AtomicTarget] = {}
    spoilt: set[str] = set()

    def visit(node: Node, inner: tuple[For, ...]) -> None:
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
                inner = (*inner, node)
        for child in node.children:
            visit(child, inner)

    visit(loop.condition if isinstance(loop, While) else ZERO, ())
    visit(loop.body, ())
    return [target for array, target in found.items() if array not in spoilt]


def _target(store: Store, inner: tuple[For, ...], moved: set[str], written: set[str]) -> AtomicTarget | None:
    if not store.atomic or store.op not in IDENTITY or not _stays(store.index, written):
        return None
    along = [loop for loop in inner if mentions(store.index, {loop.variable.name})]
    if not along:
        return None if mentions(store.index, moved) else AtomicTarget(store, None, ZERO, store.index)
    if any(loop.step != 1 for loop in along) or mentions(store.index, moved - {loop.variable.name for loop in along}):
        return None
    found = _tile(store, along[0]) if len(along) == 1 else _block(store, along)
    return None if found is None or found.length > LONGEST_ROW or mentions(along[0].low, moved) else found


def _tile(store: Store, row: For) -> AtomicTarget | None:
    """Return the elements that one loop goes along."""
    return None if _length(row) is None else AtomicTarget(store, row, subtract(row.variable, row.low), store.index)


def _block(store: Store, along: list[For]) -> AtomicTarget | None:
    """Return the elements that several loops go along, as those of one loop: all of a row that has several modes."""
    row, place, total, inside = store.index, ZERO, 1, list[tuple[Var, int]]()
    for loop in reversed(along):
        match row, loop.low, loop.high:
            case Binary("+", Binary("*", around, Const(width), _), Var() as variable, _), Const(0), Const(extent):
                if variable != loop.variable or width != extent:
                    return None
                row, total = around, total * int(extent)
                inside.append((variable, int(extent)))
            case _:
                return None
    for variable, extent in reversed(inside):
        place = add(multiply(place, integer(extent)), variable)
    flat, last = integer(total), along[-1]
    return AtomicTarget(store, replace(last, high=flat), place, add(multiply(row, flat), last.variable))


def _length(row: For) -> int | None:
    """Return over how many elements of a row a loop runs, if that is a constant; else None."""
    match row.low, row.high:
        case Const(0), Const(extent):
            return int(extent)
        case Var() as low, Binary("+", Var() as begin, Const(extent)) if begin == low:
            return int(extent)
    return None


def _stays(index: Value, written: set[str]) -> bool:
    """Return whether an index reads nothing that the loop writes."""
    return not any(isinstance(node, Call) or node.array in written for node in nodes_of(index, Call, Load))
