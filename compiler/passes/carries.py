"""Sums that GPU threads make in order: each thread's sum for its first component goes to a slot (``lowering.carries``), added afterwards.

Slots are added by a segmented reduction in a fixed order, level by level (csrc/st_cuda.h), so that every run gives the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ..errors import ScheduleError
from ..ir.arithmetic import ONE, ZERO, add, integer, multiply, remainder
from ..ir.nodes import (
    BOOL,
    I64,
    Allocate,
    ArrayRef,
    Binary,
    Carry,
    Const,
    Dealt,
    Declare,
    Fill,
    For,
    Free,
    Function,
    If,
    Load,
    Node,
    Run,
    SetVar,
    Step,
    Steps,
    Store,
    Type,
    Value,
    Var,
)
from ..ir.rewrite import array_types, as_steps, nodes_of, transform
from .manager import Setting

CARRIED = ("+", "*", "min", "max", "and", "or")
"""The operators in the order of their numbers for ``st_carry``."""
UNUSED = integer(-1)


def carry_in_order(function: Function, setting: Setting) -> Function:
    """Return a function in which carried sums are put into slots, which are added after the kernel.

    Raises:
        ScheduleError: the number of tiles is known only inside the kernel, or the array is updated in other ways too.
    """
    if carried(function) is None:
        return function
    types = {name: Type(kind) for name, kind in array_types(function).items()}
    fresh = setting.fresh

    def visit(step: Step) -> Step:
        if isinstance(step, For) and isinstance(step.tag, Dealt):
            return _with_slots(step, types, fresh) if _stores(step) else step
        children = tuple(visit(child) if isinstance(child, Step) else child for child in step.children)
        return step.rebuild(children) if children else step  # type: ignore[return-value]  # statements stay statements

    return replace(function, body=as_steps(visit(function.body)))


def carried(function: Function) -> str | None:
    """Return a fault: a store whose carried sum is not in a slot yet; None if there is none."""
    return next((f"sums of {store.array} are not in slots" for store in _stores(function.body)), None)


def _stores(node: Node) -> list[Store]:
    return [store for store in nodes_of(node, Store) if store.carry is not None]


def _with_slots(loop: For, types: Mapping[str, Type], fresh: Callable[[str], str]) -> Steps:
    found: dict[str, list[Store]] = {}
    for store in _stores(loop):
        found.setdefault(store.array, []).append(store)
    before: list[Step] = []
    after: list[Step] = []
    changed = loop
    for array, stores in found.items():
        carry, op = stores[0].carry, stores[0].op
        assert carry is not None
        others = [store for store in nodes_of(loop, Store) if store.array == array and (store.carry, store.op) != (carry, op)]
        if others or op not in CARRIED:
            raise ScheduleError(f"on a GPU threads add to {array} in more ways than one, and cannot carry sums to each other; use atomics")
        to, kept, length = fresh(f"{array}_to"), fresh(f"{array}_kept"), Var(fresh(f"{array}_slots"), I64)
        tiles = _tiles(loop, carry)
        before += [Declare(length, _first(carry.slot, tiles.variable, tiles.high)), Allocate(to, I64, multiply(length, carry.width))]
        before += [Fill(to, ZERO, multiply(length, carry.width), UNUSED), Allocate(kept, types[array], multiply(length, carry.width))]
        references = (ArrayRef(to, I64), ArrayRef(kept, types[array]), ArrayRef(array, types[array]))
        after += [Run("carry", (*references, length, carry.width, integer(CARRIED.index(op)))), Free(kept), Free(to)]

        changed = _in_slots(changed, array, carry, to, kept, types[array], fresh)
    return Steps((*before, changed, *after))


def _in_slots(loop: For, array: str, carry: Carry, to: str, kept: str, kind: Type, fresh: Callable[[str], str]) -> For:
    """Return a loop in which updates of an array go to slots. If a slot has one element, its sum stays in a register until the end of the
    tile, and is not read back from memory."""
    loops = [node for node in (loop, *nodes_of(loop.body, For)) if node.variable.name in carry.slot.variables]
    tiles = [node for node in loops if node.variable.name == loops[-1].variable.name]
    if carry.width != ONE or any(isinstance(node.tag, Dealt) for tile in tiles for node in nodes_of(tile.body, For)):
        return transform(loop, lambda node: _kept(node, to, kept, kind, fresh) if _is_carried(node, array) else node)  # type: ignore[arg-type]

    def in_registers(tile: For) -> For:
        first, total = Var(fresh("first"), I64), Var(fresh(f"{array}_first"), kind)
        noted = If(Binary("<=", ZERO, first, BOOL), Steps((Store(to, carry.slot, first), Store(kept, carry.slot, total))))
        blank = Const(False, kind) if kind == BOOL else Const(0.0 if kind.is_float else 0, kind)
        inside = transform(
            tile.body, lambda node: _kept_in_registers(node, first, total, fresh) if _is_carried(node, array) else node  # type: ignore[arg-type]
        )
        return replace(tile, body=Steps((Declare(first, UNUSED), Declare(total, blank), inside, noted)))

    return transform(loop, lambda node: in_registers(node) if isinstance(node, For) and node in tiles else node)


def _is_carried(node: Node, array: str) -> bool:
    return isinstance(node, Store) and node.array == array and node.carry is not None


def _kept_in_registers(store: Store, first: Var, total: Var, fresh: Callable[[str], str]) -> Step:
    """Return an update of the thread's first component, in a register, or of another component, to which no other thread adds."""
    at, added = Var(fresh("at"), I64), Var(fresh("added"), total.type)
    again = If(Binary("==", first, at, BOOL), SetVar(total, added, store.op), Store(store.array, at, added, store.op))
    begin = Steps((SetVar(first, at), SetVar(total, added)))
    return Steps((Declare(at, store.index), Declare(added, store.value), If(Binary("<", first, ZERO, BOOL), begin, again)))


