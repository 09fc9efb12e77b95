"""The text of a kernel at every stage, from concrete notation to the source for its target."""

from __future__ import annotations

from collections.abc import Iterator

from ..concrete.depth import depth_is_bounded
from ..errors import ScheduleError
from ..ir.intrinsics import OF_LANES
from ..ir.nodes import Allocate, Barrier, Call, Combine, Function, Once, Run
from ..ir.printer import show_function
from ..ir.rewrite import nodes_of
from ..lowering.kernel_spec import KernelSpec
from ..passes.manager import VectorUnit
from ..targets.c import C
from ..targets.target import Target


def stage_names(target: Target) -> tuple[str, ...]:
    """Return the names of the stages: concrete notation; loop IR after lowering and after each pass; the target's source."""
    return ("concrete", "lowering", *(each.name for each in target.passes.passes), target.language)


STAGES = stage_names(C)


def kernel_source(spec: KernelSpec, target: Target) -> str:
    """Return the source of a kernel for a target."""
    with depth_is_bounded():
        unit = target.vectors(spec)
        return _printed(spec, target, target.passes.run(spec.function, unit), unit)


def kernel_stages(spec: KernelSpec, target: Target) -> dict[str, str]:
    """Return the kernel after each of its stages, in order."""
    with depth_is_bounded():
        return dict(zip(stage_names(target), _stages(spec, target), strict=True))


def _stages(spec: KernelSpec, target: Target) -> Iterator[str]:
    unit, function = target.vectors(spec), spec.function
    yield spec.loop_nest
    yield show_function(function)
    for _, function in target.passes.stages(spec.function, unit):
        yield show_function(function)
    yield _printed(spec, target, function, unit)


def _printed(spec: KernelSpec, target: Target, function: Function, unit: VectorUnit) -> str:
    """Return the source of a kernel after all passes. Raises ``ScheduleError`` if it uses what the target does not have."""
    lacking = _lacking(function, target)
    if lacking is not None:
        raise ScheduleError(f"target {target.name} has no {lacking}, which this schedule needs there; use another one")
    return target.print(function, _heading(spec, unit))


def _lacking(function: Function, target: Target) -> str | None:
    """Return a function, storage or group that a program uses and the target does not have; None where it has all."""
    called, stored, grouped = set[str](), set[str](), set[str]()
    for node in nodes_of(function.body, Call, Run, Allocate, Barrier, Once, Combine):
        match node:
            case Call(name) | Run(name):
                called.add(name)
            case Allocate(storage=storage):
                stored.add(storage)
            case Barrier(group) | Once(group) | Combine(within=group):
                grouped.add(group)
    missing = [f"function {name}" for name in sorted(called - OF_LANES - target.intrinsics.keys())]
    missing += [f"memory of kind {name}" for name in sorted(stored - {*target.memory})]
    missing += [f"threads of a {name} that work together" for name in sorted(grouped - {*target.groups})]
    return missing[0] if missing else None


def _heading(spec: KernelSpec, unit: VectorUnit) -> str:
    return f"{spec.expression}\n{spec.schedule}\n" + (f"{unit.bytes}-byte vectors" if unit.bytes else "")
