"""After how many calls a tuned schedule has saved the time that conversions, compilation or the search took."""

from __future__ import annotations

import math
import time

from ..compiler.schedule.schedule import Schedule
from .kernels import compile_problem
from .problem import Problem


def conversion_seconds(problem: Problem, schedule: Schedule) -> float:
    """Return the seconds that converting operands takes before a schedule can read them; 0 where it reads what is given."""
    wanted = {operand.tensor: operand for operand in compile_problem(problem, schedule).kernel.spec.operands}
    converted = [(problem.operands[name], one.format) for name, one in wanted.items() if one.given != one.format]
    start = time.perf_counter()
    for operand, form in converted:
        operand.convert(form)
    return time.perf_counter() - start if converted else 0.0


def calls_to_pay(price: float, gain: float) -> int | None:
    """Return after how many calls a gain of so many seconds a call has paid a price in seconds; None: never."""
    if price <= 0:
        return 0
    return math.ceil(price / gain) if gain > 0 else None
