"""CUDA kernels on this machine's processor, thread by thread, with everything that they do checked (csrc/st_executor.h).

For looking and testing where there is no GPU: what it runs is the source that nvcc compiles.
"""

from __future__ import annotations

import os
import shutil

from ..errors import BuildError
from ..frozen import frozen
from ..lowering.kernel_spec import KernelSpec
from .cuda import CudaKernel, CudaTarget, load_cuda

FLAGS = ("-O0", "-std=gnu++17", "-DST_EXECUTOR", "-w", "-fwrapv", "-fvisibility=hidden", "-shared", "-fPIC")
"""No optimisation: a call that waits is told from others by where it returns to, and must not be copied."""


@frozen
class Executor(CudaTarget):
    """The processor in the place of a GPU."""

    name: str = "cuda-executor"

    @property
    def built_by(self) -> tuple[str, str]:
        return os.environ.get("CXX") or "g++", " ".join(FLAGS)

    def compile(self, spec: KernelSpec, source: str, timeout: float) -> CudaKernel:
        """Compile as C++ and load. Raises ``BuildError`` where there is no C++ compiler, or it fails."""
        compiler = shutil.which(os.environ.get("CXX") or "g++")
        if compiler is None:
            raise BuildError("no C++ compiler was found (g++), which the executor of CUDA kernels needs")
        return load_cuda(spec, source, compiler, FLAGS, ".cpp", timeout)


EXECUTOR = Executor()
