"""The process in which candidates are compiled, checked and timed: ``python -m sparsetune.tuner.measure``.

One JSON request a line on standard input, one JSON reply a line on what was standard output (which then goes to standard error, so
that nothing else gets between the replies). A candidate that crashes or hangs takes this process with it and nothing else. The
process ends when its parent does.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np

from ...compiler.concrete.affine import Viewed, is_affine, viewed
from ...compiler.concrete.check import formats_of
from ...compiler.errors import BuildError, FormatError, SparsetuneError
from ...compiler.native.machine import allowed_cores
from ...compiler.notation.functions import has_functions
from ...compiler.notation.nodes import Assignment
from ...compiler.notation.parser import parse
from ...compiler.notation.printer import show_assignment
from ...compiler.storage.tensor import Tensor
from ..extents import all_extents
from ..kernels import Task, device_clock, free_extents
from . import handover
from .eviction import FLUSHED, Eviction
from .lifeline import end_with_parent
from .oracle import absolute
from .policy import Policy
from .sampling import Contestant, Counters, Sample, burst, fastest, least_of, run_once
from .timing import Known, measure
from .verify import Reference, Result, dense_difference, difference, oracle_difference, reduction_length, sampled_problem, tolerance_factor
from .windows import as_read, cut_out

BUILD_SECONDS = 60.0
"""How long a compiler may take for one candidate."""

AHEAD = 16
"""How many candidates may be built together before the first of them is measured."""

CORES = "SPARSETUNE_WORKER_CORES"
"""Environment variable: the numbers of the cores that a worker may use, with commas between them."""

_TRIAD_LENGTH = 2**18  # doubles an array: three of them fit into a last-level cache
_KEPT_BOUND = 8  # bound kernels kept for the finals; each may hold a result array
_KEPT_KERNELS = _KEPT_BOUND + AHEAD  # with what was built ahead
_MEMORY_SHARE = 0.9  # of the machine's, before a candidate's allocation fails
_ORACLE_ENTRIES = 5_000_000  # stored entries up to which a sample is cut out of the operands


class Compiled(Protocol):
    """A candidate's generated code; ``kernels.compile_task`` makes them, tests may make others."""

    @property
    def built_by(self) -> tuple[str, str]:
        """The compiler's name and version, and the flags, that it is compiled with."""
        ...

    @property
    def source(self) -> str:
        """Digest of the generated source."""
        ...

    @property
    def converts(self) -> bool:
        """Whether binding converts operands, which is then part of the cost."""
        ...

    @property
    def shares_work(self) -> bool:
        """Whether several threads share its work, if there are several."""
        ...

    def load(self, seconds: float) -> None:
        """Compile and load."""
        ...

    def bind(self, operands: Mapping[str, Tensor], threads: int, out: Any = None) -> Bound:
        """Return what runs on the operands."""
        ...


Bound = Callable[[], Result]
Compile = Callable[[Task, str, Mapping[str, Tensor]], Compiled]


