"""What a kernel is at every stage from concrete notation to C, as text."""

from __future__ import annotations

from collections.abc import Iterator

from ..codegen.c import print_c
from ..ir.printer import show_function
from ..lowering.kernel_spec import KernelSpec
from ..native.machine import this_machine
from ..native.toolchain import default_flags, vector_bytes
from ..passes.cpu import CPU
from ..passes.manager import VectorUnit

STAGES = ("concrete", "lowering", *(each.name for each in CPU.passes), "c")
"""Concrete notation as it is lowered; the loop IR that lowering makes, and after each pass; C."""


def kernel_source(spec: KernelSpec) -> str:
    """Return the C source of a kernel for this machine, with vectors as wide as its flags ask for."""
    unit = _unit(spec)
    return print_c(CPU.run(spec.function, unit), _heading(spec, unit))


def kernel_stages(spec: KernelSpec) -> dict[str, str]:
    """Return the kernel after each of ``STAGES``, in order."""
    return dict(zip(STAGES, _stages(spec), strict=True))


def _stages(spec: KernelSpec) -> Iterator[str]:
    unit, function = _unit(spec), spec.function
    yield spec.loop_nest
    yield show_function(function)
    for _, function in CPU.stages(spec.function, unit):
        yield show_function(function)
    yield print_c(function, _heading(spec, unit))


def asked_flags(spec: KernelSpec) -> tuple[str, ...]:
    """Return the compiler's flags: those of the schedule, or the usual ones."""
    return default_flags() if spec.build[1] is None else tuple(spec.build[1].split())


def _unit(spec: KernelSpec) -> VectorUnit:
    machine = this_machine()
    return VectorUnit(vector_bytes(asked_flags(spec)), machine.masks, machine.gathers, machine.gather_bytes)


def _heading(spec: KernelSpec, unit: VectorUnit) -> str:
    return f"{spec.expression}\n{spec.schedule}\n{unit.bytes}-byte vectors"
