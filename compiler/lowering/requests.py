"""What a statement asks of the code around it: steps among its own, which are taken out where they can be granted.

``lower`` returns requests as a part of its steps, so that what is left out of a program asks for nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from ..concrete.nodes import Stmt
from ..frozen import frozen
from ..ir.nodes import Allocate, Declare, Free, Step, Steps, Type, Value
from ..ir.rewrite import has, nodes_of


@frozen
class Once(Step):
    """Steps for the start and the end of the kernel or, inside a parallel loop, of each thread."""

    before: tuple[Step, ...]
    after: tuple[Step, ...]


@frozen
class Holds(Step):
    """An array holds the values of a workspace."""

    array: str
    workspace: str


@frozen
class NeedsZeros(Step):
    """A tensor must hold zeros before the steps behind this one, which store only some of its components or call a function that adds."""

    tensor: str


R = TypeVar("R", bound=Step)


def allocated_once(array: str, kind: Type, length: Value, *, zero: bool) -> Once:
    """Return the request for an array that is allocated once."""
    return made_once((Allocate(array, kind, length, "heap", zero),))


def made_once(steps: tuple[Allocate | Declare, ...]) -> Once:
    """Return the request for arrays and variables that are made once."""
    return Once(steps, tuple(Free(step.array) for step in steps if isinstance(step, Allocate)))


def needs_zeros(statement: Stmt, requests: Iterable[Step], tensor: str) -> bool:
    """Return whether a tensor must hold zeros before a statement, whose lowered steps make some requests."""
    if any(assign.operator == "+=" and assign.target.tensor == tensor for assign in statement.assignments):
        return True
    return any(isinstance(request, NeedsZeros) and request.tensor == tensor for request in requests)


def at_start(requests: Iterable[Once]) -> tuple[Step, ...]:
    """Return the steps for the start."""
    return tuple(step for request in requests for step in request.before)


def at_end(requests: Iterable[Once]) -> tuple[Step, ...]:
    """Return the steps for the end."""
    return tuple(step for request in requests for step in request.after)


def taken(steps: list[Step], *kinds: type[R]) -> tuple[list[R], list[Step]]:
    """Return the requests of some classes among steps, in order, and the steps without them."""
    found = [request for step in steps for request in nodes_of(step, *kinds)]
    return (found, _without(steps, kinds)) if found else ([], steps)


def _without(steps: Iterable[Step], kinds: tuple[type[Step], ...]) -> list[Step]:
    return [_stripped(step, kinds) for step in steps if not isinstance(step, kinds)]


def _stripped(step: Step, kinds: tuple[type[Step], ...]) -> Step:
    """Return a statement whose blocks have no steps of some classes."""
    if not has(step, *kinds):
        return step
    if isinstance(step, Steps):
        return Steps(tuple(_without(step.statements, kinds)))
    children = tuple(_stripped(child, kinds) if isinstance(child, Step) else child for child in step.children)
    return step.rebuild(children)  # type: ignore[return-value]  # statements rebuild to statements
