"""Gives every scalar a name of its own, so that blocks can be merged and split."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from ..ir.nodes import Declare, For, Function, If, Node, SetVar, Step, Steps, Value, Var, While
from ..ir.rewrite import as_steps, walk
from .manager import Setting


def name_scalars_apart(function: Function, setting: Setting) -> Function:
    """Return a kernel in which no two declarations have one name."""
    fresh = setting.fresh
    return replace(function, body=as_steps(_Renamer(fresh).step(function.body, {})))


def shared_scalar_names(function: Function) -> str | None:
    """Return a fault: a name that two declarations have; None if there is none."""
    seen: set[str] = set()
    for node in walk(function.body):
        if isinstance(node, Declare | For):
            if node.variable.name in seen:
                return f"{node.variable.name} is declared twice"
            seen.add(node.variable.name)
    return None


V = TypeVar("V", bound=Value)


class _Renamer:
    """Renames scalars; ``names`` has the new name of every visible one. Declarations of an inner block stay visible, unless they hide a
    name."""

    def __init__(self, fresh: Callable[[str], str]) -> None:
        self.fresh = fresh
        self.taken: set[str] = set()

    def declare(self, variable: Var, names: dict[str, str]) -> Var:
        name = self.fresh(variable.name) if variable.name in self.taken else variable.name
        self.taken.add(variable.name)
        names[variable.name] = name
        return Var(name, variable.type)

    def step(self, step: Step, names: dict[str, str]) -> Step:
        match step:
            case Steps(statements):
                return Steps(tuple(self._inner(statement, names) for statement in statements))
            case Declare(variable, value):
                given = self.value(value, names)
                return Declare(self.declare(variable, names), given)
            case SetVar(variable, value, op):
                return SetVar(self.value(variable, names), self.value(value, names), op)
            case For():
                low, high, inside = self.value(step.low, names), self.value(step.high, names), dict(names)
                private = tuple(self.step(part, inside) for part in step.private)
                within = dict(inside)
                variable = self.declare(step.variable, within)
                body = self.step(step.body, within)
                finish = tuple(self.step(part, inside) for part in step.finish)
                return replace(step, variable=variable, low=low, high=high, body=body, private=private, finish=finish)
            case If(condition, then, otherwise):
                known = self.value(condition, names)
                return If(known, self.step(then, dict(names)), None if otherwise is None else self.step(otherwise, dict(names)))
            case While(condition, body):
                return replace(step, condition=self.value(condition, names), body=self.step(body, dict(names)))
        children = tuple(self.value(child, names) if isinstance(child, Value) else child for child in step.children)
        return step.rebuild(children) if children else step  # type: ignore[return-value]  # statements stay statements

    def _inner(self, statement: Step, names: dict[str, str]) -> Step:
        if not isinstance(statement, Steps):
            return self.step(statement, names)
        inside = dict(names)
        made = self.step(statement, inside)
        names |= {name: new for name, new in inside.items() if name not in names}
        return made

    def value(self, value: V, names: dict[str, str]) -> V:
        return _renamed(value, names)  # type: ignore[return-value]  # variables stay variables


def _renamed(node: Node, names: dict[str, str]) -> Node:
    if isinstance(node, Var):
        return Var(names[node.name], node.type) if names.get(node.name, node.name) != node.name else node
    children = node.children
    return node.rebuild(tuple(_renamed(child, names) for child in children)) if children else node
