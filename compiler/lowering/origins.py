"""The origin of loops: a comment beside each loop of generated code, with names of the expression."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from ..concrete.lattice import Point
from ..ir.nodes import For, If, Step, Steps, While
from ..notation.printer import show


def originating(steps: Iterable[Step], origin: str) -> list[Step]:
    """Return steps with an origin for their outermost loops, unless they have one already."""
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


def coordinates_of(index: str, least: Collection[Point], cut: bool) -> str:
    """Return a text for the coordinates that a loop visits, such as ``j in A(i,j) and B(i,j)``, given the least points of its lattice."""
    if not least or frozenset() in least:
        return f"{index} of a tile" if cut else f"all {index}"
    texts = sorted(" and ".join(sorted(show(access) for access in point)) for point in least)
    return f"{index} in {' or '.join(texts)}"
