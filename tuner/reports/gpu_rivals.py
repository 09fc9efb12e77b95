"""The rivals of generated kernels on a GPU: kernels written by hand (csrc/st_gpu_rivals.cu), and the installed libraries.

As for our kernels, operands are on the device before a rival is timed, and its time is by the device's clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ...compiler.errors import BuildError, ResourceError
from ...compiler.frozen import frozen
from ...compiler.ir.nodes import F64, I32, ArrayParameter
from ...compiler.native.library import CSRC
from ...compiler.storage.tensor import Tensor
from ...compiler.targets.cuda_launch import CudaKernel

Seconds = list[float]


@frozen
class Started:
    """A rival's kernel with its operands on the device.

    Attributes:
        result: computes, and returns the result on the host.
        seconds: ``seconds(runs, flushed)`` returns the seconds of ``runs`` runs, each after ``flushed`` bytes of other memory were written.
    """

    result: Callable[[], Any]
    seconds: Callable[[int, int], Seconds]


@frozen
class Run:
    """A rival's kernel: its name ``what``, and a function that brings its operands to the device and returns it started."""

    what: str
    start: Callable[[], Started]


SOURCE = CSRC / "st_gpu_rivals.cu"


def by_hand(library: Any, compiler: str) -> CudaKernel:
    """Return the kernels written by hand, loaded from their compiled object. Each has parameters of its own (``_parameters``)."""
    return CudaKernel(library, library.st_kernel, (), True, compiler, ())


BY_HAND = {"SpMV": ((0, "row to a warp"), (1, "merge path")), "SpMM 32": ((2, "wide loads"),), "SpMM 128": ((2, "wide loads"),),
           "SDDMM 32": ((3, "row to a warp"),), "SpMSpV": ((4, "entry of the vector to a warp"),)}  # fmt: skip
"""By kernel: the numbers (csrc/st_gpu_rivals.cu) and names of what is written by hand."""


def runs_by_hand(rivals: Callable[[], CudaKernel], kernel: str, operands: Mapping[str, Any]) -> Iterator[Run]:
    """Yield the handwritten kernels that compute what a kernel does; ``rivals`` loads them when the first is started."""
    for number, what in BY_HAND.get(kernel, ()):
        yield Run(what, partial(_started, rivals, kernel, operands, number))


def _started(rivals: Callable[[], CudaKernel], kernel: str, operands: Mapping[str, Any], number: int) -> Started:
    sparse, *others = operands.values()
    loaded, stored = rivals(), cast("Any", sparse.to_scipy() if isinstance(sparse, Tensor) else sparse)
    columns = others[-1].shape[1] if others[-1].ndim == 2 else 1
    made = np.zeros(stored.nnz if kernel.startswith("SDDMM") else (stored.shape[0], columns) if columns > 1 else stored.shape[0])
    entries = stored.nnz
    if kernel == "SpMSpV":
        (places,) = np.nonzero(others[0])
        others, entries = [places.astype(np.int32), others[0][places]], len(places)
    inputs = [stored.indptr.astype(np.int32), stored.indices.astype(np.int32), stored.data, *others]
    launch = replace(loaded, parameters=_parameters(inputs)).bind([*inputs, made], (stored.shape[0], entries, number, columns), 0, 1)

    def result() -> Any:
        made[...] = 0
        if launch.run():
            raise ResourceError("the device had no memory")
        return made.copy()

    return Started(result, launch.seconds)


def _parameters(inputs: Sequence[NDArray[Any]]) -> tuple[ArrayParameter, ...]:
    kinds = (I32 if array.dtype == np.int32 else F64 for array in inputs)
    given = (ArrayParameter(f"input{number}", kind, ("", "values")) for number, kind in enumerate(kinds))
    return (*given, ArrayParameter("result", F64, ("", "values"), writable=True))


def installed() -> list[str]:
    """Return the names of the installed libraries that can be raced."""
    return [name for name in ("cupy", "torch") if find_spec(name) is not None]


