"""What a measuring process does when it is asked: candidates are compiled, checked against a reference and timed."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ...compiler.errors import BuildError, SparsetuneError
from ...compiler.native.idle_memory import IDLE
from ...compiler.native.machine import allowed_cores
from ...compiler.native.memory import available
from ...compiler.storage.tensor import Tensor
from ..kernels import Task, device_clock
from . import handover
from .candidate import Compile, Compiled
from .eviction import FLUSHED, Eviction
from .policy import Policy
from .reference import Referee
from .sampling import Contestant, Counters, Sample, burst, by_work, fastest, least, least_of, quiet, run_once
from .timing import Known, measure
from .verify import Reference, Result, difference

BUILD_SECONDS = 60.0
"""Seconds that a compiler may take for one candidate."""

AHEAD = 16
"""How many candidates may be built together before the first of them is measured."""

_TRIAD_LENGTH = 2**18  # doubles in an array; three arrays fit into a last-level cache
_CONVERSIONS = 3  # undisturbed ones that are timed, where they are short
_LONG_CONVERSION = 0.1  # seconds
_KEPT_BOUND = 8  # bound kernels kept for the finals; each may hold a result array
_MOST_MOVED = 1 << 28  # bytes of operands up to which they are moved: larger ones have so many pages that chance evens out
_ROOM = 4  # times their bytes that have to be available for that
_KEPT_KERNELS = _KEPT_BOUND + AHEAD  # compiled kernels, those built ahead included


@dataclass(frozen=True)
class _Bound:
    """A schedule with its operands: calls that stand ``alone``, each of which converts what has to be converted, calls where that is done
    ``once`` before, and the seconds of a conversion."""

    alone: Contestant
    once: Contestant
    conversion: float


class Service:
    """Answers requests about one task at a time."""

    def __init__(self, compile_kernel: Compile, counters: Counters) -> None:
        self._compile, self._counters = compile_kernel, counters
        self._kernels: OrderedDict[str, Compiled] = OrderedDict()
        self._bound: OrderedDict[str, _Bound] = OrderedDict()
        self._first: tuple[str, Sample] | None = None  # the schedule that made the reference result, and its sample
        self._operands: dict[str, Tensor] = {}
        self._reference: Reference | None = None
        self._out: np.ndarray[Any, Any] | None = None
        self._left: np.ndarray[Any, Any] | None = None  # the result before operands were moved, so that the next one lies elsewhere
        self._triad: np.ndarray[Any, Any] | None = None
        self._eviction: Eviction | None = None

    def load(self, folder: str, task: dict[str, Any]) -> dict[str, Any]:
        """Take the operands and the task; forget everything about the last one."""
        self.forget()
        self._folder, self._task = Path(folder), Task(**{**task, "semiring": tuple(task["semiring"])})
        self._operands = handover.load(self._folder / "operands")
        return {"status": "ok"}

    def forget(self) -> dict[str, Any]:
        """Free everything that belongs to a task."""
        self._kernels.clear()
        self._bound.clear()
        self._reference, self._out, self._eviction, self._first, self._left = None, None, None, None, None
        self._operands = {}
        return {"status": "ok"}

    def build(self, schedules: Sequence[str], known: Collection[str]) -> dict[str, Any]:
        """Generate the code of schedules, and compile what has an unknown digest, with one compiler a core; nothing is timed meanwhile.

        The reply has under "built" a reply for each of them.
        """
        taken = set(known)
        with ThreadPoolExecutor(max(2, len(allowed_cores()))) as pool:
            begun = [self._begin(schedule, taken, pool) for schedule in schedules]
            return {"status": "ok", "built": [finish() for finish in begun]}

    def _begin(self, schedule: str, taken: set[str], pool: ThreadPoolExecutor) -> Callable[[], dict[str, Any]]:
        """Generate the code of a schedule and start to compile it unless its digest is in ``taken``; return a function that waits for that
        and returns the reply."""
        start = time.perf_counter()
        try:
            kernel = self._kernel(schedule)
            source = kernel.source
        except Exception as error:
            reply = failure(error)
            return lambda: reply
        loading = None if source in taken else pool.submit(_load, kernel)
        taken.add(source)
        generating = time.perf_counter() - start

        def finish() -> dict[str, Any]:
            try:
                seconds = generating + (loading.result() if loading else 0.0)
                compiler, flags = kernel.built_by
            except Exception as error:
                return failure(error)
            return {"status": "ok", "seconds": seconds, "source": source, "compiler": compiler, "flags": flags}

        return finish

    def make_reference(self, schedule: str) -> dict[str, Any]:
        """Run a schedule, check it against the definition on a sample, and store its result and bound."""
        if (wrong := self._referee.wrong_on_sample(schedule)) is not None:
            return {"status": "wrong", "message": f"the {'given' if schedule else 'default'} schedule is wrong on a sample: {wrong}"}
        kernel = self._kernel(schedule)
        bound = kernel.bind(self._operands, self._task.threads)
        result, first = run_once(Contestant(bound, device=device_clock(bound)), self._counters)
        if not kernel.converts:
            self._first = schedule, first
        self._referee.keep(result, schedule)
        if isinstance(result, np.ndarray) and result.ndim:
            self._out = result
        return {"status": "ok", "seconds": first.seconds}

    def measure(self, schedule: str, policy: dict[str, Any], rival: str | None, rival_seconds: float | None) -> dict[str, Any]:
        """Run, check, then time a schedule, in turn with a rival that ran before and took so many seconds."""
        beside = None if rival is None else self._bind(rival).alone
        bound, chosen = self._bind(schedule), Policy(**policy)
        mine = bound.alone
        if self._first is not None and self._first[0] == schedule and self._first[1].seconds >= chosen.long_seconds:
            first = self._first[1]  # its result is the reference
        else:
            result, first = run_once(mine, self._counters)
            self._reference = self._reference or self._referee.reference()
            if (wrong := difference(result, self._reference)) is not None:
                return {"status": "wrong", "message": wrong}
        if chosen.is_cold:
            mine, beside = self._colder(mine), beside and self._colder(beside)
        timing = measure(mine, chosen, beside, self._counters, known=Known(first, rival_seconds))
        return {
            "status": "ok",
            "seconds": timing.seconds,
            "samples": [sample.as_row() for sample in timing.samples],
            "interval": timing.interval,
            "ratio": timing.ratio,
            "ratio_interval": timing.ratio_interval,
            "rival_least": min((sample.least for sample in timing.rival), default=None),
            "disturbed": timing.disturbed,
            "stopped": timing.stopped,
            "conversion": bound.conversion,
        }

    def burst(self, schedule: str, batch: int, batches: int, cold: bool, converted: bool = False) -> dict[str, Any]:
        """Run a finalist once to warm up, then in batches; the reply has the fastest batch, the time by processor time, and whether too few
        batches were undisturbed.
        ``converted``: leave out the time of conversions."""
        bound = self._bind(schedule)
        mine = bound.once if converted else bound.alone
        mine = self._colder(mine) if cold else mine
        mine.run()
        samples = burst(mine, batch, batches, self._counters)
        crowded = len(quiet(samples)) < batches
        return {"status": "ok", "sample": fastest(samples).as_row(), "crowded": crowded, "by_work": by_work(samples)}

    def move(self) -> dict[str, Any]:
        """Move operands and result to other memory. Which pages they get makes a schedule some percent faster or slower than another, which
        is no merit of it. Where operands are large, or there is little memory, they stay; "moved" in the reply says whether they do."""
        size = handover.total_bytes(self._operands)
        if size > _MOST_MOVED or _ROOM * size > available().bytes:
            return {"status": "ok", "moved": False}
        self._operands = {name: handover.moved(tensor) for name, tensor in self._operands.items()}
        self._bound.clear()
        self._left, self._out = self._out, None
        IDLE.clear()
        return {"status": "ok", "moved": True}

    def yardstick(self) -> dict[str, Any]:
        """Run a STREAM triad in numpy, on one thread: the same work whatever our compiler does."""
        if self._triad is None:
            self._triad = np.random.default_rng(0).random((3, _TRIAD_LENGTH))
        a, b, c = self._triad

        def triad() -> None:
            np.multiply(c, 3.0, out=a)
            np.add(a, b, out=a)

        return {"status": "ok", "seconds": least_of(triad, 1, 10)}

    def _colder(self, contestant: Contestant) -> Contestant:
        """Return the contestant, changed to run with nothing of its operands in the caches."""
        if contestant.device is not None:
            return replace(contestant, device=device_clock(contestant.run, FLUSHED))
        if self._eviction is None:
            self._eviction = Eviction(self._task.threads)
        return replace(contestant, before=self._eviction)

    def _kernel(self, schedule: str) -> Compiled:
        if schedule not in self._kernels:
            self._kernels[schedule] = self._compile(self._task, schedule, self._operands)
            while len(self._kernels) > _KEPT_KERNELS:
                self._bound.pop(self._kernels.popitem(last=False)[0], None)
        self._kernels.move_to_end(schedule)
        return self._kernels[schedule]

    def _bind(self, schedule: str) -> _Bound:
        """Return a bound schedule."""
        kernel = self._kernel(schedule)
        if schedule not in self._bound:
            kernel.load(BUILD_SECONDS)
            binding = Contestant(lambda: kernel.bind(self._operands, self._task.threads, self._out))
            bound, first = run_once(binding, self._counters)
            conversion = self._conversion(binding, first) if kernel.converts else 0.0
            threads = self._task.threads if kernel.shares_work else 1
            if self._out is None and isinstance(first := bound(), np.ndarray) and first.ndim:
                self._out = first  # all candidates write into the same memory, so that the place of its pages favours none
                bound = kernel.bind(self._operands, self._task.threads, first)
            once = Contestant(bound, device=device_clock(bound), threads=threads)
            self._bound[schedule] = _Bound(self._alone(once, binding, conversion), once, conversion)
            while len(self._bound) > _KEPT_BOUND:
                self._bound.popitem(last=False)
        self._bound.move_to_end(schedule)
        return self._bound[schedule]

    def _alone(self, once: Contestant, binding: Contestant, conversion: float) -> Contestant:
        """Return calls each of which converts operands: the copy that a call has just made lies in other caches than an old one. The time
        of a long conversion is only added, and so is that before kernels that a device's clock times."""
        if not conversion or conversion >= _LONG_CONVERSION or once.device is not None:
            return replace(once, beside=conversion)
        return replace(once, run=lambda: binding.run()())

    def _conversion(self, binding: Contestant, first: Sample) -> float:
        """Return the seconds that converting operands takes without company; a long conversion is done only once."""
        return first.least if first.least >= _LONG_CONVERSION else least(burst(binding, 1, _CONVERSIONS, self._counters))

    def _run_once(self, schedule: str, operands: Mapping[str, Tensor], task: Task) -> Result:
        kernel = self._kernel(schedule) if task == self._task else self._compile(task, schedule, operands)
        return kernel.bind(operands, task.threads)()

    @property
    def _referee(self) -> Referee:
        return Referee(self._folder / "reference", self._task, self._operands, self._run_once)


def failure(error: Exception) -> dict[str, Any]:
    """Return the reply that says how a candidate failed. A defect of our compiler is reported as a failure too and ends no campaign."""
    if isinstance(error, BuildError):
        return {"status": "compile", "message": _first_line(error)}
    if isinstance(error, MemoryError):
        return {"status": "crash", "message": "out of memory"}
    if isinstance(error, SparsetuneError):
        return {"status": "illegal", "message": _first_line(error)}
    return {"status": "crash", "message": f"{type(error).__name__}: {_first_line(error)}"}


def _load(kernel: Compiled) -> float:
    """Compile and load a kernel; return the seconds that it took. Raises ``BuildError``."""
    start = time.perf_counter()
    kernel.load(BUILD_SECONDS)
    return time.perf_counter() - start


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
