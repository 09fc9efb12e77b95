"""Stores to rows of results that bypass the caches if the result is too large for them.

A store to a line that is in no cache reads the line first. If whole lines are written once and never read, stores that bypass
the caches move half as many bytes, and leave the caches to the operands. Whether the result is large enough, and its rows are aligned for
such stores, is known when a kernel is bound: lowering declares a parameter for it, and the C code has both kinds of stores.
"""

from __future__ import annotations

from dataclasses import replace

from ..ir.nodes import (
    BOOL,
    I64,
    PAST_CACHES,
    ArrayParameter,
    Binary,
    Cast,
    Const,
    Declare,
    For,
    Function,
    If,
    Node,
    Parallel,
    Run,
    SetVar,
    SizeParameter,
    Step,
    Steps,
    Store,
    Value,
    Var,
)
from ..ir.rewrite import block, nodes_of, transform
from .manager import Setting


def pass_caches(function: Function, setting: Setting) -> Function:
    """Return a kernel in which rows of results with such a parameter are stored in both ways; the parameter chooses one at run time.

    Arrays are aligned to a vector's width if their parameter is 1.
    """
    results = {parameter.source[0]: parameter for parameter in function.arrays if parameter.source[1] == "values"}
    for size in function.sizes:
        if size.source[1:] == (PAST_CACHES, 0):
            function = _streaming(function, results[size.source[0]], size, setting.unit.bytes)
    return function


def _streaming(function: Function, result: ArrayParameter, size: SizeParameter, vector_bytes: int) -> Function:
    lanes = vector_bytes // result.type.bytes
    stores = [node for node in nodes_of(function.body, Store) if node.array == result.name]
    declared = _declared(function.body)
    rows = [store for store in stores if store.value.type == result.type.vector(lanes) and _is_multiple(store.index, lanes, declared)]
    rows = [store for store in rows if not store.op and not store.atomic]
    if any(store.op for store in stores):
        rows = [store for store in rows if _must_pass(store)]  # zeros are read again when values are added
    if not rows or any(_must_pass(store) for store in stores if not any(store is row for row in rows)):
        return function
    wanted = Binary("!=", Var(size.name, I64), Const(0, I64), BOOL)
    drained = If(wanted, Run("drain_stores", ()))

    def change(node: Node) -> Node:
        match node:
            case Store(array) if array == result.name and any(node is row for row in rows):
                return If(wanted, replace(node, streams=True), node)
            case Steps(statements):
                return Steps(tuple(_merged(statements, wanted)))
            case For(tag=Parallel()) if any(inner.streams for inner in nodes_of(node.body, Store)):
                return replace(node, finish=(*node.finish, drained))  # the thread that has stored waits, before others may read
        return node

    return replace(function, body=Steps((transform(function.body, change), drained)))


def _must_pass(store: Store) -> bool:
    """Return whether a store belongs to a row that is stored once, so that all of the row is stored in the same way; not for stores of
    zeros, nor for stores that add."""
    value = store.value.operand if isinstance(store.value, Cast) else store.value
    return not store.op and not (isinstance(value, Const) and value.value == 0)


def _merged(statements: tuple[Step, ...], wanted: Value) -> list[Step]:
    """Return statements in which consecutive branches with the same condition are merged."""
    made: list[Step] = []
    for given in statements:
        statement = given.statements[0] if isinstance(given, Steps) and len(given.statements) == 1 else given
        match made[-1] if made else None, statement:
            case If(first, then, Step() as otherwise), If(second, more, Step() as rest) if first == second == wanted:
                made[-1] = If(wanted, block([then, more]), block([otherwise, rest]))
            case _:
                made.append(statement)
    return made


def _declared(body: Step) -> dict[str, tuple[Value, ...]]:
    """Return the possible values of each variable, up to multiples of loop steps: its assigned values, and the steps of its loops."""
    found: dict[str, tuple[Value, ...]] = {}
    for node in nodes_of(body, Declare, SetVar, For):
        match node:
            case Declare(variable, value) | SetVar(variable, value, "" | "+"):
                found[variable.name] = (*found.get(variable.name, ()), value)
            case SetVar(variable):
                found[variable.name] = (*found.get(variable.name, ()), Const(1, I64))
            case For(variable, low):
                found[variable.name] = (*found.get(variable.name, ()), low, Const(node.step, I64))
    return found


def _is_multiple(expr: Value, lanes: int, declared: dict[str, tuple[Value, ...]]) -> bool:
    """Return whether an index is certainly a multiple of ``lanes``."""
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
            rest = {other: values for other, values in declared.items() if other != name}  # avoids a cycle
            return name in declared and all(_is_multiple(value, lanes, rest) for value in declared[name])
    return False
