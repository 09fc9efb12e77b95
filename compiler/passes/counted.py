"""Prepares loops and register arrays for vectors: loops count from zero, and each array has a name of its own."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from ..ir.nodes import I64, Allocate, Binary, Const, Declare, For, Function, Step, Steps, Value, Var, Vector
from ..ir.rewrite import as_steps, block_again, has, is_pure, nodes_of, substitute, transform, transform_loops
from .forms import is_vectorizable
from .manager import Setting


def count_from_zero(function: Function, setting: Setting) -> Function:
    """Let loops over ``low .. low + constant`` run from 0, so that their extent is a constant like that of any row."""
    lanes = setting.lanes
    if lanes == 1:
        return function
    fresh = setting.fresh

    def change(node: For) -> Step:
        if not (node.tag is None or isinstance(node.tag, Vector)) or node.step != 1:
            return node
        extent = _extent(node.low, node.high)
        if extent is None:
            return node
        begin = node.low if isinstance(node.low, Var) else Var(fresh(f"{node.variable.name}_begin"), node.variable.type)
        counter = Var(fresh(node.variable.name), node.variable.type)
        inside = substitute(node.body, {node.variable.name: Binary("+", begin, counter, I64)})
        counted = replace(node, variable=counter, low=Const(0, I64), high=Const(extent, I64), body=inside)
        if not is_vectorizable(counted, lanes):
            return node
        return counted if begin == node.low else Steps((Declare(begin, node.low), counted))

    return replace(function, body=as_steps(transform_loops(function.body, change)))


def _extent(low: Value, high: Value) -> int | None:
    """Return the constant difference of ``high`` and a ``low`` that is not a constant; None if it is not constant."""
    match high:
        case Binary("+", begin, Const(value)) if begin == low and not isinstance(low, Const) and is_pure(low):
            return int(value)
    return None


def name_registers_apart(function: Function, setting: Setting) -> Function:
    """Give every register array a name of its own, where several branches or loops call theirs the same."""
    fresh = setting.fresh
    seen: set[str] = set()

    def visit(statement: Step) -> Step:
        if not has(statement, Allocate):
            return statement
        if isinstance(statement, Steps):
            return _visit_block(statement)
        children = tuple(visit(child) if isinstance(child, Step) else child for child in statement.children)
        return statement.rebuild(children) if children else statement  # type: ignore[return-value]  # statements stay statements

    def _visit_block(whole: Steps) -> Steps:
        rest, made = list(whole.statements), []
        while rest:
            statement = rest.pop(0)
            if isinstance(statement, Allocate) and statement.storage == "registers":
                if statement.array in seen:
                    new = fresh(statement.array)
                    rest = [_renamed(other, statement.array, new) for other in rest]
                    statement = replace(statement, array=new)
                seen.add(statement.array)
            made.append(visit(statement))
        return block_again(whole, made)

    return replace(function, body=_visit_block(function.body))


def shared_register_names(function: Function) -> str | None:
    """Return a fault: the name that two register arrays share; None if there is none."""
    names = Counter(node.array for node in nodes_of(function.body, Allocate) if node.storage == "registers")
    return next((f"two register arrays are called {name}" for name, count in names.items() if count > 1), None)


def _renamed(statement: Step, old: str, new: str) -> Step:
    """Rename an array, except inside blocks that allocate another array of its name."""
    if isinstance(statement, Steps):
        places = [place for place, inner in enumerate(statement.statements) if isinstance(inner, Allocate) and inner.array == old]
        end = places[0] if places else len(statement.statements)
        return Steps((*(_renamed(inner, old, new) for inner in statement.statements[:end]), *statement.statements[end:]))
    if any(node.array == old for node in nodes_of(statement, Allocate)):
        children = tuple(_renamed(child, old, new) if isinstance(child, Step) else child for child in statement.children)
        return statement.rebuild(children)  # type: ignore[return-value]  # statements stay statements
    return transform(statement, lambda node: replace(node, array=new) if getattr(node, "array", None) == old else node)  # type: ignore[type-var]
