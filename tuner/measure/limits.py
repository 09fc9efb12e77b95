"""The most that a machine can do with some threads: bytes a second through memory, and operations a second in registers.

The roofline of Williams, Waterman and Patterson ("Roofline: an insightful visual performance model", 2009): a kernel that does ``f``
operations on ``b`` bytes takes at least ``max(f / operations, b / bandwidth)``. Both are measured by short C loops (csrc/st_limits.c) on
so many threads at once, the fastest of several undisturbed runs counting, and kept beside the compiled kernels. What was measured while
other programs ran is too low, and is not kept.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...compiler.native.folders import cache_folder
from ...compiler.native.library import load_source
from ...compiler.native.machine import this_machine
from ..written import write_json
from .company import Company, Witness, crowded

_DECLARATIONS = """void st_triad(double *, const double *, const double *, ptrdiff_t);
double st_multiply_adds(ptrdiff_t);
ptrdiff_t st_operations_a_turn(void);"""
_OUTSIDE = 4  # size of the arrays of a triad together, over that of the last-level cache
_ELEMENTS = (2**20, 2**24)  # least and most elements of an array, for all threads together
_TURNS = 500_000
_RUNS, _MOST_RUNS = 5, 20  # undisturbed runs that are enough, and most runs in all


@dataclass(frozen=True)
class MachineLimits:
    """What all threads together reach.

    Attributes:
        bandwidth: bytes a second of a triad of arrays that no cache holds.
        operations: float64 operations a second of fused multiply-adds in registers.
        disturbed: whether other programs ran meanwhile, so that the machine may reach more.
    """

    bandwidth: float
    operations: float
    disturbed: bool = False

    def least_seconds(self, operations: float, bytes: float) -> float:
        """Return the time that so much work takes at least, if its data come from memory."""
        return max(operations / self.operations, bytes / self.bandwidth)


def machine_limits(threads: int, anew: bool = False) -> MachineLimits:
    """Return the limits of this machine with some threads, measured once (half a second) and then remembered, if nothing disturbed that.

    Args:
        threads: that run at once.
        anew: measure, whatever is remembered.

    Raises:
        BuildError: there is no C compiler.
    """
    known = None if anew else known_limits(this_machine().fingerprint, threads)
    if known is not None:
        return known
    found = _measure(threads)
    if not found.disturbed:
        write_json(_place(this_machine().fingerprint, threads), asdict(found))  # if that fails they are measured again next time
    return found


def known_limits(machine: str, threads: int) -> MachineLimits | None:
    """Return what was measured before on a machine, by its fingerprint; None where nothing was."""
    try:
        found = json.loads(_place(machine, threads).read_text())
        limits = MachineLimits(float(found["bandwidth"]), float(found["operations"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return limits if limits.bandwidth > 0 and limits.operations > 0 else None


def _place(machine: str, threads: int) -> Path:
    return cache_folder().parent / "limits" / f"{machine}-{threads}.json"


def _measure(threads: int) -> MachineLimits:
    library = load_source('#include "st_limits.c"\n', _DECLARATIONS)
    cached = max((cache.bytes for cache in this_machine().caches), default=2**25)
    size = int(np.clip(_OUTSIDE * cached // 24, *_ELEMENTS)) // threads
    with ThreadPoolExecutor(threads) as pool:
        triads = [_triad(library, size) for _ in range(threads)]
        moving, beside_moving = _least(pool, triads)
        adding, beside_adding = _least(pool, [lambda: library.st_multiply_adds(_TURNS)] * threads)
    found = beside_moving, beside_adding
    disturbed = crowded([*beside_moving, *beside_adding]) or any(all(one.disturbed for one in beside) for beside in found)
    return MachineLimits(24.0 * size * threads / moving, float(library.st_operations_a_turn()) * _TURNS * threads / adding, disturbed)


def _triad(library: Any, size: int) -> Callable[[], Any]:
    """Return a triad to run, over new arrays whose pages are touched here."""
    from cffi import FFI

    arrays = [np.ones(size) for _ in range(3)]
    pointers = [FFI().cast("double *", array.ctypes.data) for array in arrays]

    def run() -> list[Any]:
        library.st_triad(*pointers, size)
        return arrays

    return run


def _least(pool: ThreadPoolExecutor, runs: list[Callable[[], Any]]) -> tuple[float, list[Company]]:
    """Run all at once several times; return the seconds of the fastest time, and what disturbed each."""
    witness, times, beside = Witness(), [], []
    while sum(not one.disturbed for one in beside) < _RUNS and len(beside) < _MOST_RUNS:
        before, start = witness.begin(), time.perf_counter()
        for future in [pool.submit(run) for run in runs]:
            future.result()
        times.append(time.perf_counter() - start)
        beside.append(witness.since(before))
    return min(times), beside
