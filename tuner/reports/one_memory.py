"""Contestants of a race that write into the same memory, as candidates of a search do.

A kernel that waits for memory is up to a tenth faster or slower by the pages in which its result lies, whatever its schedule. If each
contestant had a result of its own, races would compare that luck.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...compiler.build.bound import BoundKernel
from ...compiler.schedule.schedule import Schedule
from ..kernels import compile_problem
from ..problem import Problem


class OneMemory:
    """Binds schedules of a problem; the first one runs once, and the others write where it wrote. Sparse results are made anew by each run.

    Args:
        problem: whose operands all read.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._out: NDArray[Any] | None = None

    def bind(self, schedule: Schedule) -> BoundKernel:
        """Return a bound schedule. Raises ``SparsetuneError``: it is not one of the problem's expression, or does not compile."""
        run = compile_problem(self._problem, schedule).bind(self._problem.operands, self._problem.threads, self._out)
        if self._out is None and isinstance(result := run(), np.ndarray) and result.ndim:
            self._out = result
        return run
