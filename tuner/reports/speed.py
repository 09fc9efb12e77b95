"""Races of tuned kernels: against the default schedule, with one and two threads, against other libraries, against a triad."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from ...compiler.errors import FormatError
from ...compiler.pipeline import compile_kernel
from ...compiler.schedule.schedule import Schedule
from ...compiler.storage.tensor import Tensor
from ..kernels import compile_problem
from ..peers import Peer
from ..problem import Problem
from .race import Pace, race
from .records import Chosen, Row
from .workloads import KernelCase, operands_of, problem_of, random_dense

Run = Callable[[], Any]
Schedules = Mapping[tuple[str, str, int], Chosen]
THREADS = (1, 2)
TRIAD = "a(i) = b(i) + 3.0 * c(i)"
_TRIAD_SCHEDULE = "split(i, i0, i1, 65536); parallelize(i0, cpu_thread, no_races, static)"
_TRIAD_ELEMENTS = 10_000_000
NARROW, NARROW_ROWS = "stored narrow", "dense, narrow"


def kernel_race(case: KernelCase, name: str, source: Tensor, schedules: Schedules, peers: tuple[Peer, ...], pace: Pace) -> list[Row]:
    """Return the times of a kernel on an input: default schedule, tuned for 1 and 2 threads, and every peer that has the kernel."""
    operands = operands_of(case, source)
    runs: dict[tuple[str, int], Run] = {}
    texts: dict[tuple[str, int], str] = {}
    for threads in THREADS:
        problem = problem_of(case, operands, name, threads)
        runs |= {(variant, threads): run for variant, run in _ours(case, name, problem, schedules, texts)}
        narrow = _stored_narrow(case, operands)
        if narrow is not None:
            texts[NARROW, threads] = texts.get(("tuned", threads), "")
            narrow_problem = problem_of(case, narrow, name, threads)
            runs[NARROW, threads] = compile_problem(narrow_problem, Schedule(texts[NARROW, threads])).bind(narrow, threads)
        runs |= {(peer.name, threads): run for peer, run in _prepared(peers, problem)}
    return rows_of_race("kernels", case.name, name, runs, texts, pace)


def _ours(
    case: KernelCase, name: str, problem: Problem, schedules: Schedules, texts: dict[tuple[str, int], str]
) -> Iterator[tuple[str, Run]]:
    default = compile_problem(problem, Schedule()).bind(problem.operands, 1) if problem.threads == 1 else None
    if default is not None:
        yield "default", default
    chosen = schedules.get((case.name, name, problem.threads))
    if chosen is not None:
        texts["tuned", problem.threads] = chosen.schedule
        kept = default if not chosen.schedule else None  # if tuning kept the default, both are one kernel
        yield "tuned", kept or compile_problem(problem, Schedule(chosen.schedule)).bind(problem.operands, problem.threads)


def _stored_narrow(case: KernelCase, operands: Mapping[str, Tensor]) -> dict[str, Tensor] | None:
    """Return operands with the matrix stored as ``narrow``; None where its rows are too long, or coordinates are little of what is read."""
    if case.dims or case.result is not None:
        return None
    try:
        return {**operands, case.sparse: operands[case.sparse].convert(NARROW_ROWS)}
    except FormatError:
        return None


def _prepared(peers: tuple[Peer, ...], problem: Problem) -> Iterator[tuple[Peer, Run]]:
    for peer in peers:
        run = peer.prepare(problem)
        if run is not None and (problem.threads == 1 or peer.name != "scipy"):
            yield peer, run


def bandwidth_race(case: KernelCase, name: str, source: Tensor, schedules: Schedules, pace: Pace) -> list[Row]:
    """Return the times of a kernel and of a triad, both with 1 and 2 threads, in one race."""
    operands = operands_of(case, source)
    first, second = random_dense("b", (_TRIAD_ELEMENTS,)), random_dense("c", (_TRIAD_ELEMENTS,))
    triad = compile_kernel(TRIAD, schedule=_TRIAD_SCHEDULE)
    runs: dict[tuple[str, int], Run] = {}
    texts: dict[tuple[str, int], str] = {}
    for threads in THREADS:
        problem = problem_of(case, operands, name, threads)
        runs |= {(variant, threads): run for variant, run in _ours(case, name, problem, schedules, texts)}
        runs["triad", threads] = triad.bind(b=first, c=second, threads=threads)
        texts["triad", threads] = _TRIAD_SCHEDULE
    return rows_of_race("bandwidth", case.name, name, runs, texts, pace)


def triad_bytes() -> int:
    """Return the bytes of a triad: two arrays read, one written."""
    return 3 * _TRIAD_ELEMENTS * np.dtype(np.float64).itemsize


def product_bytes(rows: int, columns: int, entries: int) -> int:
    """Return the bytes that a matrix-vector product has to move: values, coordinates, positions, x and y once each."""
    return entries * (8 + 4) + 4 * (rows + 1) + 8 * columns + 8 * rows


def nests_race(
    figure: str, case: KernelCase, name: str, source: Tensor, nests: Mapping[str, str], threads: tuple[int, ...], pace: Pace
) -> list[Row]:
    """Return the times of several schedules of one kernel, by the names given."""
    texts = {(nest, count): text for count in threads for nest, text in nests.items()}
    return rows_of_race(figure, case.name, name, nest_runs(case, name, source, texts), texts, pace)


def nest_runs(case: KernelCase, name: str, source: Tensor, nests: Mapping[tuple[str, int], str]) -> dict[tuple[str, int], Run]:
    """Return a kernel with schedules by name and threads, bound to an input."""
    operands = operands_of(case, source)
    runs: dict[tuple[str, int], Run] = {}
    for (nest, count), text in nests.items():
        problem = problem_of(case, operands, name, count)
        runs[nest, count] = compile_problem(problem, Schedule(text)).bind(problem.operands, count)
    return runs


def rows_of_race(
    figure: str, kernel: str, name: str, runs: Mapping[tuple[str, int], Run], texts: Mapping[tuple[str, int], str], pace: Pace
) -> list[Row]:
    """Run functions by variant and threads in turn, and return their times."""
    load = os.getloadavg()[0]
    found = race({f"{variant} {threads}": run for (variant, threads), run in runs.items()}, pace)
    return [
        Row(figure, kernel, name, variant, threads, load, texts.get((variant, threads), ""), found[f"{variant} {threads}"])
        for variant, threads in runs
    ]
