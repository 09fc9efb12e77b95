"""The target cpu: C with GNU vectors and a team of threads, compiled in another process, kept in a cache, and loaded with cffi."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from ..codegen.c import KERNEL, print_c
from ..errors import BuildError
from ..frozen import frozen
from ..ir.intrinsics import INTRINSICS, Intrinsic
from ..ir.nodes import Function
from ..lowering.kernel_spec import KernelSpec
from ..native import blas, team
from ..native.instructions import check_instructions
from ..native.library import foreign_interface, load_compiled
from ..native.machine import this_machine
from ..native.toolchain import Compiler, default_flags, find_compiler, possible_flags, vector_bytes
from ..numpy_later import np
from ..passes.cpu import CPU
from ..passes.manager import PassList, VectorUnit
from ..units import PROCESSOR

if TYPE_CHECKING:
    from numpy.typing import NDArray

DECLARATIONS = (
    f"int32_t {KERNEL}(void **arrays, int64_t *sizes, int64_t threads); void st_release(void *memory); extern void *st_spares; "
    + team.DECLARATION + " " + blas.DECLARATION
)
_MEMORY = "void *calloc(size_t count, size_t size);"
_SPARE_SET_BYTES = 4096
LONG = 500
"""A kernel with at least this many lines of C is compiled with -O2. Kernels this long merge several levels; -O3 takes three times as long
for them without any gain, since the source has vectors already."""


@frozen
class NativeLaunch:
    """A loaded C kernel with its arguments, which are NumPy arrays that are not copied."""

    run: Callable[[], int]
    pointers: Any
    sizes: Any
    release: Callable[[Any], None]
    kept: list[Any]

    def published(self, pointer: int, length: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return memory that the kernel handed over, as an array that releases it in the end."""
        return owned_array(self.pointers[pointer], self.sizes[length], dtype, self.release)

    def without_operands(self) -> NativeLaunch:
        """Return the same launch, which no longer keeps the arrays alive."""
        return NativeLaunch(self.run, self.pointers, self.sizes, self.release, [])


@frozen
class NativeKernel:
    """A loaded C kernel.

    Attributes:
        call: ``call(arrays, sizes, threads)`` on cffi arrays; returns 0, or 1 when there was no memory. Other Python
            threads can run meanwhile.
        release: ``release(pointer)`` gives back memory that the kernel handed over; later kernels may use it again.
    """

    call: Callable[[Any, Any, int], int]
    compiler: str
    flags: tuple[str, ...]
    release: Callable[[Any], None]

    def bind(self, arrays: Sequence[NDArray[Any] | None], sizes: Sequence[int], made: int, threads: int) -> NativeLaunch:
        ffi = interface()
        kept = [ffi.NULL if array is None else ffi.from_buffer(array) for array in arrays]
        pointers, lengths = ffi.new("void *[]", kept), ffi.new("int64_t[]", [*sizes, *([0] * made)])
        return NativeLaunch(partial(self.call, pointers, lengths, threads), pointers, lengths, self.release, kept)


@frozen
class NativeTarget:
    """The processor of this machine, through its C compiler."""

    name: str = PROCESSOR.target
    language: str = "c"
    units: tuple[str, ...] = PROCESSOR.units
    memory: tuple[str, ...] = ("heap", "registers")
    groups: tuple[str, ...] = ()
    intrinsics: Mapping[str, Intrinsic] = field(default_factory=lambda: INTRINSICS)
    passes: PassList = CPU
    on_device: bool = PROCESSOR.on_device
    has_architectures: bool = PROCESSOR.has_architectures

    def vectors(self, spec: KernelSpec) -> VectorUnit:
        """Return vectors as wide as the kernel's flags ask for."""
        machine = this_machine()
        return VectorUnit(vector_bytes(asked_flags(spec)), machine.masks, machine.gathers, machine.gather_bytes)

    def print(self, function: Function, heading: str) -> str:
        return print_c(function, heading)

    def built_by(self, spec: KernelSpec, source: str) -> tuple[str, str]:
        """Return the compiler, whose version costs a process, and its flags. Raises ``BuildError`` where there is none."""
        compiler = find_compiler(spec.build[0])
        return f"{compiler.name}: {compiler.version}", " ".join(compile_flags(spec, source))

    def compile(self, spec: KernelSpec, source: str, timeout: float = 120.0) -> NativeKernel:
        """Compile a kernel, or take it from the cache, and load it.

        Raises:
            BuildError: no compiler, a compiler that fails or takes longer than ``timeout`` seconds, flags for another processor, an
                object that cannot be loaded.
        """
        compiler = find_compiler(spec.build[0])
        flags = compile_flags(spec, source)
        check_instructions(compiler, flags)
        library = load_kernel(source, compiler, flags, timeout)
        return NativeKernel(getattr(library, KERNEL), compiler.name, flags, library.st_release)


C = NativeTarget()


def asked_flags(spec: KernelSpec) -> tuple[str, ...]:
    """Return the compiler's flags: those of the schedule, or the usual ones."""
    return default_flags() if spec.build[1] is None else tuple(spec.build[1].split())


def compile_flags(spec: KernelSpec, source: str) -> tuple[str, ...]:
    """Return all flags with which a kernel is compiled: those asked for, and those that its length and its type require."""
    short, long = possible_flags(spec.build[1], spec.result.dtype)
    return long if source.count("\n") > LONG else short


def load_kernel(source: str, compiler: Compiler, flags: tuple[str, ...], timeout: float = 120.0) -> Any:
    """Compile the C of a kernel (or take it from the cache), load it, and connect it with the memory and threads that all kernels share.

    Raises:
        BuildError: as for ``NativeTarget.compile``.
    """
    parallel, calls_blas = ('#include "st_loop.h"' in source), ('#include "st_blas.h"' in source)
    symbols = (KERNEL, "st_release", "st_spares", *(("st_team",) if parallel else ()), *(("st_blas",) if calls_blas else ()))
    library = load_compiled(source, DECLARATIONS, compiler, flags, timeout, symbols=symbols, is_linked=True)
    library.st_spares = _spares()
    if parallel:
        team.join_team(library)
    if calls_blas:
        blas.join_blas(library)
    return library


def owned_array(pointer: Any, length: int, dtype: np.dtype[Any], release: Callable[[Any], None]) -> NDArray[Any]:
    """Return memory that a kernel handed over, as an array that releases it in the end."""
    ffi = interface()
    if length == 0:
        release(pointer)
        return np.empty(0, dtype)
    size = length * dtype.itemsize
    return np.frombuffer(ffi.buffer(ffi.gc(pointer, release, size), size), dtype)


def interface() -> Any:
    """Return the cffi interface with which the arguments of kernels are made."""
    return foreign_interface(DECLARATIONS)


@cache
def _spares() -> Any:
    """Return the set of released memory that all kernels of this process share; it lives as long as the process."""
    try:
        return foreign_interface(_MEMORY).dlopen(None).calloc(1, _SPARE_SET_BYTES)
    except OSError as error:
        raise BuildError(f"the C library of this process cannot be opened: {error}") from None
