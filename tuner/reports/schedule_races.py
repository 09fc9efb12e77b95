"""Races between named schedules: equal shares of nonzeros against equal shares of rows, and a sparse matrix times a sparse vector."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...compiler.schedule.schedule import Schedule
from ...compiler.storage.construct import tensor
from ...compiler.storage.tensor import Tensor
from ..kernels import compile_problem
from ..resolve import make_problem
from .race import Pace
from .records import Row
from .speed import nest_runs, rows_of_race
from .workloads import KERNELS

_SPLIT = "collapse(i, j, f); pos(f, p, A); split_up(p, p0, p1, {}); parallelize(p0, cpu_thread, {})"
_TILES = _SPLIT.format(64, "atomics, dynamic, 1")
_HALVES = _SPLIT.format(2, "atomics, static")
_TEMPORARY = _SPLIT.format(2, "temporary, static")
_VECTOR = "; parallelize(p1, cpu_vector, parallel_reduction)"
_ONE_BY_ONE = "; unroll(p1, 1)"
ROWS, SHARES = "rows, static", "nonzeros, atomics"
HEAVIER, LIGHTER = "the heavier half of the rows", "the lighter half of the rows"
DEFAULT_SUMS = "; sums as by default"
SKEW_SCHEDULES: Mapping[str, Mapping[str, str]] = {
    "SpMV": {
        ROWS: "parallelize(i, cpu_thread, no_races, static); unroll(j, 1)",
        SHARES: _TILES + _ONE_BY_ONE,
        "nonzeros in halves, atomics": _HALVES + _ONE_BY_ONE,
        "nonzeros in halves, temporary": _TEMPORARY + _ONE_BY_ONE,
        ROWS + DEFAULT_SUMS: "parallelize(i, cpu_thread, no_races, static)",
        SHARES + DEFAULT_SUMS: _TILES,
        "nonzeros, atomics; vectors, parallel reduction": _TILES + _VECTOR,
        "nonzeros in halves, temporary; vectors, parallel reduction": _TEMPORARY + _VECTOR,
    },
    "SpMM 32": {
        ROWS: "parallelize(i, cpu_thread, no_races, static)",
        SHARES: _TILES,
        "nonzeros in halves, atomics": _HALVES,
        "nonzeros in halves, temporary": _TEMPORARY,
        "nonzeros, atomics; vectors without races": _TILES + "; parallelize(k, cpu_vector, no_races)",
    },
}
"""The schedules of the splits, by kernel and name; parallel loops may have different race strategies."""

SKEWS = (0, 1, 2, 4, 8)
LONG_ROWS = "skew {}, long rows"
SKEWED: Mapping[str, Mapping[str, str]] = {
    "SpMV": {LONG_ROWS: "random:skewed:20000x20000:nnz=1e7:skew={}", "skew {}": "random:skewed:500000x500000:nnz=1e7:skew={}"},
    "SpMM 32": {LONG_ROWS: "random:skewed:20000x4000:nnz=4e6:skew={}", "skew {}": "random:skewed:200000x200000:nnz=2e6:skew={}"},
}
"""The skewed inputs, by kernel and name. "Long rows" have hundreds of nonzeros, and the dense operand fits into the second-level cache, so
that each nonzero costs the same; other rows have tens, and the operand is larger than the caches. One thread takes at least ten
milliseconds, so that starting threads does not matter."""

VECTOR_DENSITY = 0.1
SPMSPV_SCHEDULES: Mapping[tuple[str, int], tuple[str, str]] = {
    ("columns of stored elements (default)", 1): ("csc", ""),
    ("all columns, elements searched", 1): ("csc", "protocol(x, locate)"),
    ("rows, merged with the vector", 1): ("csr", ""),
    ("columns, atomics", 2): ("csc", "parallelize(j, cpu_thread, atomics, dynamic, 64)"),
    ("columns, temporary", 2): ("csc", "parallelize(j, cpu_thread, temporary, static)"),
    ("rows, merged with the vector", 2): ("csr", "parallelize(i, cpu_thread, no_races, dynamic, 64)"),
}
"""Format of the matrix and schedule, by name and threads."""
SPMSPV_INPUTS = {"uniform": "random:uniform:100000x100000:nnz=2e6", "power law": "random:rmat:scale=17:nnz=2e6"}
SPMSPV_DEFAULT = "columns of stored elements (default)"


def imbalance(skew: float) -> float:
    """Return twice the share of the nonzeros in the heavier half of rows whose lengths fall by exp(-skew) from first to last."""
    return 2 / (1 + math.exp(-skew / 2))


def predicted_factor(unequal: float, speedup: float = 2.0) -> float:
    """Return how much longer two threads take with half of the rows each than with equal work.

    Where two threads are twice as fast as one this is the imbalance ``unequal``: twice the heavier half's share of the work. Where they
    share memory, each works at half of ``speedup`` until the lighter half is done, and the other at full speed from then on.
    """
    return (2 - unequal) + speedup * (unequal - 1)


def skew_race(kernel: str, rows: str, skew: float, pace: Pace) -> list[Row]:
    """Race the splits of a kernel with 1 and 2 threads on rows whose lengths fall by exp(-skew) from first to last.

    ``rows`` is one of the names in ``SKEWED``. Each half of the rows is also timed by itself, with one thread, which gives the imbalance of
    the work.
    """
    from ...datasets.inputs import load

    case, name, schedules = KERNELS[kernel], rows.format(skew), SKEW_SCHEDULES[kernel]
    source = tensor(load(SKEWED[kernel][rows].format(skew)), "dense, compressed", dtype=np.float64)
    texts = {(variant, threads): text for threads in (1, 2) for variant, text in schedules.items()}
    runs = nest_runs(case, name, source, texts)
    middle = source.shape[0] // 2
    for half, part in ((HEAVIER, source[:middle]), (LIGHTER, source[middle:])):
        found = {(variant.replace(ROWS, half), 1): text for variant, text in schedules.items() if variant.startswith(ROWS)}
        runs |= nest_runs(case, name, part, found)
        texts |= found
    return rows_of_race("skew", kernel, name, runs, texts, pace)


def spmspv_race(name: str, sparse_result: bool, pace: Pace) -> list[Row]:
    """Race schedules of y = A x, A by columns and x with a tenth of its elements stored, with SciPy; y dense or compressed."""
    from ...datasets.inputs import load

    loaded = load(SPMSPV_INPUTS[name])
    matrices = {form: tensor(loaded, form, dtype=np.float64) for form in ("csc", "csr")}
    columns = loaded.shape[1]
    x = tensor(load(f"random:uniform:{columns}:density={VECTOR_DENSITY}"), "compressed", dtype=np.float64)
    runs: dict[tuple[str, int], Callable[[], Any]] = {}
    texts: dict[tuple[str, int], str] = {}
    for (variant, threads), (form, schedule) in SPMSPV_SCHEDULES.items():
        text = schedule + "; assemble(y, insert)" if sparse_result and threads == 2 and form == "csr" else schedule
        if sparse_result and threads == 2 and form == "csc":
            continue  # columns scatter into all of the result, and threads cannot insert there
        result = "compressed" if sparse_result else None
        problem = make_problem("y(i) = A(i,j) * x(j)", {"A": matrices[form], "x": x}, result, threads=threads, name=name)
        runs[variant, threads] = compile_problem(problem, Schedule(text)).bind(problem.operands, threads)
        texts[variant, threads] = text
    runs |= _scipy(matrices["csc"], x, sparse_result)
    return rows_of_race("spmspv", "SpMSpV, sparse result" if sparse_result else "SpMSpV", name, runs, texts, pace)


def _scipy(matrix: Tensor, x: Tensor, sparse_result: bool) -> dict[tuple[str, int], Callable[[], Any]]:
    """Return SciPy's product with the vector as a sparse column, and for a dense result also with a dense vector."""
    import scipy.sparse

    stored: Any = matrix.to_scipy()
    (places,), values = x.to_coordinates()
    column = scipy.sparse.csc_array((values, (places, np.zeros(len(places), np.int64))), (x.shape[0], 1))
    dense: Any = x.to_numpy()
    found: dict[tuple[str, int], Callable[[], Any]] = {("SciPy, sparse vector", 1): lambda: stored @ column}
    if not sparse_result:
        found["SciPy, dense vector", 1] = lambda: stored @ dense
    return found
