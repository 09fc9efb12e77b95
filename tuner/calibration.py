"""Measuring the constants of the static model: ``tune-kernel doctor --calibrate``.

Generated kernels are timed on small operands that lie in the caches, and on larger ones whose gathered rows come from the last level of
cache or from memory. ``Constants`` says what each constant means.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..compiler.concrete.loop_tag import FAR_AHEAD
from ..compiler.native.machine import this_machine
from ..compiler.schedule.schedule import Schedule
from ..compiler.space.decorations import build_choices
from ..compiler.storage.aligned import aligned_full
from ..datasets.generate import generate
from .constants import Constants, remember_constants
from .costs import operations
from .kernels import compile_problem
from .measure.company import Company, Witness, crowded
from .measure.sampling import Counters, least_of
from .resolve import make_problem
from .row_ends import UNROLLED, USUAL, row_ends
from .widths import halved

_TURNS, _SAMPLE = 15, 1e-3  # how often all kernels run in turn; seconds of one sample
_NEAR_ROWS = 64  # rows of the operand that the first level of cache holds
_FAR_ROWS = 2**17  # most rows of the operand that is larger than the second-level cache
_FARTHEST_ROWS = 2**19  # most rows of the operand that is larger than all caches
_SPMM, _SDDMM, _SPMV = "Y(i,k) = A(i,j) * X(j,k)", "C(i,j) = A(i,j) * U(i,k) * X(j,k)", "y(i) = A(i,j) * X(j)"
_COLUMNS = {_SPMM: 32, _SDDMM: 16, _SPMV: 1}
_PREFETCHED = "prefetch(j, X, 8)"
_SHARED = "parallelize(i, cpu_thread, no_races, {})"
_RANDOM_ROWS = tuple(round(2 ** (half / 2)) for half in range(24, 34))  # of operands with rows of random lengths
_FORGOTTEN = 1.3  # least time of a row over that in a smaller operand, where ends of rows are not remembered
_LEAST_START = 5e-7  # seconds: a line of cache goes from core to core and back a few times, whatever one measurement says
_MESH = "random:stencil5:45x45"  # a matrix with short rows, most of them as long as the one before, in the second level of cache
_ALIKE = Constants(short_sums=Constants.operation)  # counts all operations alike
_IN_VECTORS = "parallelize(j, cpu_vector, parallel_reduction)"


def calibrate(threads: int, counters: Counters | None = None) -> tuple[Constants, bool]:
    """Measure the constants with so many threads, and remember them where other programs did not disturb that; takes some seconds.

    Args:
        threads: that kernels run with.
        counters: tell of other programs; None: those of this machine.

    Returns:
        The constants, and whether other programs disturbed.

    Raises:
        BuildError: there is no C compiler.
    """
    company: list[Company] = []
    found = _measured(threads, counters or Witness(), company)
    found = found if found.is_sane else Constants()
    disturbed = crowded(company) or 2 * sum(one.disturbed for one in company) > len(company)
    if not disturbed:
        remember_constants(found)
    return found, disturbed


def _measured(threads: int, counters: Counters, company: list[Company]) -> Constants:
    """Return the constants; what disturbed each turn is added to ``company``."""
    usual = Constants()

    def times(source: str, *schedules: str, expression: str = _SPMM, columns: int = 0) -> tuple[float, list[float]]:
        matrix = generate(source, "csr")
        rows, chosen = matrix.shape
        columns = columns or _COLUMNS[expression]
        dense = aligned_full(max(rows, chosen) * columns, 1.0, np.float64).reshape(-1, columns)
        operands = {"A": matrix, "X": dense[:chosen, 0] if expression == _SPMV else dense[:chosen], "U": dense[:rows]}
        named = {name: operand for name, operand in operands.items() if f"{name}(" in expression}
        problem = make_problem(expression, named, "csr" if expression == _SDDMM else None, threads=threads)
        runs: list[Callable[[], Any]] = [
            compile_problem(problem, Schedule(text)).bind(problem.operands, problem.threads) for text in schedules
        ]
        least = [math.inf] * len(runs)
        for _ in range(_TURNS):
            before = counters.begin()
            for place, run in enumerate(runs):
                least[place] = min(least[place], least_of(run, max(1, math.ceil(_SAMPLE / max(least_of(run, 1, 1), 1e-9))), 1))
            company.append(counters.since(before))
        found = problem.concretized()
        return operations(problem, found.program, found.sources, _ALIKE), least

    count, (serial,) = times(_uniform(2048, 2048, 40_000), "")
    constants = {"operation": serial / count}
    count, (serial,) = times(_MESH, "", expression=_SPMV)
    constants["short_sums"] = max(serial / count, constants["operation"])
    size = 4 * max((level.bytes for level in this_machine().caches if level.level == 2), default=2**20)
    for name, expression in (("prefetch", _SPMM), ("summed", _SDDMM)):
        row = 8 * _COLUMNS[expression]
        rows, farthest = min(size // row, _FAR_ROWS), min(2 * this_machine().last_level_cache // row, _FARTHEST_ROWS)
        shapes = {
            "near": (2048, _NEAR_ROWS, 40_000), "hit": (2048, 2048, 40_000), "miss": (rows // 2, rows, 6 * rows),
            "far": (farthest // 8, farthest, 2 * farthest),
        }  # fmt: skip
        for place, shape in shapes.items():
            _, (plain, prefetched) = times(_uniform(*shape), "", _PREFETCHED, expression=expression)
            constants[f"{name}_{place}"] = plain / prefetched
    _, (asking, silent) = times(_uniform(1024, 1024, 50_000), "", _IN_VECTORS, expression=_SPMV)
    constants["stream_hit"] = silent / asking
    rows = size // 8
    _, (near, far) = times(_uniform(rows, rows, 4 * rows), "", f"prefetch(j, A, {FAR_AHEAD})", expression=_SPMV)
    constants["stream_miss"] = far / near
    ends = dict[float, float]()
    for rows in _RANDOM_ROWS:
        source = _uniform(rows, 1024, USUAL * rows)
        _, (took,) = times(source, f"unroll(j, {UNROLLED})", expression=_SPMV)
        ends[row_ends(generate(source, "csr"), 1).surprises] = took / rows
    constants["surprises"] = remembered_surprises(ends)
    if (half := halved(build_choices())) is not None:
        _, (whole, halves) = times(_uniform(2048, 2048, 40_000), "", str(Schedule([half])), columns=3 * this_machine().vector_bytes // 16)
        constants["halved"] = halves / whole
    if threads > 1:
        _, (alone, together) = times(_uniform(64, 64, 256), "", _SHARED.format("static"))
        constants["start"] = start_of_threads(alone, together, threads)
        _, (whole, pieces) = times(_uniform(4096, 4096, 8192), _SHARED.format("static"), _SHARED.format("dynamic, 1"))
        constants["chunk"] = max((pieces - whole) * threads / 4096, usual.chunk / 10)
    return Constants(**constants)


def _uniform(rows: int, columns: int, entries: int) -> str:
    """Return the name of a matrix whose entries are spread evenly."""
    return f"random:uniform:{rows}x{columns}:nnz={entries}"


def start_of_threads(alone: float, together: float, threads: int) -> float:
    """Return the seconds that threads take to begin and to end, from the seconds of a small loop by one thread and by all together."""
    return max(together - alone / threads, _LEAST_START)


def remembered_surprises(times: Mapping[float, float]) -> float:
    """Return how many surprises are remembered from call to call, from the times of a row by the surprises of an operand: more than the
    last has before the first whose rows take longer than those of a smaller one, since their ends are not foreseen, and fewer than that."""
    most, least = min(times), math.inf
    for surprises, seconds in sorted(times.items()):
        if seconds > _FORGOTTEN * least:
            return math.sqrt(most * surprises)
        most, least = surprises, min(least, seconds)
    return most
