"""The most keys that come into the tables of an iteration, counted before a GPU allocates the tables.

Tables (``workspaces.table``) are made before a kernel runs, for every block, warp or thread that is at work at a time, and here they have
room for all that may ever come: the whole range. A kernel of its own runs the loops that fill them, without what they store, and finds the
iteration with the most keys; a loop that only counts is what it counts, so that a product of sparse matrices looks at the first one alone.
Every iteration counts its own keys in turn: those with few have their tables in memory that the threads of a block or warp share, in
one kernel, the others on the heap, in another one (Nagasaka, Nukada and Matsuoka, "High-performance and memory-saving sparse
general matrix-matrix multiplication for NVIDIA Pascal GPU").
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from ..frozen import frozen
from ..ir.arithmetic import ONE, ZERO, compare, integer, maximum, minimum, multiply, subtract
from ..ir.nodes import (
    I64,
    Allocate,
    ArrayRef,
    Call,
    Const,
    Dealt,
    Declare,
    Fill,
    For,
    Free,
    Function,
    Group,
    If,
    Load,
    Member,
    Node,
    Run,
    SetVar,
    Step,
    Steps,
    Store,
    Value,
    Var,
    While,
)
from ..ir.rewrite import as_steps, block, is_pure, mentions, nodes_of, transform, written_arrays
from .block_sizes import WARP, threads_of
from .dead import live_block, remove_dead
from .manager import Setting

NEAR_BYTES = 32 * 1024
"""Bytes of a block's shared memory for tables."""
MOST_SLOTS = 2048
"""Of a table that is shared: it is set back in every iteration, and put in order."""


class _UnknownError(Exception):
    """How often a loop runs is found out by the tables themselves."""


def count_needs(function: Function, setting: Setting) -> Function:
    """Return a function whose tables have room for as many keys as come, where that can be found out beforehand."""
    fresh = setting.names(function)

    def visit(step: Step) -> Step:
        if isinstance(step, For) and isinstance(step.tag, Dealt):
            return _counted(step, fresh)
        children = tuple(visit(child) if isinstance(child, Step) else child for child in step.children)
        return step.rebuild(children) if children else step  # type: ignore[return-value]  # statements stay statements

    body = visit(function.body)
    return function if body == function.body else remove_dead(replace(function, body=as_steps(body)))


