"""Schedules of a kernel and its rivals on one GPU: each is checked, then timed by the device's clock, and gives a row."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection
from functools import cache, cached_property, partial
from typing import Any

from ...compiler.errors import BuildError
from ...compiler.evaluate import compile_kernel
from ...compiler.frozen import frozen
from ...compiler.kernel import Kernel
from ...compiler.native.devices import architecture_here, gpu_state, require_gpu
from ...compiler.storage.tensor import Tensor
from ...compiler.targets.cuda import load_library, load_on_device
from ...compiler.targets.cuda_launch import CudaKernel, CudaLaunch
from ...compiler.targets.executor import executor_flags
from .gpu_cases import CHOSEN, DEFAULT, GpuCase
from .gpu_cusparse import runs_of_cusparse
from .gpu_oracle import expected, same
from .gpu_rivals import SOURCE, Run, by_hand, runs_by_hand, runs_of_libraries
from .gpu_rows import OURS, Rows

Measured = tuple[list[float], int, str]


@frozen
class Device:
    """Where kernels run: the ``target`` of ``sparsetune.compile``, the name of the device, and its architecture or the compiler for it."""

    target: str
    name: str
    compiler: str

    @classmethod
    def here(cls, target: str) -> Device:
        """Return the GPU of this machine, or the executor. Raises ``BuildError`` where it is missing."""
        if target == "cuda-executor":
            compiler = shutil.which("g++")
            if compiler is None:
                raise BuildError("no C++ compiler was found (g++)")
            return cls(target, "the executor, on a processor", compiler)
        require_gpu("target cuda", "--target cuda-executor runs the kernels on the processor")
        arch, state = architecture_here(), gpu_state()
        return cls(target, f"{state['name']}, driver {state['driver_version']}" if state else arch, arch)

    @property
    def is_gpu(self) -> bool:
        return self.target == "cuda"

    def rivals(self) -> CudaKernel:
        """Return the kernels written by hand, compiled for the device.

        Raises:
            BuildError: they do not compile.
            ResourceError: as ``CudaTarget.compile``.
        """
        source = SOURCE.read_text()
        if not self.is_gpu:
            return by_hand(load_library(source, self.compiler, executor_flags(self.compiler), ".cpp", 300.0), self.compiler)
        return by_hand(load_on_device(source, self.compiler, 300.0), self.compiler)


@cache
def _compiled(kernel: GpuCase, schedule: str | None, target: str) -> Kernel:
    """Return a compiled kernel; all inputs share it."""
    return compile_kernel(kernel.expression, dict(kernel.formats), dict(kernel.columns), schedule, target=target)


class _Contest:
    """The runs of a kernel on one input: each is checked against the expected result, which is computed once, then timed.

    Attributes:
        operands: of all runs.
    """

    def __init__(self, kernel: GpuCase, data: Tensor, device: Device, runs: int, flushed: int) -> None:
        self.operands = kernel.operands(data)
        self._kernel, self._device, self._runs, self._flushed = kernel, device, runs, flushed

    @cached_property
    def _expected(self) -> Any:
        return expected(self._kernel.expression, self.operands)

    def _moved(self) -> int:
        """Return the bytes of the operands and the result, which every kernel has to read or write."""
        return sum(map(_bytes, self.operands.values())) + _bytes(self._expected)

    def ours(self, schedule: str | None) -> Measured:
        bound = _compiled(self._kernel, schedule, self._device.target).bind(**self.operands)
        right, launch = same(bound(), self._expected), bound.launch
        assert isinstance(launch, CudaLaunch)
        return _several(launch.seconds, self._runs, self._flushed), self._moved(), right

    def theirs(self, run: Run) -> Measured:
        started = run.start()
        right = same(started.result(), self._expected)
        return _several(started.seconds, self._runs, self._flushed), self._moved(), right


def race(
    kernel: GpuCase, name: str, data: Tensor, device: Device, rows: Rows, *, runs: int, flushed: int = 0,
    only: Collection[str] | None = None, others: bool = True,
) -> None:  # fmt: skip
    """Measure schedules of a kernel, and its rivals, on one input.

    Args:
        flushed: bytes of other memory that are written before each run.
        only: the names of schedules; None: all.
        others: whether rivals are measured.
    """
    contest = _Contest(kernel, data, device, runs, flushed)
    for what, schedule in kernel.schedules():
        if (only is None or what in only) and kernel.takes(what, data):
            rows.add(name, int(data.nnz), kernel.name, OURS, what, partial(contest.ours, schedule))
    if not others:
        return
    for run in runs_by_hand(device.rivals, kernel.name, contest.operands):
        rows.add(name, int(data.nnz), kernel.name, "by hand", run.what, partial(contest.theirs, run))
    for run in runs_of_cusparse(device.rivals, kernel.name, contest.operands) if device.is_gpu else ():
        rows.add(name, int(data.nnz), kernel.name, "cuSPARSE", run.what, partial(contest.theirs, run))
    for library, run in runs_of_libraries(kernel.name, contest.operands) if device.is_gpu else ():
        rows.add(name, int(data.nnz), kernel.name, library, run.what, partial(contest.theirs, run))


def race_choice(kernel: GpuCase, name: str, data: Tensor, device: Device, rows: Rows, *, runs: int, flushed: int = 0) -> None:
    """Measure the schedule that the static model chooses for one input, without any measurement before."""
    if rows.has(name, kernel.name, OURS, CHOSEN):
        return
    contest = _Contest(kernel, data, device, runs, flushed)
    schedule = kernel.choice(contest.operands)
    rows.add(name, int(data.nnz), kernel.name, OURS, CHOSEN + (schedule or DEFAULT), partial(contest.ours, schedule))


SLOW, FEW = 0.05, 3
"""A kernel that takes at least so many seconds runs only a few times."""


def _several(seconds: Callable[[int, int], list[float]], runs: int, flushed: int) -> list[float]:
    """Return the seconds of ``runs`` runs, of fewer if each is long."""
    first = seconds(1, flushed)
    return seconds(FEW if first[0] > SLOW else runs, flushed)


def _bytes(data: Any) -> int:
    """Return the bytes of an array, a tensor, or a SciPy matrix by rows or columns."""
    if hasattr(data, "indptr"):
        return sum(int(part.nbytes) for part in (data.data, data.indices, data.indptr))
    return int(data.nbytes)
