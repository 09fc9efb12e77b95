"""cuSPARSE's generic interface, called through its shared library: every algorithm for a kernel is a rival, with and without preprocessing.

The library is searched in the places of the loader, the toolkit, and wheels; nothing else is needed. Operands are in memory that the driver
allocates, and time is that of the device's events, as for generated kernels.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ...compiler.errors import BuildError, ResourceError
from ...compiler.native.library import foreign_interface
from ...compiler.storage.on_device import DeviceArray
from ...compiler.targets.cuda_launch import DECLARATIONS, CudaKernel
from .gpu_rivals import Run, Seconds, Started

ALGORITHMS: Mapping[str, Mapping[str, int]] = {
    "SpMV": {"default": 0, "CSR_ALG1": 2, "CSR_ALG2": 3},
    "SpMM": {"default": 0, "CSR_ALG1": 4, "CSR_ALG2": 6, "CSR_ALG3": 12},
    "SDDMM": {"default": 0},
    "SpGEMM": {"default": 0, "ALG1": 3},
}
"""Numbers of cusparse.h, for compressed rows."""
_NAMES = ("libcusparse.so.12", "libcusparse.so.13", "libcusparse.so.11", "libcusparse.so")
_F64, _I32, _ROWS, _PLAIN, _TRANSPOSED = 1, 2, 2, 0, 1
BEFOREHAND = ": preprocessing alone"
"""Ending of the names of rows for work that is done once before many runs."""
_PREPROCESSED = ("SpMV", "SpMM", "SDDMM")


@cache
def cusparse() -> Any:
    """Return the library, None where the machine has none. $SPARSETUNE_LIBCUSPARSE names one."""
    given = os.environ.get("SPARSETUNE_LIBCUSPARSE")
    for name in (given,) if given else (*_NAMES, *_elsewhere()):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def _elsewhere() -> Iterator[str]:
    wheels = find_spec("nvidia")
    for place in (*(wheels.submodule_search_locations if wheels and wheels.submodule_search_locations else ()), "/usr/local/cuda/lib64"):
        yield from (str(path) for path in sorted(Path(place).rglob("libcusparse.so*")))


def runs_of_cusparse(rivals: Callable[[], CudaKernel], kernel: str, operands: Mapping[str, Any]) -> Iterator[Run]:
    """Yield every algorithm that cuSPARSE has for a kernel, and its preprocessing if it has any; nothing where cuSPARSE is missing."""
    family = kernel.split()[0]
    if cusparse() is None:
        return
    for name, number in ALGORITHMS.get(family, {}).items():
        start = partial(_started, rivals, family, operands, number)
        yield Run(f"{family}, {name}", partial(start, preprocessing=False))
        if family in _PREPROCESSED and hasattr(cusparse(), f"cusparse{family}_preprocess"):
            yield Run(f"{family}, {name}{BEFOREHAND}", partial(start, preprocessing=True))


class _Memory:
    """Arrays of the device, and handles of the library, for one kernel."""

    def __init__(self, loaded: CudaKernel) -> None:
        self.loaded, self.kept, self.library = loaded, list[Any](), cusparse()
        self.handle = self.made("cusparseCreate")

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function of the library. Raises ``BuildError`` if it does not succeed."""
        status = getattr(self.library, name)(*arguments)
        if status:
            raise BuildError(f"{name} of cuSPARSE returns {status}")

    def made(self, name: str, *arguments: Any) -> ctypes.c_void_p:
        found = ctypes.c_void_p()
        self.call(name, ctypes.byref(found), *arguments)
        return found

    def empty(self, shape: tuple[int, ...], dtype: Any = np.float64) -> DeviceArray:
        self.kept.append(self.loaded.empty(shape, np.dtype(dtype)))
        return self.kept[-1]

    def copied(self, array: NDArray[Any]) -> DeviceArray:
        made, given = self.empty(array.shape, array.dtype), np.ascontiguousarray(array)
        if given.nbytes and self.loaded.library.st_upload(_at(made), _host(given), given.nbytes):
            raise BuildError(f"the device reports: {self.loaded.trouble}")
        return made

    def rows(self, matrix: scipy.sparse.csr_array) -> ctypes.c_void_p:
        parts = (self.copied(part) for part in (matrix.indptr.astype(np.int32), matrix.indices.astype(np.int32), matrix.data))
        return self.of_rows(matrix.shape, int(matrix.nnz), [_pointer(part) for part in parts])

    def of_rows(self, shape: tuple[int, ...], entries: int, pointers: Sequence[Any]) -> ctypes.c_void_p:
        sizes = (ctypes.c_int64(size) for size in (*shape, entries))
        return self.made("cusparseCreateCsr", *sizes, *pointers, _I32, _I32, 0, _F64)

    def dense(self, array: DeviceArray) -> ctypes.c_void_p:
        if len(array.shape) == 1:
            return self.made("cusparseCreateDnVec", ctypes.c_int64(array.shape[0]), _pointer(array), _F64)
        rows, columns = (ctypes.c_int64(size) for size in array.shape)
        return self.made("cusparseCreateDnMat", rows, columns, columns, _pointer(array), _F64, _ROWS)

    def room(self, name: str, *arguments: Any) -> ctypes.c_void_p:
        """Return a buffer of as many bytes as a function asks for."""
        count = ctypes.c_size_t()
        self.call(name, *arguments, ctypes.byref(count))
        return _pointer(self.empty((max(int(count.value), 1),), np.uint8))

    def seconds(self, work: Callable[[], Any], runs: int, flushed: int) -> Seconds:
        library, found = self.loaded.library, list[float]()
        other = self.loaded.empty((flushed,), np.dtype(np.uint8)) if flushed else None
        for _ in range(runs + 1):
            if other is not None:
                library.st_zero(_at(other), flushed)
            begin = library.st_moment()
            work()
            found.append(library.st_between(begin, library.st_moment()))
        return found[1:]