def runs_of_libraries(kernel: str, operands: Mapping[str, Any]) -> Iterator[tuple[str, Run]]:
    """Yield (library, run) for every library that is installed and has the kernel."""
    for name in installed():
        what, kernels, start = _LIBRARIES[name]
        if kernel.startswith(kernels):
            yield name, Run(what, partial(_of_library, name, start, kernel, operands))


def _of_library(name: str, start: Callable[..., Started], kernel: str, operands: Mapping[str, Any]) -> Started:
    """Start a library's kernel. An error in a library is raised as one that becomes a row, so that the measurement goes on."""
    try:
        started = start(import_module(name), kernel, operands)
    except Exception as error:
        raise _failure(name, error) from error

    def told(call: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any) -> Any:
            try:
                return call(*arguments)
            except Exception as error:
                raise _failure(name, error) from error

        return called

    return Started(told(started.result), told(started.seconds))


def _failure(name: str, error: Exception) -> BuildError:
    return BuildError(f"{name}: {(str(error).strip() or repr(error)).splitlines()[0]}")


def _cupy(cupy: Any, kernel: str, operands: Mapping[str, Any]) -> Started:
    """Start a kernel of CuPy, whose CSR matrices multiply by cuSPARSE."""
    cupy.get_default_memory_pool().free_all_blocks()
    sparse = import_module("cupyx.scipy.sparse")
    first, second = operands.values()
    left = sparse.csr_matrix(first.to_scipy())
    right = sparse.csr_matrix(second.to_scipy()) if isinstance(second, Tensor) else cupy.asarray(second)

    def seconds(runs: int, flushed: int) -> Seconds:
        other, found = cupy.empty(max(flushed, 1), cupy.uint8), []
        for _ in range(runs + 1):
            other.fill(0)
            begin, end = cupy.cuda.Event(), cupy.cuda.Event()
            begin.record()
            _ = left @ right
            end.record()
            end.synchronize()
            found.append(cupy.cuda.get_elapsed_time(begin, end) / 1e3)
        return found[1:]

    return Started(lambda: (left @ right).get(), seconds)


def _torch(torch: Any, kernel: str, operands: Mapping[str, Any]) -> Started:
    torch.cuda.empty_cache()

    def on_device(data: Any) -> Any:
        if not isinstance(data, Tensor):
            return torch.from_numpy(data).cuda()
        stored: Any = data.to_scipy()
        parts = (torch.from_numpy(np.array(part)) for part in (stored.indptr, stored.indices, stored.data))
        return torch.sparse_csr_tensor(*parts, size=stored.shape, device="cuda")

    first, *others = map(on_device, operands.values())
    if kernel.startswith("SDDMM"):
        columns = others[1].T

        def call() -> Any:
            return torch.sparse.sampled_addmm(first, others[0], columns, beta=0.0)
    else:

        def call() -> Any:
            return first @ others[0]

    def result() -> Any:
        found = call()
        if found.layout == torch.strided:
            return found.cpu().numpy()
        import scipy.sparse

        parts = (found.values(), found.col_indices(), found.crow_indices())
        made = scipy.sparse.csr_array(tuple(part.cpu().numpy() for part in parts), shape=tuple(found.shape))
        if kernel.startswith("SDDMM"):
            return made.data * operands["B"].to_scipy().data  # it samples without multiplying by what is stored
        return made

    def seconds(runs: int, flushed: int) -> Seconds:
        other, found = torch.empty(max(flushed, 1), dtype=torch.uint8, device="cuda"), []
        for _ in range(runs + 1):
            other.zero_()
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            call()
            end.record()
            end.synchronize()
            found.append(begin.elapsed_time(end) / 1e3)
        return found[1:]

    return Started(result, seconds)


_LIBRARIES: Mapping[str, tuple[str, tuple[str, ...], Callable[..., Started]]] = {
    "cupy": ("cuSPARSE by @", ("SpMV", "SpMM", "SpGEMM"), _cupy),
    "torch": ("torch.sparse", ("SpMV", "SpMM", "SDDMM", "SpGEMM"), _torch),
}
"""By the name of a library: what is raced, the kernels that it has, and the function that starts one."""
