"""The target cuda: NVIDIA GPUs. NVRTC compiles the kernels for one architecture, a C++ compiler the host code; the driver loads both.

Where nvcc compiles the whole source, or a C++ compiler does for the executor, the same functions are loaded (``cuda_launch``).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import field, replace
from functools import cache
from typing import Any

from ..codegen.c import KERNEL
from ..codegen.cuda import print_cuda
from ..errors import BuildError, ResourceError
from ..frozen import frozen
from ..ir.intrinsics import INTRINSICS, Intrinsic
from ..ir.nodes import SHARE_BEGIN, SHARE_NUMBER, Function
from ..lowering.kernel_spec import KernelSpec
from ..native.devices import architecture_here, check_architecture, require_gpu, shared_bytes
from ..native.library import foreign_interface, open_object
from ..native.nvrtc import nvrtc_version
from ..passes.cuda import CUDA as PASSES
from ..passes.manager import PassList, VectorUnit
from ..units import NVIDIA
from .cuda_launch import DECLARATIONS, CudaKernel
from .cuda_objects import cubin_of, host_object, shared_object

_OF_PIECES = ("enlist", "copy", "copy_part", "begin_pieces", "note_piece", "sum_pieces", "piece_place")
OF_PROCESSORS = frozenset((SHARE_NUMBER, SHARE_BEGIN, "map_insert", "map_find", "map_size", "map_key", "map_clear", *_OF_PIECES))
"""Functions for processors only: while kernels of GPUs run, nothing grows, and their threads add atomically or to sums of their block."""


@frozen
class CudaTarget:
    """NVIDIA GPUs of an architecture, such as "sm_90"; None: that of this machine's first one."""

    arch: str | None = None
    name: str = NVIDIA.target
    language: str = "cuda"
    units: tuple[str, ...] = NVIDIA.units
    memory: tuple[str, ...] = ("heap", "registers", "block", "warp")
    groups: tuple[str, ...] = ("block", "warp")
    intrinsics: Mapping[str, Intrinsic] = field(
        default_factory=lambda: {name: found for name, found in INTRINSICS.items() if name not in OF_PROCESSORS and found.on_gpu}
    )
    passes: PassList = PASSES
    on_device: bool = NVIDIA.on_device
    has_architectures: bool = NVIDIA.has_architectures

    def for_architecture(self, arch: str) -> CudaTarget:
        """Return this target for an architecture. Raises ``ScheduleError`` if NVIDIA's GPUs have none of that name."""
        check_architecture(arch)
        return replace(self, arch=arch)

    def require(self) -> None:
        """Raise ``BuildError`` if no architecture is named and this machine has no GPU."""
        if self.arch is None:
            require_gpu(f"target {self.name}", "use target cpu, or to see code and choices for another GPU name its arch, such as 'sm_90'")

    def built_by(self, spec: KernelSpec, source: str) -> tuple[str, str]:
        """Return the compiler and its flags. Raises ``BuildError`` where there is no GPU to say which architecture it is."""
        return nvrtc_version(), f"-arch={self.arch or architecture_here()}"

    def vectors(self, spec: KernelSpec) -> VectorUnit:
        """Return what passes know of the GPU. If no architecture is given and this machine has no GPU, assume what every GPU has."""
        return VectorUnit(0, shared_bytes=shared_bytes(self.arch or _first_architecture()))

    def print(self, function: Function, heading: str) -> str:
        return print_cuda(function, heading)

    def compile(self, spec: KernelSpec, source: str, timeout: float) -> CudaKernel:
        """Compile for the GPU of this machine with NVRTC, and load.

        Raises:
            BuildError: there is no GPU or no NVRTC, NVRTC fails, the driver is too old, or the GPU has another architecture.
        """
        require_gpu("target cuda")
        arch = self.arch or architecture_here()
        library = load_on_device(source, arch, timeout)
        return _kernel(library, spec, self.vectors(spec), nvrtc_version(), (f"-arch={arch}",))


CUDA = CudaTarget()


@cache
def _first_architecture() -> str:
    """Return the architecture of this machine's first GPU; an empty text if there is none, since source is printed without one, too."""
    with suppress(BuildError):
        return architecture_here()
    return ""


def compile_flags(arch: str) -> tuple[str, ...]:
    """Return the flags with which nvcc makes a shared object for an architecture."""
    return ("-O3", "-std=c++17", f"-arch={arch}", "-shared", "-Xcompiler", "-fPIC")


def load_on_device(source: str, arch: str, timeout: float) -> Any:
    """Compile CUDA C++ for the GPU of this machine, or take it from the cache, and return a loaded object like that of ``load_library``.

    Raises:
        BuildError, ResourceError: as ``CudaTarget.compile``.
    """
    library = open_object(host_object(source, timeout), DECLARATIONS)
    _open(library, cubin_of(source, arch), arch)
    return library


def load_cuda(
    spec: KernelSpec, unit: VectorUnit, source: str, compiler: str, flags: tuple[str, ...], suffix: str, timeout: float
) -> CudaKernel:
    """Compile CUDA C++ into a shared object, or take it from the cache, and load it. Raises ``BuildError`` where the compiler fails."""
    return _kernel(load_library(source, compiler, flags, suffix, timeout), spec, unit, compiler, flags)


def load_library(source: str, compiler: str, flags: tuple[str, ...], suffix: str, timeout: float) -> Any:
    """Return a loaded object with the functions of ``DECLARATIONS``. Raises ``BuildError`` where the compiler fails."""
    return open_object(shared_object(source, compiler, flags, suffix, timeout), DECLARATIONS)


def _kernel(library: Any, spec: KernelSpec, unit: VectorUnit, compiler: str, flags: tuple[str, ...]) -> CudaKernel:
    function, call = spec.function, getattr(library, KERNEL)
    return CudaKernel(library, call, function.arrays, spec.result.initial != "any", compiler, flags, function, unit)


_NO_DRIVER, _NO_MEMORY, _NO_DEVICE = -1, 2, 100
_NOT_LOADED = (200, 209, 222, 223, 300)
"""Error codes of the driver for kernels that are not for this device, or are newer than the driver."""


def _open(library: Any, image: bytes, arch: str) -> None:
    """Have the driver load kernels.

    Raises:
        BuildError: there is no GPU, or its driver does not take kernels of this kind.
        ResourceError: the device has no memory for them.
    """
    code = library.st_open(image)
    if not code:
        return
    reported = foreign_interface(DECLARATIONS).string(library.st_trouble()).decode("utf-8", "replace")
    if code == _NO_DEVICE:
        raise BuildError(f"target cuda needs an NVIDIA GPU, and its driver finds none: {reported}; use target cpu")
    if code == _NO_DRIVER:
        raise BuildError(f"target cuda needs a newer NVIDIA driver: {reported}; install one, or use target cpu")
    if code == _NO_MEMORY:
        raise ResourceError(f"the device has no memory for a kernel: {reported}")
    if code in _NOT_LOADED:
        raise BuildError(
            f"the GPU's driver does not load what was compiled for {arch}: {reported}; name the architecture of this GPU, install a"
            " newer driver, or an older nvidia-cuda-nvrtc"
        )
    raise BuildError(f"the GPU's driver reports: {reported}")
