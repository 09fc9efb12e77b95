"""Programs of one expression, compiled and run in turn, for the reports on the asymptotic frontier."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from ...compiler.build.bound import BoundKernel
from ...compiler.format import Format
from ...compiler.ir.evaluate import Counts
from ...compiler.ir.interpret import interpret
from ...compiler.kernel import Kernel
from ...compiler.notation.nodes import Access, accesses
from ...compiler.pipeline import compile_kernel
from ...compiler.schedule.directives import Addends, Convert, Reorder
from ...compiler.schedule.schedule import Schedule
from ...compiler.space.reformat import concordant_format
from ...datasets.generate import generate
from ..exploration import Exploration
from ..explore import explore_structures

KERNELS = {
    "SpMV": "a(i) = B(i,j) * c(j)",
    "SpMV2": "a(i) = B(i,j) * C(j,k) * d(k)",
    "SpGEMM": "A(i,j) = B(i,k) * C(k,j)",
    "SpGEMM2": "A(i,j) = B(i,k) * C(k,l) * D(l,j)",
    "SpGEMMH": "A(i,j) = B(i,k) * C(k,j) * D(k,j)",
    "SpMTTKRP": "A(i,j) = B(i,k,l) * C(k,j) * D(l,j)",
}
"""The kernels of Ahrens et al., Figure 7; all matrices and tensors sparse, vectors dense."""

Operands = dict[str, Any]
Item = TypeVar("Item")


def explored(kernel: str, preset: str = "pigeon") -> Exploration:
    """Return the exploration of a kernel in the paper's formats, under the default cost model."""
    return explore_structures(KERNELS[kernel], preset=preset)


def alphabetical(found: Exploration) -> Schedule:
    """Return the paper's default: loops in alphabetical order, no workspace but the one that a result written out of order needs.

    Operands in the order of the loops are read as they are stored; others are converted and stepped through.
    """
    assignment, formats = found.assignment, found.formats
    loops = tuple(sorted({name for access in (assignment.target, *accesses(assignment.value)) for name in access.indices}))

    def converted(access: Access) -> Format:
        places = [loops.index(access.subscripts[mode].index) for mode in formats[access.tensor].order]
        stepped = replace(access, protocols=("step",) * len(places))
        return concordant_format(stepped, formats[access.tensor], loops) if places != sorted(places) else formats[access.tensor]

    sparse = [access for access in accesses(assignment.value) if not formats[access.tensor].is_dense]
    conversions = [Convert(access, str(converted(access))) for access in sparse if converted(access) != formats[access.tensor]]
    return Schedule([Addends((assignment.value,)), Reorder(loops), *conversions])


def compiled(found: Exploration, schedules: Iterable[Schedule]) -> list[Kernel]:
    """Compile schedules; nothing is built before the first run."""
    return [compile_kernel(found.expression, found.formats, schedule=schedule) for schedule in schedules]


def different(kernels: Iterable[Kernel]) -> list[Kernel]:
    """Return the kernels without those whose code equals that of an earlier one."""
    return list({kernel.source: kernel for kernel in reversed(list(kernels))}.values())[::-1]


def spread(items: Sequence[Item], most: int) -> list[Item]:
    """Return at most ``most`` different items, at equal distances in the given order."""
    distinct = list(dict.fromkeys(items))
    if len(distinct) <= most:
        return distinct
    return [distinct[place * len(distinct) // most] for place in range(most)]


def inputs(formats: Mapping[str, Format], result: str, dimension: int, pattern: str) -> Operands:
    """Return operands whose extents all are ``dimension``.

    Args:
        formats: of all tensors; dense operands are random vectors.
        result: the tensor that needs no operand.
        dimension: the value of every extent.
        pattern: kind and options of ``datasets.generate``, with ``{size}`` and ``{seed}``, such as
            "uniform:{size}:density=0.01:seed={seed}".
    """
    made: Operands = {}
    for seed, name in enumerate(sorted(set(formats) - {result})):
        form = formats[name]
        if form.is_dense:
            made[name] = np.random.default_rng(seed).random((dimension,) * len(form))
        else:
            text = pattern.format(size="x".join([str(dimension)] * len(form)), seed=seed)
            made[name] = generate(f"random:{text}", form)
    return made


def runs_of(programs: Sequence[Kernel], operands: Operands) -> list[BoundKernel]:
    """Bind programs to operands; conversions of operands happen here, not in the runs."""
    return [program.bind_operands(operands, threads=1) for program in programs]


def work(run: BoundKernel, most: float = math.inf) -> int:
    """Return the work of a run: elements loaded and stored, passes through loops, and keys compared in searches, added up.

    Args:
        run: a bound kernel; nothing is written to its arrays.
        most: a run that does more is stopped, and its work so far is returned.
    """
    arrays, sizes = run.arguments()
    function = run.kernel.spec.function
    fresh = [parameter.name for parameter in function.arrays if parameter.writable and not parameter.assembled]
    copies = [None if array is None else array.copy() for array in arrays]
    counts = _UpTo(max(most, 0.0))
    with suppress(_Enough):
        interpret(function, copies, sizes, fresh, races=True, counts=counts)
    return counts.work


class _Enough(Exception):
    """Raised to end a run that has done more than is counted."""


class _UpTo(Counts):
    """Counts of a run, which stop it at the next iteration once it has done more than ``most``."""

    def __init__(self, most: float) -> None:
        self._most, self._iterations = most, 0
        super().__init__()

    @property
    def work(self) -> int:
        return self.loads + self.stores + self._iterations + self.probes

    @property
    def iterations(self) -> int:
        return self._iterations

    @iterations.setter
    def iterations(self, count: int) -> None:  # pyright: ignore[reportIncompatibleVariableOverride] counting is noticed
        self._iterations = count
        if self.work > self._most:
            raise _Enough


def least_times(runs: Sequence[Callable[[], Any]], seconds: float, rounds: int = 25) -> list[float]:
    """Return the least time of each function, in seconds; they run in turn until the time is over, at least twice each."""
    least = [float("inf")] * len(runs)
    started, done = time.perf_counter(), 0
    while done < 2 or (done < rounds and time.perf_counter() - started < seconds):
        for number, run in enumerate(runs):
            before = time.perf_counter()
            run()
            least[number] = min(least[number], time.perf_counter() - before)
        done += 1
    return least
