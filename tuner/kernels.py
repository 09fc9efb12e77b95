"""How the tuner compiles: with the same options as ``evaluate``, so that what was compiled while tuning is in the cache later."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import dropwhile
from typing import Any, cast

import numpy as np

from ..compiler.build.bound import BoundKernel
from ..compiler.build.kernel import TypedKernel
from ..compiler.concrete.affine import Boundary
from ..compiler.concrete.check import formats_of, parsed
from ..compiler.concrete.concretize import Concretized
from ..compiler.concrete.given import constant_extents
from ..compiler.concrete.nodes import Program
from ..compiler.frozen import frozen
from ..compiler.kernel import Kernel
from ..compiler.notation.nodes import Assignment
from ..compiler.pipeline import compile_program
from ..compiler.schedule.directives import Parallelize
from ..compiler.schedule.schedule import Schedule
from ..compiler.storage.tensor import Tensor
from ..compiler.targets.target import DeviceLaunch
from ..compiler.units import UNITS
from .extents import reads
from .kept_kernels import kept_kernel
from .legality import keeps_values
from .limits import workspace_elements
from .problem import Problem
from .records import digest


@frozen
class Task:
    """A kernel to compile, as it is sent to the measuring process: texts and numbers.

    ``extents`` are those that plain subscripts or the user tell.
    """

    expression: str
    formats: Mapping[str, str]
    extents: Mapping[str, int]
    target: str
    threads: int
    semiring: tuple[str, str] = ("+", "*")
    dtype: str | None = None
    boundary: Boundary = None

    @classmethod
    def of(cls, problem: Problem) -> Task:
        """Return the task of a problem."""
        formats = {name: str(form) for name, form in problem.stored.items()}
        wish = None if problem.wish is None else problem.wish.name
        known, boundary = dict(problem.known), problem.boundary
        return cls(problem.expression, formats, known, problem.target, problem.threads, problem.semiring, wish, boundary)


@frozen
class Candidate:
    """A compiled schedule with the operands that it is for."""

    compiled: Kernel
    kernel: TypedKernel
    free: Mapping[str, int]  # extents that no operand determines

    @property
    def source(self) -> str:
        """Digest of everything that makes the kernel what it is; comments, which name the schedule and its loops, left out."""
        spec = self.kernel.spec
        operands = [(operand.key, str(operand.given), str(operand.format)) for operand in spec.operands]
        return digest(_without_words(self.kernel.source), spec.build, operands, str(spec.result.format), str(spec.result.requested))

    @property
    def built_by(self) -> tuple[str, str]:
        """The compiler's name and version, and the flags, that it is compiled with. Raises ``BuildError``: there is no such compiler."""
        return self.kernel.target.built_by(self.kernel.spec, self.kernel.source)

    @property
    def converts(self) -> bool:
        """Whether operands are converted when they are bound."""
        return any(operand.given != operand.format for operand in self.kernel.spec.operands)

    @property
    def shares_work(self) -> bool:
        """Whether loops of the schedule are for several threads."""
        return any(isinstance(step, Parallelize) and UNITS[step.unit].is_thread for step in self.compiled.schedule)

    def load(self, seconds: float) -> None:
        """Compile and load. Raises ``BuildError``."""
        self.kernel.load(seconds)

    def bind(self, operands: Mapping[str, Tensor], threads: int, out: Any = None) -> BoundKernel:
        return self.compiled.bind_operands(operands, threads, out, self.free)


def device_clock(bound: Any, flushed: int = 0) -> Callable[[int], float] | None:
    """Return a function that gives the seconds of n runs of a bound kernel by the clock of a GPU; None for kernels on the processor.

    Args:
        flushed: bytes of other memory that are written before each run.
    """
    if not isinstance(bound, BoundKernel) or not bound.kernel.target.on_device:
        return None
    launch = cast("DeviceLaunch", bound.launch)
    return lambda runs: sum(launch.seconds(runs, flushed))


def compile_task(task: Task, schedule: str, operands: Mapping[str, Tensor]) -> Candidate:
    """Generate the code of a schedule for these operands; it is not compiled yet.

    Raises:
        SparsetuneError: the schedule is not legal here.
    """
    assignment = parsed(task.expression)
    free = free_extents(assignment, task.extents)
    compiled = _compile(assignment, task, Schedule(schedule), free)
    return Candidate(compiled, compiled.specialised(operands, free)[0], free)


def free_extents(assignment: Assignment, extents: Mapping[str, int]) -> dict[str, int]:
    """Return the extents that no plain subscript of an operand determines."""
    determined = {part.index for access in reads(assignment) for part in access.subscripts if part.is_index}
    return {index: extent for index, extent in extents.items() if index not in determined}


def compile_problem(problem: Problem, schedule: Schedule) -> Candidate:
    """Generate the code of a schedule for a problem's own operands. Raises ``SparsetuneError`` as ``compile_task``."""
    return compile_task(Task.of(problem), str(schedule), problem.operands)


def legal_candidate(problem: Problem, schedule: Schedule) -> Candidate | None:
    """Return the generated code of a schedule that the tuner, not the user, chose, for the CPU; None if it cannot be used."""
    try:
        found = compile_problem(problem, schedule)
    except Exception:  # a defect of the compiler must not reach a user who did not ask for this schedule
        return None
    program = found.compiled.concretized.program
    kept = not problem.limits.binds(workspace_elements(program, problem)) and keeps_values(problem, program)
    return found if kept else None


def default_keeps_bound(problem: Problem) -> bool:
    """Return whether the default schedule's workspaces keep the memory bound; if not, it is only compared with."""
    return not problem.limits.binds(workspace_elements(problem.concretized().program, problem))


def lowers(problem: Problem, program: Program, default: Concretized) -> bool:
    """Return whether a program of a problem can be lowered; no C is written.

    Args:
        problem: gives the operands.
        program: a schedule applied to the default program.
        default: the default program, with the formats and users' names of its operands.
    """
    scheduled = Concretized(program, default.formats, default.sources)
    try:
        compiled = compile_program(
            problem.viewed, problem.written, problem.stored, problem.constants, scheduled, problem.wish, problem.target, problem.arch
        )
        compiled.specialised(problem.operands, free_extents(problem.written, problem.known))
    except Exception:  # as above
        return False
    return keeps_values(problem, program)


def _compile(assignment: Assignment, task: Task, schedule: Schedule, free: Mapping[str, int]) -> Kernel:
    formats = formats_of(assignment, task.formats)
    constants, wish = constant_extents(assignment, formats, task.extents), None if task.dtype is None else np.dtype(task.dtype)
    edges = task.boundary
    return kept_kernel(task.expression, formats, constants, schedule, wish, task.target, task.semiring, boundary=edges, determined=free)


def _without_words(source: str) -> str:
    """Return C source without the comments at its beginning, which name expression and schedule, and those that say what loops visit."""
    lines = dropwhile(lambda line: line.startswith("/*"), source.splitlines())
    return "\n".join(line.partition("  //")[0] for line in lines)