@frozen
class _Tables:
    """The tables that the iterations of a loop fill.

    Attributes:
        loop: makes them for each block, warp or thread.
        arrays: of keys, values and lists of keys.
        needs: the variables that say how many keys come, with the whole range.
    """

    loop: For
    arrays: tuple[Allocate, ...]
    needs: tuple[Declare, ...]

    def filled(self, counting: Steps, need: Var, slots: int, fresh: Callable[[str], str], *, near: bool, room: Value | None = None) -> For:
        """Return the loop with tables in shared memory, of so many slots, or on the heap with room for so many keys.

        Args:
            slots: of shared tables, for iterations that come to at most half as many keys; 0: there are none.
        """
        loop, group = self.loop, _group(self.loop)
        made = [replace(made, array=fresh(f"{made.array}_near"), length=integer(slots), storage=group) for made in self.arrays if near]
        own = [Declare(each.variable, minimum(need, each.value)) for each in self.needs]
        body: Step = Steps((*made, *own, loop.body))
        if near:
            body = _renamed(body, {old.array: new.array for old, new in zip(self.arrays, made, strict=True)})
        if slots:
            body = If(compare("<=" if near else ">", need, integer(slots // 2)), body)
        kept = [step for step in _flat(loop.private) if step not in (*self.arrays, *self.needs)]
        heap = [] if near else [replace(made, length=_table_of(minimum(room or ZERO, _range(made)))) for made in self.arrays]
        return replace(loop, private=(*kept, *heap), finish=() if near else loop.finish, body=Steps((counting, body)))


def _counted(outer: For, fresh: Callable[[str], str]) -> Step:
    """Return a loop that is dealt out to a GPU behind the count of what its tables need."""
    tables = _tables_of(outer)
    if tables is None:
        return outer
    most, known, need = fresh("most"), Var(fresh("most_keys"), I64), Var(fresh("need"), I64)
    try:
        counting = _need(tables, need)
    except _UnknownError:
        return outer
    noted = Steps((counting, Store(most, ZERO, need, "max", atomic=True)))

    def around(loop: For) -> Step:
        return transform(outer, lambda node: loop if node == tables.loop else node)

    slots = _near_slots(tables) if tables.loop is outer else 0
    far = around(tables.filled(counting, need, slots, fresh, near=False, room=known))
    return Steps((
        Allocate(most, I64, ONE, zero=True),
        around(replace(tables.loop, private=(), finish=(), body=noted)),
        Declare(known, Load(most, ZERO, I64)),
        Free(most),
        *([tables.filled(counting, need, slots, fresh, near=True)] if slots else []),
        If(compare(">", known, integer(slots // 2)), far) if slots else far,
    ))  # fmt: skip


def _tables_of(outer: For) -> _Tables | None:
    """Return the tables of the one loop that has some, None where there is none, or several have."""
    loops = [node for node in (outer, *nodes_of(outer.body, For)) if any(map(_is_table, _flat(node.private)))]
    if len(loops) != 1:
        return None
    private = [*_flat(loops[0].private)]
    asked = {call.arguments[0] for call in nodes_of(loops[0].body, Call) if call.function == "table_size"}
    needs = (step for step in private if isinstance(step, Declare) and step.variable in asked)
    return _Tables(loops[0], tuple(step for step in private if isinstance(step, Allocate) and _is_table(step)), tuple(needs))


def _is_table(step: Step) -> bool:
    match step:
        case Allocate(storage="heap", length=Call("table_size")):
            return True
    return False


def _range(table: Allocate) -> Value:
    assert isinstance(table.length, Call)
    return table.length.arguments[0]


def _table_of(keys: Value) -> Value:
    return Call("table_size", (keys,), I64)


def _group(loop: For) -> Member:
    assert isinstance(loop.tag, Dealt)
    return loop.tag.unit


def _near_slots(tables: _Tables) -> int:
    """Return how many slots the tables of a block or warp have in shared memory; 0: those of a thread have none there."""
    unit = _group(tables.loop)
    if unit == "thread":
        return 0
    members = threads_of(tables.loop) // WARP if unit == "warp" else 1
    fitting = NEAR_BYTES // members // sum(table.type.bytes for table in tables.arrays)
    return min(MOST_SLOTS, 1 << max(fitting.bit_length() - 1, 0))


def _flat(steps: Iterable[Step]) -> Iterator[Step]:
    for step in steps:
        yield from _flat(step.statements) if isinstance(step, Steps) else (step,)


def _renamed(body: Step, names: Mapping[str, str]) -> Step:
    def change(node: Node) -> Node:
        return replace(node, array=names[node.array]) if isinstance(node, _NAMING) and node.array in names else node

    return transform(body, change)


_NAMING = (ArrayRef, Fill, Load, Store)


# Counting


def _need(tables: _Tables, need: Var) -> Steps:
    """Return what counts the keys that come to the tables of an iteration; the threads of a block or warp share the outermost loops."""
    loop, group = tables.loop, _group(tables.loop)
    counting = _Counting(loop, need)
    counted, _ = live_block((counting.of(loop.body),), frozenset((need.name,)))
    steps = [*_flat((counted,))]
    if group != "thread":
        steps = [_shared(step, group, need) for step in steps]
    return Steps((Declare(need, ZERO), *steps))


def _shared(step: Step, group: Group, need: Var) -> Step:
    if not isinstance(step, For):
        return step
    own = {node.variable.name for node in nodes_of(step.body, Declare, For)} | {need.name}
    alone = all(node.variable.name in own for node in nodes_of(step.body, SetVar))
    return replace(step, tag=Dealt("thread", group)) if alone else step


class _Counting:
    """Statements without what they store: what is left counts how often a table is given a key."""

    def __init__(self, loop: For, need: Var) -> None:
        """``unknown``: variables that depend on what is dropped."""
        self.need = need
        self.changed = written_arrays(loop.body) | {node.array for node in nodes_of(loop, Allocate)}
        inside = {node.variable.name for node in nodes_of(loop.body, Declare)}
        outside = {node.variable.name for node in nodes_of(Steps(loop.private), Declare)}
        skipped = [inner for inner in nodes_of(loop.body, For, While, If) if not _inserts(inner)]
        self.unknown = outside | {node.variable.name for node in nodes_of(loop.body, SetVar)} - inside
        self.unknown |= {node.variable.name for inner in skipped for node in nodes_of(inner, SetVar)}
        assigned = nodes_of(loop.body, Declare, SetVar)
        while more := {node.variable.name for node in assigned if not self._is_known(node.value)} - self.unknown:
            self.unknown |= more

    def _is_known(self, value: Value) -> bool:
        changes = any(node.array in self.changed for node in nodes_of(value, Load))
        return is_pure(value) and not changes and not mentions(value, self.unknown)

    def of(self, step: Step) -> Step:
        """Return what a statement adds to the count. Raises ``_UnknownError`` where loops depend on what is dropped."""
        match step:
            case Steps(statements):
                return block([self.of(inner) for inner in statements])
            case Declare(_, Call("table_insert")) | Run("table_insert"):
                return SetVar(self.need, ONE, "+")
            case Declare(variable) | SetVar(variable):
                return step if variable.name not in self.unknown else Steps(())
            case _ if not _inserts(step):
                return Steps(())
            case If(condition, then, otherwise):
                branches = self.of(then), Steps(()) if otherwise is None else self.of(otherwise)
                return If(condition, *branches) if self._is_known(condition) else Steps(branches)
            case While(condition, body) if self._is_known(condition):
                return While(condition, self.of(body))
            case For(low=low, high=high) if self._is_known(low) and self._is_known(high):
                return _at_once(replace(step, body=self.of(step.body), tag=None, private=(), finish=()), self.need)
        raise _UnknownError


def _inserts(step: Node) -> bool:
    return any(node.function == "table_insert" for node in nodes_of(step, Call, Run))


def _at_once(loop: For, need: Var) -> Step:
    """Return what a loop counts, without it, where every iteration counts the same."""
    counted = [step for step in _flat((loop.body,)) if not (isinstance(step, Declare) and is_pure(step.value))]
    match counted:
        case [SetVar(variable, Const() as each, "+")] if variable == need and loop.step == 1:
            return SetVar(need, multiply(maximum(subtract(loop.high, loop.low), ZERO), each), "+")
    return loop
