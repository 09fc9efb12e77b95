"""Rows of results that are written past the caches, where the result is too large to stay in them.

A store to a line that no cache holds reads the line first. Where whole lines are written, once each and never read, a store past
the caches moves half of the bytes, and leaves the caches to the operands. Whether the result is that large, and its rows begin where
such stores can go, is known when a kernel is bound: lowering declares a parameter that says so, and the C has both stores.
"""

from __future__ import annotations

from dataclasses import replace

from .nodes import (
    BOOL,
    I64,
    ArrayParameter,
    ArrayRef,
    Binary,
    Block,
    Cast,
    Const,
    Declare,
    Expr,
    Fill,
    For,
    Function,
    If,
    Load,
    Node,
    Parallel,
    Prefetch,
    Run,
    SetVar,
    SizeParameter,
    Stmt,
    Store,
    Var,
)
from .rewrite import block, mentions, transform, walk

PAST_CACHES = "past_caches"
"""What the source of the parameter says of a result: (tensor, "past_caches", 0) is 1 where its rows are to be written past the caches."""


def written_in_rows(body: Stmt, array: str) -> bool:
    """Return whether one statement, in a loop of constant extent, sets the elements of an array and nothing else uses it."""
    uses = [node for node in walk(body) if isinstance(node, Load | Store | ArrayRef | Fill | Prefetch) and node.array == array]
    if len(uses) != 1 or not isinstance(uses[0], Store) or uses[0].op or uses[0].atomic:
        return False
    store = uses[0]
    loops = [node for node in walk(body) if isinstance(node, For) and any(inner is store for inner in walk(node.body))]
    return any(isinstance(loop.high, Const) and mentions(store.index, {loop.variable.name}) for loop in loops)


def added_in_rows(body: Stmt, array: str) -> bool:
    """Return whether threads add the rows of an array, each in a loop of constant extent, to zeros: most of them may come to be stored
    once (``whole_rows``)."""
    stores = [node for node in walk(body) if isinstance(node, Store) and node.array == array]
    updates = [store for store in stores if store.atomic and store.op == "+"]
    zeros = [store for store in stores if not store.op and isinstance(store.value, Const)]
    if len(updates) != 1 or len(stores) != len(zeros) + 1 or any(isinstance(node, Load) and node.array == array for node in walk(body)):
        return False
    loops = [node for node in walk(body) if isinstance(node, For) and any(inner is updates[0] for inner in walk(node.body))]
    return any(isinstance(loop.high, Const) and mentions(updates[0].index, {loop.variable.name}) for loop in loops)


def pass_caches(function: Function, vector_bytes: int) -> Function:
    """Return a function in which rows that its parameters tell of are stored in both ways, one of which is taken at run time.

    Args:
        function: a kernel whose loops are cut into vectors already.
        vector_bytes: the width of a vector; arrays begin at a multiple of it where their parameter is 1.
    """
    results = {parameter.source[0]: parameter for parameter in function.arrays if parameter.source[1] == "values"}
    for size in function.sizes:
        if size.source[1:] == (PAST_CACHES, 0):
            function = _streaming(function, results[size.source[0]], size, vector_bytes)
    return function


def _streaming(function: Function, result: ArrayParameter, size: SizeParameter, vector_bytes: int) -> Function:
    lanes = vector_bytes // result.type.bytes
    stores = [node for node in walk(function.body) if isinstance(node, Store) and node.array == result.name]
    declared = _declared(function.body)
    rows = [store for store in stores if store.value.type == result.type.vector(lanes) and _is_multiple(store.index, lanes, declared)]
    rows = [store for store in rows if not store.op and not store.atomic]
    if any(store.op for store in stores):
        rows = [store for store in rows if _must_pass(store)]  # zeros are there to be added to
    if not rows or any(_must_pass(store) for store in stores if not any(store is row for row in rows)):
        return function
    wanted = Binary("!=", Var(size.name, I64), Const(0, I64), BOOL)
    drained = If(wanted, Run("drain_stores", ()))

    def change(node: Node) -> Node:
        match node:
            case Store(array) if array == result.name and any(node is row for row in rows):
                return If(wanted, replace(node, streams=True), node)
            case Block(statements):
                return Block(tuple(_merged(statements, wanted)))
            case For(tag=Parallel()) if any(isinstance(inner, Store) and inner.streams for inner in walk(node.body)):
                return replace(node, finish=(*node.finish, drained))  # by the thread that has stored, before others may read
        return node

    return replace(function, body=Block((transform(function.body, change), drained)))


def _must_pass(store: Store) -> bool:
    """Return whether a store belongs to a row that is stored once, so that all of the row has to go the same way: not where zeros are
    put down, nor where something is added to what is there."""
    value = store.value.operand if isinstance(store.value, Cast) else store.value
    return not store.op and not (isinstance(value, Const) and value.value == 0)


def _merged(statements: tuple[Stmt, ...], wanted: Expr) -> list[Stmt]:
    """Return statements in which neighbours that ask for the same are one."""
    made: list[Stmt] = []
    for given in statements:
        statement = given.statements[0] if isinstance(given, Block) and len(given.statements) == 1 else given
        match made[-1] if made else None, statement:
            case If(first, then, Stmt() as otherwise), If(second, more, Stmt() as rest) if first == second == wanted:
                made[-1] = If(wanted, block([then, more]), block([otherwise, rest]))
            case _:
                made.append(statement)
    return made


def _declared(body: Stmt) -> dict[str, tuple[Expr, ...]]:
    """Return what each variable may be, up to what a loop steps by: values it is given, and the steps of loops over it."""
    found: dict[str, tuple[Expr, ...]] = {}
    for node in walk(body):
        match node:
            case Declare(variable, value) | SetVar(variable, value, "" | "+"):
                found[variable.name] = (*found.get(variable.name, ()), value)
            case SetVar(variable):
                found[variable.name] = (*found.get(variable.name, ()), Const(1, I64))
            case For(variable, low):
                found[variable.name] = (*found.get(variable.name, ()), low, Const(node.step, I64))
    return found


def _is_multiple(expr: Expr, lanes: int, declared: dict[str, tuple[Expr, ...]]) -> bool:
    """Return whether an index is a multiple of ``lanes`` for certain."""
    match expr:
        case Const(value):
            return int(value) % lanes == 0
        case Cast(operand):
            return _is_multiple(operand, lanes, declared)
        case Binary("*", left, right):
            return _is_multiple(left, lanes, declared) or _is_multiple(right, lanes, declared)
        case Binary("+" | "-", left, right):
            return _is_multiple(left, lanes, declared) and _is_multiple(right, lanes, declared)
        case Var(name):
            rest = {other: values for other, values in declared.items() if other != name}  # a step adds to what is a multiple
            return name in declared and all(_is_multiple(value, lanes, rest) for value in declared[name])
    return False
