"""How much work a piece of Python does, independent of the machine and its load."""

from __future__ import annotations

import sys
from collections.abc import Callable


def calls(run: Callable[[], object]) -> int:
    """Return how many functions a run calls, those of Python and those of C."""
    count = 0

    def note(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(before)
    return count


class Ticks:
    """A clock that moves on by ``step`` seconds with every reading, so that limits of time become numbers of readings."""

    def __init__(self, step: float) -> None:
        self.now = 0.0
        self._step = step

    def __call__(self) -> float:
        self.now += self._step
        return self.now
