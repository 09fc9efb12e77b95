"""The clock of an exploration: how many schedules every stage kept, how long it took, and when to end, for all presets."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from numbers import Real
from time import perf_counter
from typing import Any

from ..compiler.errors import TuningError
from ..compiler.shown import shown


class _PartOver(Exception):
    """The time of a part of an exploration is over."""


class Clock:
    """Records what every stage keeps and its time, and ends an exploration that takes too long."""

    def __init__(self, stages: list[dict[str, Any]], limit: float | None) -> None:
        if limit is not None and not (isinstance(limit, Real) and limit > 0):
            raise TuningError(f"time_limit is {shown(limit)}: a positive number of seconds is expected")
        self.stages = stages
        self._begin = self._last = perf_counter()
        self._part = math.inf
        self._limit = limit
        self._known: str | None = None
        self._end = math.inf if limit is None else self._last + limit

    def watch(self) -> None:
        """Raise TuningError once the time is over."""
        now = perf_counter()
        if now > self._part:
            raise _PartOver
        if now > self._end:
            raise self.too_large()

    def too_large(self) -> TuningError:
        """Return the error that the time is over and nothing was found."""
        kept = [f"{stage['stage']} {stage['kept']}" for stage in self.stages]
        done = ", ".join([*kept, *([self._known] if self._known else [])]) or "not even counted"
        return TuningError(
            f"this schedule space is too large to explore in {self._limit:g} seconds ({done}); give a larger time_limit, the preset"
            " 'pigeon' (least depth), fewer operands or fewer sparse ones"
        )

    @contextmanager
    def part(self, share: float) -> Iterator[None]:
        """Leave the block once this share of the time limit is over, counted from the beginning of the exploration."""
        self._part = self._begin + share * (self._end - self._begin)
        with suppress(_PartOver):
            yield
        self._part = math.inf

    def stop(self) -> None:
        """Remove the time limit from what is listed later."""
        self._end = math.inf

    def report(self, known: str) -> None:
        """Remember the progress of the present stage."""
        self._known = known

    def note(self, stage: str, kept: int, **more: int | str) -> None:
        """Add a stage that has ended, with the number that it kept and further facts."""
        now = perf_counter()
        self.stages.append({"stage": stage, "kept": kept, "seconds": now - self._last, **more})
        self._known = None
        self._last = perf_counter()
