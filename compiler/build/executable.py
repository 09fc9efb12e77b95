"""From a kernel's specification to a C function that can be called."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from ..codegen.c import KERNEL
from ..errors import BuildError
from ..lowering.kernel_spec import KernelSpec
from ..native import team
from ..native.instructions import check_instructions
from ..native.library import foreign_interface, load_compiled
from ..native.toolchain import Compiler, find_compiler
from .stages import asked_flags

DECLARATIONS = (
    f"int32_t {KERNEL}(void **arrays, int64_t *sizes, int64_t threads); void st_release(void *memory); extern void *st_spares; "
    + team.DECLARATION
)
_MEMORY = "void *calloc(size_t count, size_t size);"
_SPARE_SET_BYTES = 4096
WRAPPING_FLAG = "-fwrapv"
"""Integer values wrap around on overflow as NumPy's do; C leaves it undefined for signed ones."""

LONG = 500
"""Lines of C from which a kernel is compiled with -O2: such are merges of several levels, on which -O3 takes three times as long
to no gain (vectors are in the source already)."""


@dataclass(frozen=True)
class Executable:
    """A loaded kernel.

    Attributes:
        call: ``call(arrays, sizes, threads)`` on cffi arrays; returns 0, or 1 when there was no memory. Other Python
            threads run meanwhile.
        release: ``release(pointer)`` gives back memory that the kernel handed over; kernels that run later may get it again.
        compiler: the compiler's name and version, for records.
        flags: all flags it was compiled with.
    """

    call: Callable[[Any, Any, int], int]
    compiler: str
    flags: tuple[str, ...]
    release: Callable[[Any], None]


def build(spec: KernelSpec, source: str, timeout: float = 120.0) -> Executable:
    """Compile a kernel, or take it from the cache, and load it.

    Raises:
        BuildError: no compiler, a compiler that fails or takes longer than ``timeout`` seconds, flags for another processor, an
            object that cannot be loaded.
    """
    name, _ = spec.build
    compiler = find_compiler(name)
    flags = asked_flags(spec)
    check_instructions(compiler, flags)
    if spec.build[1] is None and source.count("\n") > LONG:
        flags = tuple("-O2" if flag == "-O3" else flag for flag in flags)
    if spec.result.dtype.startswith(("int", "uint")):
        flags = (*flags, WRAPPING_FLAG)
    library = load_kernel(source, compiler, flags, timeout)
    return Executable(getattr(library, KERNEL), compiler.name, flags, library.st_release)


def load_kernel(source: str, compiler: Compiler, flags: tuple[str, ...], timeout: float = 120.0) -> Any:
    """Compile the C of a kernel (or take it from the cache) and load it, with what kernels of this process share: memory and threads.

    Raises:
        BuildError: as for ``build``.
    """
    parallel = '#include "st_loop.h"' in source
    symbols = (KERNEL, "st_release", "st_spares", *(("st_team",) if parallel else ()))
    library = load_compiled(source, DECLARATIONS, compiler, flags, timeout, symbols=symbols)
    library.st_spares = _spares()
    if parallel:
        team.join_team(library)
    return library


def interface() -> Any:
    """Return the cffi interface that kernels' arguments are made with."""
    return foreign_interface(DECLARATIONS)


@cache
def _spares() -> Any:
    """Return the set of released memory that all kernels of this process share; it lives as long as the process."""
    try:
        return foreign_interface(_MEMORY).dlopen(None).calloc(1, _SPARE_SET_BYTES)
    except OSError as error:
        raise BuildError(f"the C library of this process cannot be opened: {error}") from None
