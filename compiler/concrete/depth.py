"""Refuses programs whose loops are nested too deep for Python's limit on recursion, with a message that says so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import ScheduleError
from .nodes import Program, assignments_in_loops

MOST_LOOPS = 60
"""Most nested loops that are compiled: each takes some of the 1000 nested calls that Python allows."""

MOST_FACTORS = 80
"""Most factors of a product that is computed as products of two, each in its own loops. Few of these loops are nested, but the producers
are: each stands inside the statement that uses it."""

_REFUSAL = "more loops stand inside one another than can be compiled; compute the expression in parts"


def check_depth(program: Program) -> None:
    """Refuse a program with too many nested loops before any work is done on it. Raises ``ScheduleError``."""
    if any(len(loops) > MOST_LOOPS for loops, _ in assignments_in_loops(program.statement)):
        raise ScheduleError(_REFUSAL)


@contextmanager
def depth_is_bounded() -> Iterator[None]:
    """A context for lowering or printing. Raises ``ScheduleError`` where a program's loops, with the caller's own
    calls, are nested too deep."""
    try:
        yield
    except RecursionError:
        raise ScheduleError(_REFUSAL) from None
