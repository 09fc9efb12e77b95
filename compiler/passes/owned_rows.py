"""Rows that are entirely in the share of one GPU thread are stored, and not added atomically, since no other thread adds to them.

Threads with equal shares ``p_low .. p_high`` of stored positions go from row to row, each up to ``min(pos[i + 1], p_high)``, and add the
sum of a row atomically, since other threads may have the rest of the row. They do not if ``p_low <= pos[i]`` and
``pos[i + 1] <= p_high``. If the result was filled with zeros, it is then not read either: the sum is stored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from ..frozen import frozen
from ..ir.arithmetic import compare, every
from ..ir.nodes import (
    I64,
    Binary,
    Cast,
    Const,
    Dealt,
    Declare,
    Fill,
    For,
    Function,
    If,
    Load,
    Node,
    SetVar,
    Step,
    Store,
    Value,
    Var,
    While,
)
from ..ir.rewrite import as_steps, nodes_of, transform, walk
from .manager import Setting


@frozen
class _Tile:
    """A share of all stored positions: the variables of its begin and end, and the variables of the loops that number it."""

    low: str
    high: str
    numbers: frozenset[str]


def store_owned_rows(function: Function, setting: Setting) -> Function:
    """Return a function whose threads store rows that are entirely theirs, and add to others atomically."""
    if not any(store.atomic for store in nodes_of(function.body, Store)):
        return function
    counts = Counter(node.variable.name for node in walk(function.body) if isinstance(node, Declare | SetVar | For))
    declared = {node.variable.name: node.value for node in nodes_of(function.body, Declare) if counts[node.variable.name] == 1}
    writers = Counter(store.array for store in nodes_of(function.body, Store))
    top = [step.array for step in as_steps(function.body).statements if isinstance(step, Fill) and _is_zero(step.value)]
    fresh = frozenset(array for array in top if writers[array] == 1)

    def visit(step: Step, around: tuple[For, ...]) -> Step:
        if isinstance(step, For):
            around = (*around, step)
        elif isinstance(step, While) and (found := _row(step, _tiles(around, declared))) is not None:
            return replace(step, body=_stored(step.body, *found, around, declared, fresh))
        children = tuple(visit(child, around) if isinstance(child, Step) else child for child in step.children)
        return step.rebuild(children) if children else step  # type: ignore[return-value]  # statements stay statements

    return replace(function, body=as_steps(visit(function.body, ())))


def _is_zero(value: Value) -> bool:
    return isinstance(value, Const) and value.value == 0


def _tiles(around: tuple[For, ...], declared: Mapping[str, Value]) -> list[_Tile]:
    """Return the tiles of all positions that loops define, and the tiles of these tiles."""
    found: list[_Tile] = []
    numbers = {loop.variable.name for loop in around if isinstance(loop.tag, Dealt)}
    ends = [(name, value) for loop in around[:1] for name, value in _declared_in(loop, declared) if isinstance(value, Binary)]
    for high, value in ends:
        match value:
            case Binary("min", Binary("+", Var(low), Const() as size), _) if low in declared:
                outer, number = _number(declared[low], size, found)
                if number in numbers:
                    found.append(_Tile(low, high, outer | {number}))
    return found


def _declared_in(loop: For, declared: Mapping[str, Value]) -> list[tuple[str, Value]]:
    """Return the declarations in a loop, in order."""
    names = [node.variable.name for node in nodes_of(loop.body, Declare)]
    return [(name, declared[name]) for name in names if name in declared]


def _number(low: Value, size: Const, tiles: list[_Tile]) -> tuple[frozenset[str], str]:
    """Return the outer tile and the number of the tile that begins at ``low``, by their variables; an empty name if there is none."""
    match low:
        case Binary("*", Var(number), factor) if factor == size:
            return frozenset(), number
        case Binary("+", Var(begin), Binary("*", Var(number), factor)) if factor == size:
            outer = next((tile for tile in tiles if tile.low == begin), None)
            return (outer.numbers, number) if outer is not None else (frozenset(), "")
    return frozenset(), ""


def _row(loop: While, tiles: list[_Tile]) -> tuple[Var, _Tile, Value] | None:
    """Return the row of an iteration, the tile that limits it, and the condition that the whole row is in the tile."""
    for step in nodes_of(loop.body, Declare):
        match step:
            case Declare(_, Binary("min", end, Var(past))) if (tile := next((each for each in tiles if each.high == past), None)):
                match end.operand if isinstance(end, Cast) else end:
                    case Load(_, Binary("+", Var() as row, Const(1))) as load:
                        begin = transform(end, lambda node, load=load, row=row: replace(load, index=row) if node == load else node)
                        return row, tile, every([compare("<=", Var(tile.low, I64), begin), compare("<=", end, Var(past, I64))])
    return None


def _stored(
    body: Step, row: Var, tile: _Tile, owned: Value, around: tuple[For, ...], declared: Mapping[str, Value], fresh: frozenset[str]
) -> Step:
    """Return the body with updates that are atomic only if another thread may have a part of the row."""

    def visit(step: Step, inside: tuple[For, ...]) -> Step:
        if isinstance(step, Store):
            return choice(step, step, inside)
        if isinstance(step, For):
            inside = (*inside, step)
            (first, *others) = (*as_steps(step.body).statements, None)
            if isinstance(first, Store) and others == [None]:
                return choice(step, first, inside)
            if _length(step) is None:
                return step
        children = tuple(visit(child, inside) if isinstance(child, Step) else child for child in step.children)
        return step.rebuild(children) if children else step  # type: ignore[return-value]  # statements stay statements

    def choice(step: Step, store: Store, loops: tuple[For, ...]) -> Step:
        if not store.atomic or store.op != "+" or store.carry is not None:
            return step
        own = {loop.variable.name for loop in loops} - tile.numbers
        if not _are_apart(store.index, row, own, {loop.variable.name: loop for loop in loops}, declared):
            return step
        op = "" if store.array in fresh else store.op

        def change(node: Node) -> Node:
            return replace(node, atomic=False, op=op) if isinstance(node, Store) else node

        return If(owned, transform(step, change), step)

    return visit(body, around)


def _are_apart(index: Value, row: Var, own: set[str], loops: Mapping[str, For], declared: Mapping[str, Value]) -> bool:
    """Return whether an index has a different value for every row and all values of some loops' variables."""
    terms: Counter[str] = Counter()
    if not _add_terms(index, 1, terms, row, loops, declared) or terms.keys() != own | {row.name}:
        return False
    reach = 0
    for name, factor in sorted(terms.items(), key=lambda term: (term[1], term[0] == row.name)):
        if factor <= reach:
            return False
        length = None if name == row.name else _length(loops[name])
        if length is None:
            return name == row.name and factor == max(terms.values())
        reach += factor * (length - 1)
    return False


def _add_terms(
    value: Value, factor: int, terms: Counter[str], row: Var, loops: Mapping[str, For], declared: Mapping[str, Value]
) -> bool:
    """Add the terms of a sum of products of variables and constants; the variable of a loop counts from the loop's first value."""
    match value:
        case Const():
            return True
        case Binary("+", left, right):
            return all(_add_terms(side, factor, terms, row, loops, declared) for side in (left, right))
        case Binary("*", left, Const(number)) | Binary("*", Const(number), left) if int(number) > 0:
            return _add_terms(left, factor * int(number), terms, row, loops, declared)
        case Var(name) if name in loops:
            terms[name] += factor
            return _add_terms(loops[name].low, factor, terms, row, loops, declared)
        case Var() if value == row:
            terms[row.name] += factor
            return True
        case Var(name) if name in declared:
            return _add_terms(declared[name], factor, terms, row, loops, declared)
    return False


def _length(loop: For) -> int | None:
    """Return how many iterations a loop has if that is a constant, else None."""
    match loop.low, loop.high:
        case Const(low), Const(high):
            return int(high) - int(low)
        case low, Binary("+", begin, Const(length)) if begin == low:
            return int(length)
    return None
