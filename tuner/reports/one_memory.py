"""Contestants of a race that write into the same memory, as candidates of a search do.

A kernel bound by memory is up to a tenth faster or slower depending on the pages in which its result lies, whatever its schedule. If each
contestant had a result of its own, races would compare that luck.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...compiler.build.bound import BoundKernel
from ...compiler.schedule.schedule import Schedule
from ..kernels import Candidate, compile_problem
from ..problem import Problem


class OneMemory:
    """Binds schedules of a problem so that all write into the result of the first. (A sparse result is a new object in each run.)

    Args:
        problem: gives the operands.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._out: NDArray[Any] | None = None

    def bind(self, schedule: Schedule) -> BoundKernel:
        """Return a bound schedule. Raises ``SparsetuneError``: the schedule is not legal for the expression, or does not compile."""
        return self._bound(compile_problem(self._problem, schedule))

    def call(self, schedule: Schedule) -> Callable[[], Any]:
        """Return a call that stands alone, as trials of a search count it: a schedule that converts operands does so each time.

        Raises:
            SparsetuneError: as ``bind``.
        """
        candidate = compile_problem(self._problem, schedule)
        run = self._bound(candidate)
        return (lambda: self._converted(candidate)()) if candidate.converts else run

    def _converted(self, candidate: Candidate) -> BoundKernel:
        return candidate.bind(self._problem.operands, self._problem.threads, self._out)

    def _bound(self, candidate: Candidate) -> BoundKernel:
        run = self._converted(candidate)
        if self._out is None and isinstance(result := run(), np.ndarray) and result.ndim:
            self._out = result
        return run
