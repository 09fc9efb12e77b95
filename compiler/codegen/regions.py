"""Parallel regions: finds what a parallel loop uses of the kernel around it, when the loop becomes a function of its own."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field

from ..frozen import frozen
from ..ir.nodes import (
    SHARE_BEGIN,
    SHARE_NUMBER,
    Allocate,
    ArrayRef,
    Call,
    Declare,
    Fill,
    For,
    Free,
    Grow,
    If,
    Leave,
    Load,
    Prefetch,
    Publish,
    SetVar,
    Step,
    Steps,
    Store,
    Take,
    Value,
    Var,
    While,
)
from ..ir.rewrite import nodes_of

OF_ARRAYS = (Load, Store, ArrayRef, Prefetch, Fill, Grow, Free, Publish, Leave, Take)
"""Nodes that use an array."""


@frozen
class Captured:
    """Variables of the kernel that a region reads, and arrays that the kernel has made, in the order of their first use."""

    variables: tuple[Var, ...]
    arrays: tuple[str, ...]


def captured(loop: For, parameters: Set[str]) -> Captured:
    """Return what a parallel loop uses from outside, without the arrays that are parameters of the kernel.

    Raises:
        ValueError: it assigns a variable of the kernel, so that all threads would assign it at once.
    """
    found = _Outside()
    scope: set[str] = set()
    found.steps(loop.private, scope)
    found.step(loop.body, scope | {loop.variable.name})
    found.steps(loop.finish, scope)
    if found.assigned:
        raise ValueError(f"a parallel loop assigns {', '.join(found.assigned)}, which is the kernel's")
    parts = (*loop.private, loop.body, *loop.finish)
    own = {node.array for part in parts for node in nodes_of(part, Allocate)}
    arrays = dict.fromkeys(node.array for part in parts for node in nodes_of(part, *OF_ARRAYS))
    return Captured(tuple(found.read.values()), tuple(name for name in arrays if name not in own and name not in parameters))


def taken_from_before(steps: tuple[Step, ...]) -> set[str]:
    """Return the variables that steps read or assign and that were declared before them."""
    found = _Outside()
    found.steps(steps, set())
    return {*found.read, *found.assigned}


def has_shares(loop: For) -> bool:
    """Return whether a parallel loop has data of its own for each share of its work."""
    return any(node.function in (SHARE_NUMBER, SHARE_BEGIN) for node in nodes_of(loop.body, Call))


@dataclass
class _Outside:
    """Collects the variables that steps read or assign without a declaration in scope; scopes are those of the interpreter."""

    read: dict[str, Var] = field(default_factory=dict)
    assigned: dict[str, Var] = field(default_factory=dict)

    def steps(self, steps: tuple[Step, ...], scope: set[str]) -> None:
        for step in steps:
            self.step(step, scope)

    def step(self, step: Step, scope: set[str]) -> None:
        if step.variables <= scope:
            return
        match step:
            case Steps(steps):
                self.steps(steps, scope)
            case Declare(variable, value):
                self.value(value, scope)
                scope.add(variable.name)
            case SetVar(variable, value):
                if variable.name not in scope:
                    self.assigned.setdefault(variable.name, variable)
                self.value(value, scope)
            case For(variable, low, high, body):
                self.value(low, scope)
                self.value(high, scope)
                self.step(body, scope | {variable.name})
            case While(condition, body):
                self.value(condition, scope)
                self.step(body, set(scope))
            case If(condition, then, otherwise):
                self.value(condition, scope)
                for branch in (then, otherwise):
                    if branch is not None:
                        self.step(branch, set(scope))
            case _:
                for child in step.children:
                    if isinstance(child, Value):
                        self.value(child, scope)

    def value(self, value: Value, scope: set[str]) -> None:
        if value.variables <= scope:
            return
        for node in nodes_of(value, Var):
            if node.name not in scope:
                self.read.setdefault(node.name, node)
