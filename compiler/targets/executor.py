"""Runs CUDA kernels on this machine's processor, thread by thread, and checks everything that they do (csrc/st_executor.h).

It is for examining and testing kernels without a GPU: it runs the same source that nvcc compiles.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import replace

from ..errors import BuildError
from ..frozen import frozen
from ..lowering.kernel_spec import KernelSpec
from ..native.library import CSRC
from .cuda import CudaTarget, load_cuda
from .cuda_launch import CudaKernel
from .cuda_objects import object_of

_BOTH = ("-std=gnu++17", "-DST_EXECUTOR", "-w", "-fwrapv", "-fvisibility=hidden", "-fPIC")
FLAGS = ("-O0", *_BOTH, "-fsanitize=bounds", "-DST_EXECUTOR_APART", "-shared")
"""No optimisation: the executor identifies a waiting call by its return address, so that the compiler must not duplicate calls. Arrays
that a thread has for itself are checked by the compiler's means."""
_MACHINE = ("-O2", *_BOTH, "-DST_EXECUTOR_APART", "-c")


def executor_flags(compiler: str, timeout: float = 300.0) -> tuple[str, ...]:
    """Return the flags with which a C++ compiler makes kernels that run on the processor, linked with the executor, compiled once.

    Raises:
        BuildError: the compiler fails.
    """
    machine = object_of((CSRC / "st_executor_machine.h").read_text(), compiler, _MACHINE, timeout)
    return (*FLAGS, str(machine))


@frozen
class Executor(CudaTarget):
    """The processor in the place of a GPU of a given architecture, with as much shared memory as that GPU."""

    arch: str | None = "sm_90"
    name: str = "cuda-executor"

    def built_by(self, spec: KernelSpec, source: str) -> tuple[str, str]:
        return os.environ.get("CXX") or "g++", " ".join(FLAGS)

    def compile(self, spec: KernelSpec, source: str, timeout: float) -> CudaKernel:
        """Compile as C++ and load. Raises ``BuildError`` where there is no C++ compiler, or it fails."""
        compiler = shutil.which(os.environ.get("CXX") or "g++")
        if compiler is None:
            raise BuildError("no C++ compiler was found (g++), which the executor of CUDA kernels needs")
        made = load_cuda(spec, self.vectors(spec), source, compiler, executor_flags(compiler, timeout), ".cpp", timeout)
        return replace(made, flags=FLAGS)


EXECUTOR = Executor()
