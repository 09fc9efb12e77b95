"""Programs whose loops stand inside one another deeper than Python lets functions call themselves are refused in words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import ScheduleError
from .nodes import Program, assignments_in_loops

MOST_LOOPS = 60
"""Loops inside one another that are compiled: each takes some of the 1000 calls inside one another that Python allows."""

MOST_FACTORS = 80
"""Factors of a product that is made of products of two, each in loops of its own: few loops stand inside one another, but each product is
made inside what uses it."""

_REFUSAL = "more loops stand inside one another than can be compiled; compute the expression in parts"


def check_depth(program: Program) -> None:
    """Refuse a program of which no code can come, before anything is sought for it. Raises ``ScheduleError``."""
    if any(len(loops) > MOST_LOOPS for loops, _ in assignments_in_loops(program.statement)):
        raise ScheduleError(_REFUSAL)


@contextmanager
def depth_is_bounded() -> Iterator[None]:
    """Lower or print a program. Raises ``ScheduleError`` where its loops, and the caller's own calls, are too many for that."""
    try:
        yield
    except RecursionError:
        raise ScheduleError(_REFUSAL) from None
