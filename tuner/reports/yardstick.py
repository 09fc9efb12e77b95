"""Races of generated kernels against hand-written ones, which are not part of the project: a user's folder has them in ``kernels.c``.

Its functions are ``spmv``, ``spmm``, ``sddmm`` and ``mttkrp`` over CSR and CSF arrays of int32 and float64; rows of dense operands are a
multiple of 32 long, 64-byte aligned, and index arrays are readable 64 entries past their end.
"""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...compiler.errors import DataError
from ...compiler.schedule.schedule import Schedule
from ...compiler.storage.aligned import aligned_copy, aligned_full
from ...compiler.storage.tensor import Tensor
from ..kernels import compile_problem
from .page import HAND
from .race import Pace
from .records import Row
from .speed import THREADS, Schedules, rows_of_race
from .workloads import KernelCase, operands_of, problem_of

FLAGS = "-O3 -march=native -mprefer-vector-width=512 -fopenmp -fassociative-math -fno-signed-zeros -fno-trapping-math"
FUNCTIONS = {"SpMV": "spmv", "SpMM 32": "spmm", "SpMM 128": "spmm", "SDDMM 128": "sddmm", "MTTKRP 32": "mttkrp"}
_READ_PAST_END = 64


def hand_library(folder: Path) -> ctypes.CDLL:
    """Compile ``kernels.c`` of a folder with gcc and load it.

    Raises:
        DataError: there is no such file, or gcc does not compile it.
    """
    source = folder / "kernels.c"
    if not source.exists():
        raise DataError(f"{source} does not exist")
    with tempfile.TemporaryDirectory() as place:
        library = Path(place) / "kernels.so"
        try:
            subprocess.run(
                ["gcc", *FLAGS.split(), "-shared", "-fPIC", str(source), "-o", str(library)], check=True, capture_output=True, text=True
            )
        except FileNotFoundError as error:
            raise DataError("gcc is needed for the hand-written kernels") from error
        except subprocess.CalledProcessError as error:
            raise DataError(f"gcc refuses {source}: {error.stderr.splitlines()[0]}") from error
        return ctypes.CDLL(str(library))


def hand_race(library: ctypes.CDLL, case: KernelCase, name: str, source: Tensor, schedules: Schedules, pace: Pace) -> list[Row]:
    """Return the times of the hand-written and the generated kernel, with 1 and 2 threads, in one race.

    Raises:
        AssertionError: the two disagree.
    """
    operands = operands_of(case, source)
    runs: dict[tuple[str, int], Callable[[], Any]] = {}
    texts: dict[tuple[str, int], str] = {}
    result, by_hand = _call(library, case, source, operands)
    for threads in THREADS:
        problem = problem_of(case, operands, name, threads)
        chosen = schedules.get((case.name, name, threads))
        texts["tuned", threads] = chosen.schedule if chosen is not None else ""
        ours = compile_problem(problem, Schedule(texts["tuned", threads])).bind(problem.operands, threads)
        runs[HAND, threads] = _with_threads(by_hand, threads)
        runs["tuned", threads] = ours
        runs[HAND, threads]()
        _check(ours(), result, case, name)
    return rows_of_race("hand", case.name, name, runs, texts, pace)


def _check(ours: Any, result: NDArray[Any], case: KernelCase, name: str) -> None:
    found = ours.values if isinstance(ours, Tensor) else ours
    if not np.allclose(np.asarray(found).reshape(result.shape), result):
        raise AssertionError(f"{case.name} on {name}: the generated and the hand-written kernel disagree")


def _with_threads(run: Callable[[], None], threads: int) -> Callable[[], None]:
    openmp = ctypes.CDLL("libgomp.so.1")

    def call() -> None:
        openmp.omp_set_num_threads(threads)
        run()

    return call


def _call(library: ctypes.CDLL, case: KernelCase, source: Tensor, operands: Mapping[str, Any]) -> tuple[NDArray[Any], Callable[[], None]]:
    """Return the array of the result, and a function that fills it."""
    indices = [_padded(array) for level in source.levels for array in level.parts.values()]
    names = [access for access in operands if access != case.sparse]
    dense = [aligned_copy(operands[name].to_numpy()) for name in names]
    columns = next(iter(case.dims.values()), 1)
    entries = len(source.values) if case.result else source.shape[0] * columns
    result = aligned_full(entries, 0, np.float64)
    arrays = [*indices, aligned_copy(source.values), *dense, result]
    arguments: list[Any] = [ctypes.c_int(source.shape[0]), *(ctypes.c_void_p(array.ctypes.data) for array in arrays)]
    if FUNCTIONS[case.name] in ("spmm", "sddmm"):
        arguments.append(ctypes.c_int(columns))
    function = getattr(library, FUNCTIONS[case.name])
    return result, _bound(function, arguments, arrays)


def _bound(function: Any, arguments: Sequence[Any], held: Sequence[NDArray[Any]]) -> Callable[[], None]:
    """Return a function that calls another one; it keeps the arrays alive."""

    def call(_held: Sequence[NDArray[Any]] = held) -> None:
        function(*arguments)

    return call


def _padded(array: NDArray[Any]) -> NDArray[Any]:
    padded = aligned_full(len(array) + _READ_PAST_END, 0, np.int32)
    padded[: len(array)] = array
    return padded