class Worker:
    """Answers requests about one task at a time."""

    def __init__(self, compile_kernel: Compile, counters: Counters) -> None:
        self._compile, self._counters = compile_kernel, counters
        self._kernels: OrderedDict[str, Compiled] = OrderedDict()
        self._bound: OrderedDict[str, Contestant] = OrderedDict()
        self._first: tuple[str, Sample] | None = None  # what made the reference result, and how long that took
        self._operands: dict[str, Tensor] = {}
        self._reference: Reference | None = None
        self._out: np.ndarray[Any, Any] | None = None
        self._triad: np.ndarray[Any, Any] | None = None
        self._eviction: Eviction | None = None

    def load(self, folder: str, task: dict[str, Any]) -> dict[str, Any]:
        """Take the operands and the task; forget everything about the last one."""
        self.forget()
        self._folder, self._task = Path(folder), Task(**{**task, "semiring": tuple(task["semiring"])})
        self._operands = handover.load(self._folder / "operands")
        return {"status": "ok"}

    def forget(self) -> dict[str, Any]:
        """Let go of all that belongs to a task."""
        self._kernels.clear()
        self._bound.clear()
        self._reference, self._out, self._eviction, self._first = None, None, None, None
        self._operands = {}
        return {"status": "ok"}

    def build(self, schedules: Sequence[str], known: Collection[str]) -> dict[str, Any]:
        """Generate the code of schedules and compile that whose digest is not known, one compiler a core: nothing is timed meanwhile.

        There is a reply for each of them under "built".
        """
        taken = set(known)
        with ThreadPoolExecutor(max(2, len(allowed_cores()))) as pool:
            begun = [self._begin(schedule, taken, pool) for schedule in schedules]
            return {"status": "ok", "built": [finish() for finish in begun]}

    def _begin(self, schedule: str, taken: set[str], pool: ThreadPoolExecutor) -> Callable[[], dict[str, Any]]:
        """Generate the code of a schedule and have it compiled unless it is taken; return what waits for that and gives the reply."""
        start = time.perf_counter()
        try:
            kernel = self._kernel(schedule)
            source = kernel.source
        except Exception as error:
            failure = _failure(error)
            return lambda: failure
        loading = None if source in taken else pool.submit(_load, kernel)
        taken.add(source)
        generating = time.perf_counter() - start

        def finish() -> dict[str, Any]:
            try:
                seconds = generating + (loading.result() if loading else 0.0)
                compiler, flags = kernel.built_by
            except Exception as error:
                return _failure(error)
            return {"status": "ok", "seconds": seconds, "source": source, "compiler": compiler, "flags": flags}

        return finish

    def make_reference(self, schedule: str) -> dict[str, Any]:
        """Run a schedule, check it against the definition on a sample, and store its result and bound."""
        assignment = parse(self._task.expression)
        if (wrong := self._check_against_definition(assignment, schedule)) is not None:
            return {"status": "wrong", "message": f"the {'given' if schedule else 'default'} schedule is wrong on a sample: {wrong}"}
        kernel = self._kernel(schedule)
        bound = kernel.bind(self._operands, self._task.threads)
        result, first = run_once(Contestant(bound, device=device_clock(bound)), self._counters)
        if not kernel.converts:
            self._first = schedule, first
        folder = self._folder / "reference"
        folder.mkdir(exist_ok=True)
        stored = {"result": _as_tensor(result)}
        if (largest := self._bound_of(assignment, schedule)) is not None:
            stored["bound"] = _as_tensor(largest)
        handover.save(folder, stored)
        if isinstance(result, np.ndarray) and result.ndim:
            self._out = result
        return {"status": "ok", "seconds": first.seconds}

    def _bound_of(self, assignment: Assignment, schedule: str) -> Result | None:
        """Run the expression without differences on absolute operands; None where it is what it was without."""
        if has_functions(assignment.value) or self._task.semiring != ("+", "*"):
            return None
        bounding = absolute(assignment)
        magnitudes = {name: _absolute(operand) for name, operand in self._operands.items()}
        if bounding == assignment and all(magnitudes[name] is operand for name, operand in self._operands.items()):
            return None
        task = replace(self._task, expression=show_assignment(bounding))
        try:
            return self._run_once(schedule, magnitudes, task)
        except SparsetuneError:  # a schedule may speak of signs
            return self._run_once("", magnitudes, task)

    def measure(self, schedule: str, policy: dict[str, Any], rival: str | None, rival_seconds: float | None) -> dict[str, Any]:
        """Run, check, then time a schedule, in turn with a rival that ran before and took so many seconds."""
        beside = None if rival is None else self._bind(rival)
        mine, chosen = self._bind(schedule), Policy(**policy)
        if self._first is not None and self._first[0] == schedule and self._first[1].seconds >= chosen.long_seconds:
            first = self._first[1]  # its result is the reference
        else:
            result, first = run_once(mine, self._counters)
            if (wrong := difference(result, self._known_reference())) is not None:
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
            "disturbed": timing.disturbed,
            "stopped": timing.stopped,
        }

    def burst(self, schedule: str, batch: int, batches: int, cold: bool) -> dict[str, Any]:
        """Run a finalist once to warm up, then in batches; the reply has the fastest of them."""
        mine = self._colder(self._bind(schedule)) if cold else self._bind(schedule)
        mine.run()
        return {"status": "ok", "sample": fastest(burst(mine, batch, batches, self._counters)).as_row()}

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
        """Return what is run with nothing of its operands in the caches."""
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

    def _bind(self, schedule: str) -> Contestant:
        """Return a bound schedule; where binding converts operands, each run counts it."""
        kernel = self._kernel(schedule)
        if schedule not in self._bound:
            kernel.load(BUILD_SECONDS)
            start = time.perf_counter()
            bound = kernel.bind(self._operands, self._task.threads, self._out)
            conversion = time.perf_counter() - start if kernel.converts else 0.0
            threads = self._task.threads if kernel.shares_work else 1
            if self._out is None and isinstance(first := bound(), np.ndarray) and first.ndim:
                self._out = first  # all candidates, this one too, write into the same memory, so that its pages favour none
                bound = kernel.bind(self._operands, self._task.threads, first)
            self._bound[schedule] = Contestant(bound, conversion, device=device_clock(bound), threads=threads)
            while len(self._bound) > _KEPT_BOUND:
                self._bound.popitem(last=False)
        self._bound.move_to_end(schedule)
        return self._bound[schedule]

    def _run_once(self, schedule: str, operands: Mapping[str, Tensor], task: Task) -> Result:
        kernel = self._kernel(schedule) if task == self._task else self._compile(task, schedule, operands)
        return kernel.bind(operands, task.threads)()

    def _check_against_definition(self, assignment: Assignment, schedule: str) -> str | None:
        if sum(len(operand.values) for operand in self._operands.values() if not operand.format.is_dense) > _ORACLE_ENTRIES:
            return None
        if is_affine(assignment):
            return self._check_window(assignment, schedule)
        try:
            operands, extents = sampled_problem(assignment, self._operands, self._task.extents)
            result = self._run_once(schedule, operands, replace(self._task, extents=extents))
        except FormatError:  # rows and columns of a symmetric matrix make none; all of it is compared with the reference
            return None
        return oracle_difference(assignment, result, operands, extents, self._task.semiring, self._task.dtype)

    def _check_window(self, assignment: Assignment, schedule: str) -> str | None:
        """As ``_check_against_definition``, of an assignment with compound subscripts."""
        plain, known, semiring = self._plain(assignment), self._task.extents, self._task.semiring
        if (found := cut_out(plain, assignment, self._operands, known)) is None:
            return None
        operands, known = found
        result = self._run_once(schedule, operands, replace(self._task, extents=known))
        extents = all_extents(plain, known, {name: operand.shape for name, operand in operands.items()})
        dense, places = as_read(plain, operands, extents, semiring)
        return dense_difference(plain.assignment, result, dense, places, extents, semiring, self._task.dtype)

    def _plain(self, assignment: Assignment) -> Viewed:
        known = formats_of(assignment, self._task.formats)
        return viewed(assignment, known, free_extents(assignment, self._task.extents), self._task.boundary)

    def _known_reference(self) -> Reference:
        if self._reference is None:
            stored = handover.load(self._folder / "reference")
            result, bound = (_as_result(stored[name]) for name in ("result", "bound" if "bound" in stored else "result"))
            assignment, usual = parse(self._task.expression), self._task.semiring == ("+", "*")
            bound = None if has_functions(assignment.value) or not usual else bound
            shapes = {name: operand.shape for name, operand in self._operands.items()}
            extents = all_extents(self._plain(assignment), self._task.extents, shapes)
            length = reduction_length(assignment, self._operands, extents)
            self._reference = Reference(result, bound, tolerance_factor(stored["result"].dtype, length))
        return self._reference


