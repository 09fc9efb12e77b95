"""Checks that heap arrays of a program are used only between their allocation and their release, and released once on every path.

What the caller receives is handed over once. A loop leaves the arrays as it found them. After a condition, an array that only one branch
makes may exist or not: a later condition may decide by the same fact.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..frozen import frozen
from .nodes import (
    Allocate,
    ArrayRef,
    Fill,
    For,
    Free,
    Function,
    Grow,
    If,
    Kernel,
    Leave,
    Load,
    Node,
    Once,
    Prefetch,
    Publish,
    Step,
    Steps,
    Store,
    Take,
    While,
)
from .printer import show_statement
from .rewrite import nodes_of
from .value_rules import Fault


@frozen
class Alive:
    """The state at some place: heap arrays that may exist there (``perhaps``) and those that do (``surely``), and the same of parameters
    that were handed over."""

    perhaps: frozenset[str] = frozenset()
    surely: frozenset[str] = frozenset()

    def with_(self, *names: str) -> Alive:
        """Return the state after some arrays were made: they surely exist."""
        return Alive(self.perhaps.union(names), self.surely.union(names))

    def without(self, *names: str) -> Alive:
        """Return the state after some arrays were released or handed on: they do not exist any more."""
        return Alive(self.perhaps.difference(names), self.surely.difference(names))

    def or_(self, other: Alive) -> Alive:
        """Return the state after one of two branches."""
        return Alive(self.perhaps | other.perhaps, self.surely & other.surely)


def check_lifetimes(function: Function) -> None:
    """Raise ``Fault`` if an array is used while it does not exist, made or released twice, or neither released nor handed over."""
    made = [*nodes_of(function.body, Allocate, Take), *(made for kernel in nodes_of(function.body, Kernel) for made in kernel.scratch)]
    own = {each.array for each in made}
    registers = {each.array for each in made if isinstance(each, Allocate) and each.storage != "heap"}
    assembled = {parameter.name for parameter in function.arrays if parameter.assembled}
    left = _Lifetimes(frozenset(own - registers)).after(function.body, Alive())
    for array in sorted(left.perhaps - assembled):
        raise Fault(f"array {array} is never released")
    for parameter in sorted(assembled - left.surely):
        raise Fault(f"{parameter} is never handed over")


class _Lifetimes:
    """Follows a program; ``own`` has the names of arrays that are always allocated on the heap."""

    def __init__(self, own: frozenset[str]) -> None:
        self.own = own

    def after(self, step: Step, alive: Alive) -> Alive:
        """Return the state after a statement, given that before it."""
        match step:
            case Steps(statements):
                return self.through(statements, alive)
            case If(condition, then, otherwise):
                self.used(condition, alive, step)
                return self.after(then, alive).or_(alive if otherwise is None else self.after(otherwise, alive))
            case While(condition, body):
                self.used(condition, alive, step)
                return self.same(alive, self.after(body, alive), step)
            case For():
                return self.loop(step, alive)
            case Kernel(body, blocks, _, _, scratch):
                self.used(blocks, alive, step)
                rooms = [made.array for made in scratch]
                return self.same(alive, self.after(body, alive.with_(*rooms)).without(*rooms), step)
            case Once(body=body):
                return self.after(body, alive)
        self.used(step, alive, step)
        return self.changed(step, alive)

    def through(self, steps: Iterable[Step], alive: Alive) -> Alive:
        for step in steps:
            alive = self.after(step, alive)
        return alive

    def loop(self, loop: For, alive: Alive) -> Alive:
        for bound in (loop.low, loop.high):
            self.used(bound, alive, loop)
        begun = self.through(loop.private, alive)
        ended = self.same(begun, self.after(loop.body, begun), loop)
        return self.same(alive, self.through(loop.finish, ended), loop)

    def changed(self, step: Step, alive: Alive) -> Alive:
        match step:
            case Allocate(array) | Take(array) if array in self.own:
                if array in alive.surely:
                    self.fail(f"array {array} is made where it is there already", step)
                return alive.with_(array)
            case Free(array) | Leave(array):
                return alive.without(array)
            case Publish(parameter, array):
                if parameter in alive.perhaps:
                    self.fail(f"{parameter} is handed over twice", step)
                return alive.without(array).with_(parameter)
        return alive

    def used(self, node: Node, alive: Alive, step: Step) -> None:
        """Refuse the use of arrays that do not exist."""
        found = {each.array for each in nodes_of(node, Load, Store, ArrayRef, Fill, Prefetch, Grow, Free, Leave, Publish)}
        for array in sorted(found & self.own - alive.perhaps):
            self.fail(f"array {array} is used where it is not there", step)

    def same(self, before: Alive, behind: Alive, loop: Step) -> Alive:
        """Return the state after a loop: that before it, since each iteration begins with what the last one left."""
        for array in sorted((before.perhaps ^ behind.perhaps) | (before.surely ^ behind.surely)):
            self.fail(f"array {array} is made or released again and again", loop)
        return before

    def fail(self, what: str, step: Step) -> None:
        raise Fault(f"{what}, in: {show_statement(step).splitlines()[0].strip()}")