def _at(array: DeviceArray) -> Any:
    return foreign_interface(DECLARATIONS).cast("void *", array.pointer)


def _host(array: NDArray[Any]) -> Any:
    return foreign_interface(DECLARATIONS).from_buffer(array)


def _pointer(array: DeviceArray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.pointer)


def _started(
    rivals: Callable[[], CudaKernel], family: str, operands: Mapping[str, Any], algorithm: int, preprocessing: bool
) -> Started:
    memory = _Memory(rivals())
    sparse, *others = (data.to_scipy() if hasattr(data, "to_scipy") else data for data in operands.values())
    if family == "SpGEMM":
        return _product(memory, sparse, others[0], algorithm)
    one, none = (ctypes.byref(value) for value in _constants(memory))
    matrix = memory.rows(sparse if family != "SDDMM" else scipy.sparse.csr_array(sparse, copy=True))
    values = memory.kept[-1]
    inputs = [memory.dense(memory.copied(other)) for other in others]
    if family == "SDDMM":
        made = values
        common = (memory.handle, _PLAIN, _TRANSPOSED, one, *inputs, none, matrix, _F64, algorithm)
    else:
        made = memory.empty((sparse.shape[0], *others[0].shape[1:]))
        ways = (_PLAIN,) if family == "SpMV" else (_PLAIN, _PLAIN)
        common = (memory.handle, *ways, one, matrix, *inputs, none, memory.dense(made), _F64, algorithm)
    buffer = memory.room(f"cusparse{family}_bufferSize", *common)
    if hasattr(memory.library, f"cusparse{family}_preprocess"):
        memory.call(f"cusparse{family}_preprocess", *common, buffer)

    def work() -> None:
        memory.call(f"cusparse{family}", *common, buffer)

    def prepared() -> None:
        memory.call(f"cusparse{family}_preprocess", *common, buffer)

    def result() -> Any:
        work()
        found = made.to_numpy()
        return found * sparse.data if family == "SDDMM" else found  # cuSPARSE samples and does not multiply by the stored values

    return Started(result, partial(memory.seconds, prepared if preprocessing else work))


def _constants(memory: _Memory) -> tuple[ctypes.c_double, ctypes.c_double]:
    found = ctypes.c_double(1.0), ctypes.c_double(0.0)
    memory.kept += found
    return found


def _product(memory: _Memory, first: scipy.sparse.csr_array, second: scipy.sparse.csr_array, algorithm: int) -> Started:
    """Prepare a product of sparse matrices, of which everything is timed: the estimate, the memory of the result, the values."""
    left, right = memory.rows(first), memory.rows(second)
    one, none = (ctypes.byref(value) for value in _constants(memory))
    shape = (first.shape[0], second.shape[1])

    def work() -> tuple[DeviceArray, DeviceArray, DeviceArray]:
        held, memory.kept = memory.kept, []
        positions = memory.empty((shape[0] + 1,), np.int32)
        made = memory.of_rows(shape, 0, [_pointer(positions), None, None])
        plan = memory.made("cusparseSpGEMM_createDescr")
        common = (memory.handle, _PLAIN, _PLAIN, one, left, right, none, made, _F64, algorithm, plan)
        for stage in ("workEstimation", "compute"):
            count = ctypes.c_size_t()
            memory.call(f"cusparseSpGEMM_{stage}", *common, ctypes.byref(count), None)
            room = _pointer(memory.empty((max(int(count.value), 1),), np.uint8))
            memory.call(f"cusparseSpGEMM_{stage}", *common, ctypes.byref(count), room)
        rows, columns, entries = (ctypes.c_int64() for _ in range(3))
        memory.call("cusparseSpMatGetSize", made, *(ctypes.byref(size) for size in (rows, columns, entries)))
        crd, values = memory.empty((entries.value,), np.int32), memory.empty((entries.value,))
        memory.call("cusparseCsrSetPointers", made, _pointer(positions), _pointer(crd), _pointer(values))
        memory.call("cusparseSpGEMM_copy", *common)
        memory.call("cusparseSpGEMM_destroyDescr", plan)
        memory.call("cusparseDestroySpMat", made)
        memory.kept = held
        return positions, crd, values

    def result() -> scipy.sparse.csr_array:
        positions, crd, values = (part.to_numpy() for part in work())
        found = scipy.sparse.csr_array((values, crd, positions), shape=shape)
        if found.nnz != positions[-1]:
            raise ResourceError("cuSPARSE gave another number of entries than it said")
        return found

    return Started(result, partial(memory.seconds, work))
