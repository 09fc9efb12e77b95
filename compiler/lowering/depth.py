"""Programs whose loops stand inside one another deeper than Python lets functions call themselves are refused in words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import ScheduleError


@contextmanager
def depth_is_bounded() -> Iterator[None]:
    """Lower or print a program. Raises ``ScheduleError`` where its loops are nested too deeply for that."""
    try:
        yield
    except RecursionError:
        raise ScheduleError("more loops stand inside one another than can be compiled; compute the expression in parts") from None