def serve(requests: IO[str], replies: IO[str], compile_kernel: Compile, counters: Counters) -> None:
    """Answer requests until there are no more."""
    worker = Worker(compile_kernel, counters)
    actions: dict[str, Callable[..., dict[str, Any]]] = {
        "load": worker.load,
        "forget": worker.forget,
        "build": worker.build,
        "reference": worker.make_reference,
        "measure": worker.measure,
        "burst": worker.burst,
        "yardstick": worker.yardstick,
    }
    for line in requests:
        request = json.loads(line)
        reply = _answer(actions[request.pop("action")], request)
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


def main(compile_kernel: Compile, counters: Counters) -> None:
    """Serve on this process's standard input and output; ``counters`` tell which samples were disturbed."""
    end_with_parent()
    _take_all_cores()
    _limit_memory()
    _take_precedence()
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
        serve(sys.stdin, replies, compile_kernel, counters)


def _answer(action: Callable[..., dict[str, Any]], request: dict[str, Any]) -> dict[str, Any]:
    try:
        return action(**request)
    except Exception as error:
        return _failure(error)


def _failure(error: Exception) -> dict[str, Any]:
    """Return the reply that says how a candidate failed; a fault of the compiler in one is counted and told, and ends no campaign."""
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


def _absolute(operand: Tensor) -> Tensor:
    """Return the operand with absolute values, itself where it has no others."""
    if not np.any(operand.values < 0) and not np.any(np.isnan(operand.values)):
        return operand
    return Tensor.made(operand.shape, operand.format, operand.levels, np.abs(operand.values), operand.fill_value)


def _as_tensor(result: Result) -> Tensor:
    from ...compiler.storage.construct import tensor

    return result if isinstance(result, Tensor) else tensor(np.array(result))


def _as_result(stored: Tensor) -> Result:
    return stored.values.reshape(stored.shape) if stored.format.is_dense else stored


def _take_all_cores() -> None:
    """Run on every core that the parent may use, though its first thread may be bound to one of them (OMP_PROC_BIND)."""
    cores = {int(core) for core in os.environ.get(CORES, "").split(",") if core}
    if cores and hasattr(os, "sched_setaffinity"):
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, cores)


def _take_precedence() -> None:
    """Run before other programs where this user may, so that they disturb measurements less."""
    with contextlib.suppress(OSError, AttributeError):
        os.setpriority(os.PRIO_PROCESS, 0, -10)


def _limit_memory() -> None:
    """Let an allocation beyond most of the machine's memory fail here instead of taking the machine down."""
    try:
        import resource

        physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_DATA, (int(_MEMORY_SHARE * physical), resource.RLIM_INFINITY))
    except (ImportError, ValueError, OSError):
        return
