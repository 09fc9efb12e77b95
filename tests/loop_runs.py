"""Running a loop IR function both ways: interpreted, and compiled by the machine's C compiler."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sparsetune.compiler.codegen.c import print_c
from sparsetune.compiler.ir.interpret import Outcome, interpret
from sparsetune.compiler.ir.memory import numpy_type
from sparsetune.compiler.ir.nodes import ArrayParameter, Function, SizeParameter, Step, Steps, Type
from sparsetune.compiler.native.toolchain import default_flags, find_compiler
from sparsetune.compiler.passes.cpu import CPU
from sparsetune.compiler.passes.manager import Setting, VectorUnit
from sparsetune.compiler.targets.c import interface, load_kernel, owned_array

EXACT = ("-O1", "-march=native", "-ffp-contract=off", "-fwrapv")
"""Flags under which compiled and interpreted kernels agree to the bit."""

COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name) is not None]


def function(statements: Sequence[Step], arrays: dict[str, tuple[str, bool]], sizes: Sequence[str] = ()) -> Function:
    """Return a kernel over arrays given as name: (element type, writable)."""
    parameters = tuple(ArrayParameter(name, Type(kind), (name, "values"), writable) for name, (kind, writable) in arrays.items())
    return Function("st_kernel", parameters, tuple(SizeParameter(name, ("index", name)) for name in sizes), Steps(tuple(statements)))


def source_of(kernel: Function, vector_bytes: int, heading: str = "") -> str:
    """Return the C of a function for vectors of some width."""
    return print_c(CPU.run(kernel, VectorUnit(vector_bytes)), heading)


def vectorized(
    kernel: Function, vector_bytes: int, masks: bool = False, gathers: int | None = None, gather_bytes: int = 64, without: str = ""
) -> Function:
    """Return a function after the passes up to those that make vectors, except ``without``, simplified only at the end."""
    setting = Setting(VectorUnit(vector_bytes, masks, gathers, gather_bytes), kernel)
    names = [each.name for each in CPU.passes]
    for each in CPU.passes[names.index("flags") : names.index("streams")]:
        kernel = kernel if each.name == without else each.run(kernel, setting)
    return kernel


def run_compiled(
    kernel: Function,
    arrays: Sequence[NDArray[Any] | None],
    sizes: Sequence[int] = (),
    threads: int = 1,
    compiler: str | None = None,
    flags: tuple[str, ...] | None = EXACT,
) -> dict[str, NDArray[Any]]:
    """Compile a function as it stands, run it, and return what it published. Raises MemoryError on status 1."""
    ffi = interface()
    library = load_kernel(print_c(kernel), find_compiler(compiler), default_flags() if flags is None else flags)
    library.st_spares = ffi.NULL  # released memory goes back to the system, where tests look for leaks
    assembled = [parameter for parameter in kernel.arrays if parameter.assembled]
    held = [ffi.NULL if array is None else ffi.from_buffer(array) for array in arrays]
    pointers, lengths = ffi.new("void *[]", held), ffi.new("int64_t[]", [*sizes, *([0] * len(assembled)), 0])
    if library.st_kernel(pointers, lengths, threads):
        raise MemoryError
    slots = {parameter.name: slot for slot, parameter in enumerate(kernel.arrays)}
    made = [(pointers[slots[parameter.name]], lengths[len(sizes) + rank], parameter) for rank, parameter in enumerate(assembled)]
    return {p.name: owned_array(pointer, length, numpy_type(p.type), library.st_release) for pointer, length, p in made}


def run_both(kernel: Function, arrays: Sequence[NDArray[Any] | None], sizes: Sequence[int] = (), **options: Any) -> Outcome:
    """Run a function both ways on copies of the arrays, check that they agree to the bit, and leave the result in ``arrays``."""
    copies = [None if array is None else array.copy() for array in arrays]
    outcome = interpret(kernel, copies, sizes)
    published = run_compiled(kernel, arrays, sizes, **options)
    for parameter, ours, theirs in zip(kernel.arrays, arrays, copies, strict=True):
        if parameter.writable and not parameter.assembled:
            np.testing.assert_array_equal(ours, theirs, err_msg=parameter.name)
    assert published.keys() == outcome.published.keys()
    for name, array in published.items():
        np.testing.assert_array_equal(array, outcome.published[name], err_msg=name)
    return outcome