def _kept(store: Store, to: str, kept: str, kind: Type, fresh: Callable[[str], str]) -> Step:
    """Return an update of the thread's slot, or of another component, to which no other thread adds."""
    assert store.carry is not None
    at, place, added = Var(fresh("at"), I64), Var(fresh("slot"), I64), Var(fresh("added"), kind)
    beside = remainder(at, store.carry.width)
    known = Load(to, place, I64)
    first = Steps((Store(to, place, at), Store(kept, place, added)))
    again = If(Binary("==", known, at, BOOL), Store(kept, place, added, store.op), Store(store.array, at, added, store.op))
    return Steps(
        (
            Declare(at, store.index),
            Declare(place, add(multiply(store.carry.slot, store.carry.width), beside)),
            Declare(added, store.value),
            If(Binary("<", known, ZERO, BOOL), first, again),
        )
    )


def _tiles(loop: For, carry: Carry) -> For:
    """Return the loop over the outermost tiles in the number of a slot."""
    dealt = [node for node in (loop, *nodes_of(loop.body, For)) if node.variable.name in carry.slot.variables]
    declared = {node.variable.name for node in (loop, *nodes_of(loop.body, For, Declare))}
    if dealt and dealt[0].low == ZERO and not declared & dealt[0].high.variables:
        return dealt[0]
    raise ScheduleError("on a GPU the tiles of positions that sums are carried over stand in the outermost loop; reorder the loops")


def _first(slot: Value, tile: Var, number: Value) -> Value:
    """Return the first slot of the tile with a number: in it, the variables of inner loops are 0."""
    if tile.name not in slot.variables:
        return ZERO if slot.variables else slot
    match slot:
        case Binary("+", left, right):
            return add(_first(left, tile, number), _first(right, tile, number))
        case Binary("*", left, right):
            return multiply(_first(left, tile, number), right)
    return number
