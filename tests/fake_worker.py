"""A worker whose kernels do what their schedule says, in plain numpy: ``python fake_worker.py [WORD]``.

Schedules of fakes are words: ``sleep 0.01`` takes that long, by a clock of its own that nothing else on the machine disturbs,
``crash``, ``hang``, ``wrong``, ``illegal``, ``compile``, ``bug``,
``convert 0.001`` (after a conversion of 20 ms), ``nan``, ``waits-for-another X`` (to be compiled beside it) and ``same as X`` (the source
of X). Where a real schedule is needed, ``unroll(j, N)`` stands for word N of ``CODES``, and the default schedule for the first, or for
WORD.
"""

from __future__ import annotations

import os
import random
import re
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sparsetune.compiler.errors import BuildError, ScheduleError
from sparsetune.compiler.notation.parser import parse
from sparsetune.compiler.storage.tensor import Tensor
from sparsetune.tuner.kernels import Task
from sparsetune.tuner.measure import service, worker
from sparsetune.tuner.measure.company import Alone
from sparsetune.tuner.measure.oracle import evaluate_dense
from sparsetune.tuner.measure.sampling import Contestant, burst, run_once
from sparsetune.tuner.measure.timing import measure

CODES = ("sleep 0.004", "sleep 0.002", "sleep 0.001", "crash", "wrong", "illegal", "compile", "same as sleep 0.002", "sleep 0.003", "hang",
         "convert 0.0005", "convert 0.001")  # fmt: skip

DEFAULT = " ".join(sys.argv[1:]) or CODES[0]


def decoded(schedule: str) -> str:
    """Return the word that an ``unroll`` directive or the default schedule stands for, and other schedules as they are."""
    found = re.fullmatch(r"unroll\(\w+, (\d+)\)", schedule)
    return CODES[int(found[1])] if found else schedule or DEFAULT


class Steady:
    """A clock that kernels move on by the time that they take, give or take a thousandth; every reading takes a microsecond."""

    now = 0.0
    draw = random.Random(0)

    def look(self) -> float:
        self.now += 1e-6
        return self.now

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)
        self.now += seconds * self.draw.uniform(1, 1.001)


CLOCK = Steady()
_TWO = threading.Barrier(2)


class FakeKernel:
    def __init__(self, task: Task, schedule: str) -> None:
        schedule = decoded(schedule)
        self.task = task
        self.words = schedule.split()
        self.source = f"{task.expression}: {schedule.removeprefix('same as ')}"
        self.converts, self.shares_work = self.words[0] == "convert", False
        self.built_by = ("gcc: 1.0", "-O3")

    def load(self, seconds: float) -> None:
        if self.words == ["slow-compile"]:
            time.sleep(1e6)
        if self.words[0] == "waits-for-another":
            _TWO.wait(20.0)
        if self.words == ["compile"]:
            raise BuildError("gcc failed")

    def bind(self, operands: Mapping[str, Tensor], threads: int, out: Any = None) -> Any:
        dense = {name: operand.to_numpy() for name, operand in operands.items()}
        CLOCK.sleep(0.02 * self.converts)
        right = evaluate_dense(parse(self.task.expression), dense, self.task.extents)

        def run() -> Any:
            match self.words:
                case ["same", "as", "sleep", seconds] | ["sleep" | "convert", seconds]:
                    CLOCK.sleep(float(seconds))
                case ["crash"]:
                    os.abort()
                case ["hang"]:
                    time.sleep(1e6)
                case ["wrong"]:
                    return right + 1e-6
                case ["nan"]:
                    return right * np.nan
                case ["prints"]:
                    os.write(1, b"a kernel that prints to standard output\n")
            return right

        return run


def compile_fake(task: Task, schedule: str, operands: Mapping[str, Tensor]) -> FakeKernel:
    match decoded(schedule).split():
        case ["illegal"]:
            raise ScheduleError("directive 1, split: no such loop\nsecond line")
        case ["bug"]:
            raise KeyError("lost")
    return FakeKernel(task, schedule)


def by_own_clock(timed: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that times fakes by their own clock."""

    def steady(candidate: Contestant, *arguments: Any, **named: Any) -> Any:
        return timed(candidate, *arguments, clock=CLOCK.look, **named)

    return steady


if __name__ == "__main__":
    service.measure, service.burst, service.run_once = by_own_clock(measure), by_own_clock(burst), by_own_clock(run_once)
    worker.main(compile_fake, Alone())
