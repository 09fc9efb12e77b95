"""Removes variables that are never read, and arrays that are only allocated, written and freed.

Lowering declares values that a body might use (a coordinate, whether a key is new) before it knows what the body needs. The
counting pass of an insertion needs no values.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from ..ir.nodes import (
    Allocate,
    ArrayRef,
    Call,
    Declare,
    Fill,
    For,
    Free,
    Function,
    Grow,
    If,
    Leave,
    Load,
    Node,
    Prefetch,
    Publish,
    Run,
    SetVar,
    Step,
    Steps,
    Store,
    Value,
    Var,
)  # fmt: skip
from ..ir.rewrite import block, block_again, is_pure, nodes_of, transform, transform_steps

Names = frozenset[str]
_NONE: Names = frozenset()


def remove_dead(function: Function) -> Function:
    """Return a function in which every variable and every local array is read."""
    before, body = None, function.body
    while body is not before:
        before = body
        rest = _without_arrays(_unsorted(body), _unread_arrays(body))
        assert isinstance(rest, Steps)
        body = _live_steps(rest, _NONE)[0]
    return function if body is function.body else replace(function, body=body)


def unread(function: Function) -> str | None:
    """Return a fault: a variable or array that is never read; None if all are read."""
    read, pending = set[str](), list[Node]([function.body])
    while pending:
        node = pending.pop()
        read |= {node.name} if isinstance(node, Var) else set()
        pending += node.children[isinstance(node, Declare | SetVar | For) :]  # their first child is what they declare or assign
    declared = (node for node in nodes_of(function.body, Declare) if is_pure(node.value))
    found = next((f"variable {node.variable.name}" for node in declared if node.variable.name not in read), None)
    found = found or next((f"array {array}" for array in _unread_arrays(function.body)), None)
    return None if found is None else f"nothing reads {found}"


def _unread_arrays(body: Step) -> Names:
    """Return the arrays that a body allocates and never reads, and whose uses have no other effect."""
    own, read = set[str](), set[str]()
    for node in nodes_of(body, Allocate, Store, Publish, Load, ArrayRef, Grow, Prefetch, Leave):
        match node:
            case Allocate(array):
                own.add(array)
            case Store(array, index, value):
                read.update([array] if not (is_pure(index) and is_pure(value)) else [])
            case Publish(_, array) | Load(array) | ArrayRef(array) | Grow(array) | Prefetch(array) | Leave(array):
                read.add(array)
    return frozenset(own - read)


def _unsorted(body: Step) -> Step:
    """Return a body in which no list of keys is made and sorted if only the number of keys is used, as in counting passes."""
    sorts = [node for node in nodes_of(body, Run) if node.function in ("sort", "sort_range")]
    if not sorts:
        return body
    own = {node.array for node in nodes_of(body, Allocate)}
    looked = {node.array for node in nodes_of(body, Load, Leave, Publish, Grow)}
    lists = [node for node in nodes_of(body, Call) if node.function == "table_keys"]
    named = Counter(node.array for node in nodes_of(body, ArrayRef))
    harmless = Counter(node.arguments[0].array for node in (*sorts, *lists) if isinstance(node.arguments[0], ArrayRef))
    idle = {array for array in own - looked if named[array] == harmless[array]}

    def change(node: Step) -> Step:
        match node:
            case Run("sort" | "sort_range", (ArrayRef(array), *_)) if array in idle:
                return Steps(())
            case SetVar(_, Call("table_keys", (ArrayRef(array), table, size)) as listed) if array in idle:
                return replace(node, value=replace(listed, function="table_count", arguments=(table, size)))
        return node

    return transform_steps(body, change) if idle else body


def _without_arrays(body: Step, arrays: Names) -> Step:
    def change(node: Step) -> Step:
        return Steps(()) if isinstance(node, Allocate | Free | Fill | Store) and node.array in arrays else node

    return transform_steps(body, change) if arrays else body


def _live(statement: Step, after: Names) -> tuple[Step, Names]:
    """Return a statement without dead variables, and the names that it reads.

    ``after``: names that the rest of the block around it reads; this includes declarations of the statement if that is a block.
    """
    match statement:
        case Steps():
            return _live_steps(statement, after)
        case Declare(variable) if variable.name not in after:
            return _unused(statement)
        case Declare(_, value):
            return statement, value.variables
        case SetVar(_, value):
            return statement, value.variables
        case If(condition, then, otherwise):
            kept, read = _live(then, _NONE)
            other, more = _live(otherwise, _NONE) if otherwise is not None else (None, _NONE)
            parts = (condition, kept) if other is None else (condition, kept, other)
            return statement.rebuild(parts), condition.variables | read | more  # type: ignore[return-value]  # statements stay statements
        case For():
            return _live_loop(statement)
        case _:
            parts = [child for child in statement.children if isinstance(child, Step)]
            if not parts:
                return statement, statement.variables
            kept = {id(part): _live(part, _NONE) for part in parts}
            read = frozenset().union(*(names for _, names in kept.values()))
            children = tuple(kept[id(child)][0] if id(child) in kept else child for child in statement.children)
            others = [child.variables for child in statement.children if id(child) not in kept]
            rebuilt = statement.rebuild(children)
            assert isinstance(rebuilt, Step)
            return rebuilt, read.union(*others)


def _live_steps(whole: Steps, after: Names) -> tuple[Steps, Names]:
    kept, read = _live_statements(whole.statements, after)
    return block_again(whole, kept), read


def live_block(statements: tuple[Step, ...], after: Names) -> tuple[Steps, Names]:
    """Return a block as ``_live`` does."""
    kept, read = _live_statements(statements, after)
    return block(kept), read


def _live_statements(statements: tuple[Step, ...], after: Names) -> tuple[list[Step], Names]:
    kept: list[Step] = []
    read = after
    for statement in reversed(statements):
        if isinstance(statement, Declare) and statement.variable.name not in read:
            rest = _unassigned(statement.variable.name, kept)
            if rest is None:
                read = read | statement.value.variables
                kept.append(statement)
                continue
            kept = rest
        found, names = _live(statement, read)
        read = read | names
        kept.append(found)
    return kept[::-1], read


def _live_loop(loop: For) -> tuple[Step, Names]:
    """Return a loop as ``_live`` does. ``private``, body and ``finish`` of a parallel loop are one scope, in this order."""
    finish, read = live_block(loop.finish, _NONE)
    body, more = _live(loop.body, _NONE)
    private, most = live_block(loop.private, read | more)
    names = read | more | most | loop.low.variables | loop.high.variables
    if body is loop.body and private.statements == loop.private and finish.statements == loop.finish:
        return loop, names
    return replace(loop, private=private.statements, body=body, finish=finish.statements), names


def _unused(declaration: Declare) -> tuple[Step, Names]:
    """Return the rest of a declaration whose variable is never read: the call, if it changes something."""
    value = declaration.value
    if is_pure(value):
        return Steps(()), _NONE
    return _effect(value) if _is_plain_call(value) else declaration, value.variables


def _is_plain_call(value: Value) -> bool:
    """Whether a call may be kept without its value."""
    return isinstance(value, Call) and value.function != "map_insert"  # its value says whether it found memory


def _effect(value: Value) -> Step:
    return Run(value.function, value.arguments) if isinstance(value, Call) and not is_pure(value) else Steps(())


def _unassigned(name: str, rest: list[Step]) -> list[Step] | None:
    """Return statements without assignments to a variable that is never read; calls that change something are kept.

    Returns None if an assignment must stay, and the variable with it.
    """
    assigned = [node for statement in rest for node in nodes_of(statement, SetVar) if node.variable.name == name]
    if not all(is_pure(node.value) or _is_plain_call(node.value) for node in assigned):
        return None

    def change(node: Node) -> Node:
        return _effect(node.value) if isinstance(node, SetVar) and node.variable.name == name else node

    return [transform(statement, change) for statement in rest] if assigned else rest
