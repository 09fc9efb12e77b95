"""Where the loops of a kernel come from: one line beside each loop of generated code, in the words of the expression."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..ir.nodes import For, If, Step, Steps, While
from ..notation.printer import show
from .domain import Point


def originating(steps: Iterable[Step], origin: str) -> list[Step]:
    """Return steps whose outermost loops say where they come from, those that say so already excepted."""
    return [_marked(step, origin) for step in steps]


def _marked(step: Step, origin: str) -> Step:
    match step:
        case For(origin="") | While(origin=""):
            return replace(step, origin=origin)
        case Steps(statements):
            return Steps(tuple(originating(statements, origin)))
        case If(condition, then, otherwise):
            return If(condition, _marked(then, origin), _marked(otherwise, origin) if otherwise is not None else None)
        case _:
            return step


def coordinates_of(index: str, lattice: Iterable[Point], cut: bool) -> str:
    """Return which coordinates a loop visits, such as ``j in A(i,j) and B(i,j)``; a larger point adds nothing to a smaller one."""
    points = set(lattice)
    if not points or frozenset() in points:
        return f"{index} of a tile" if cut else f"all {index}"
    least = [point for point in points if not any(other < point for other in points)]
    texts = sorted(" and ".join(sorted(show(access) for access in point)) for point in least)
    return f"{index} in {' or '.join(texts)}"
