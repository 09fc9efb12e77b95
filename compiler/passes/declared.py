"""The declared values of scalars at a place of a program, for example of tiles ``low .. high`` with ``high = low + 16``."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ..ir.nodes import Declare, For, Function, SetVar, Step, Steps, Value, Var
from ..ir.rewrite import nodes_of

NOTHING: Mapping[str, Value] = MappingProxyType({})


def changing(function: Function) -> frozenset[str]:
    """Return the scalars that are assigned again."""
    return frozenset(node.variable.name for node in nodes_of(function.body, SetVar))


def declared_inside(step: Step, around: Mapping[str, Value], changed: frozenset[str]) -> Mapping[str, Value]:
    """Return, by name, the declared values of scalars inside a statement, for those that are never assigned again."""
    match step:
        case Steps(statements):
            own = {each.variable.name: each.value for each in statements if isinstance(each, Declare)}
        case For(variable):
            return {name: value for name, value in around.items() if name != variable.name}
        case _:
            return around
    return {name: value for name, value in {**around, **own}.items() if name not in changed} if own else around


def value_of(value: Value, declared: Mapping[str, Value]) -> Value:
    """Return the declared value of a variable; any other value is returned as it is."""
    return declared.get(value.name, value) if isinstance(value, Var) else value
