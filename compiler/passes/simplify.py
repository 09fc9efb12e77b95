"""Simplifies code: folds constants (``folding``), removes branches and loops without effect, and drops dead locals."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from ..ir.arithmetic import FALSE, add, integer
from ..ir.nodes import (
    BOOL,
    Const,
    Dealt,
    Declare,
    For,
    Function,
    If,
    Node,
    Parallel,
    Prefetch,
    SetVar,
    Step,
    Steps,
    Unary,
    Value,
    Var,
    While,
)
from ..ir.rewrite import as_steps, block, is_empty, is_pure, nodes_of, settle, substitute
from .folding import FOLDING

_EMPTY = Steps(())
_ROUNDS = 10


def simplify(function: Function) -> Function:
    """Return a function that computes the same with less code."""
    body, live = function.body, None
    for _ in range(_ROUNDS):
        settled = settle(body, _simpler)
        if settled is live:
            break
        body = _without_dead_locals(settled)
        live = settled if body is settled else None  # after a variable is dropped, variables that it reads may be dead
    return replace(function, body=body)


def _simpler(node: Node) -> Node:
    rule = _RULES.get(type(node))
    return node if rule is None else rule(node)


def _simpler_block(steps: Steps) -> Step:
    return block(steps.statements) if any(map(is_empty, steps.statements)) else steps


def _simpler_while(loop: While) -> Step:
    return _EMPTY if loop.condition == FALSE else loop


def _simpler_if(branch: If) -> Step:
    condition, then, otherwise = branch.condition, branch.then, branch.otherwise
    if isinstance(condition, Const):
        return then if condition.value else otherwise or _EMPTY
    if otherwise is not None and is_empty(otherwise):
        otherwise = None
    if is_empty(then):
        if otherwise is None:
            return _EMPTY if is_pure(condition) else If(condition, then)
        return If(Unary("not", condition, BOOL), otherwise)
    return branch if otherwise is branch.otherwise else If(condition, then)


def _simpler_for(loop: For) -> Step:
    if loop.private or loop.finish or not (is_pure(loop.low) and is_pure(loop.high)):
        return loop
    if is_empty(loop.body) or _only_prefetches(loop.body):
        return _EMPTY
    if isinstance(loop.low, Const) and isinstance(loop.high, Const):
        if loop.low.value >= loop.high.value:
            return _EMPTY
        if loop.low.value + loop.step >= loop.high.value and not isinstance(loop.tag, Parallel | Dealt):
            return substitute(loop.body, {loop.variable.name: Const(int(loop.low.value), loop.variable.type)})
    if _is_single(loop):
        return substitute(loop.body, {loop.variable.name: loop.low})
    return loop


def _is_single(loop: For) -> bool:
    """Return whether a loop has exactly one iteration, whose first value does not change in it."""
    if isinstance(loop.tag, Parallel | Dealt) or not isinstance(loop.low, Var) or loop.high != add(loop.low, integer(loop.step)):
        return False
    return all(node.variable != loop.low for node in nodes_of(loop.body, Declare, SetVar, For))


def _only_prefetches(body: Step) -> bool:
    """Return whether a body only prefetches or declares, so that it has no visible effect."""
    if isinstance(body, Steps):
        return all(_only_prefetches(statement) for statement in body.statements)
    return isinstance(body, Prefetch) or (isinstance(body, Declare) and is_pure(body.value))


_RULES: dict[type[Node], Callable[[Any], Node]] = {
    **FOLDING, If: _simpler_if, While: _simpler_while, For: _simpler_for, Steps: _simpler_block,
}  # fmt: skip


def _without_dead_locals(body: Steps) -> Steps:
    """Drop scalars that are never read, with their assignments; return the body itself if all are read."""
    removable: dict[str, bool] = {}
    read: set[str] = set()

    def visit(parts: Iterable[Node]) -> None:
        for node in parts:
            if isinstance(node, Declare | SetVar):
                target = node.variable.name
                removable[target] = removable.get(target, True) and is_pure(node.value)
                names = node.value.variables
                read.update(names - {target} if target in names else names)
            elif isinstance(node, Value):
                read.update(node.variables)
            else:
                visit(node.children[isinstance(node, For) :])  # the first child of a loop is its variable

    visit((body,))
    dead = {name for name, pure in removable.items() if pure and name not in read}
    if not dead:
        return body

    def drop(node: Step) -> Step:
        if isinstance(node, Declare | SetVar):
            return _EMPTY if node.variable.name in dead else node
        if node.declared.isdisjoint(dead) and node.assigned.isdisjoint(dead):
            return node
        children = tuple(drop(child) if isinstance(child, Step) else child for child in node.children)
        return block(children) if isinstance(node, Steps) else node.rebuild(children)  # type: ignore[return-value, arg-type]

    return as_steps(drop(body))
