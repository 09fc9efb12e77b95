"""The one place that composes the stages: from an expression, formats and a schedule, or from a scheduled program, to a kernel."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .build.kernel import TypedKernel
from .concrete.affine import Boundary, Viewed, view_subscripts
from .concrete.check import check_semiring, formats_of, parsed, tensor_names
from .concrete.concretize import Concretized, concretize
from .concrete.given import check_convert, checked_dtype, checked_extents, checked_semiring
from .concrete.mirrored import is_mirrored, mirrored
from .concrete.nodes import Program
from .errors import ScheduleError
from .format import Format
from .kernel import Derived, Kernel
from .lowering.lower import lower
from .lowering.tensor_types import TensorType
from .notation.nodes import Access, Assignment, accesses
from .numpy_later import np
from .schedule.apply import apply_schedule
from .schedule.schedule import Schedule
from .space.mapping import default_mapping
from .targets.registry import find_target, require_target
from .units import UNITS

if TYPE_CHECKING:
    from numpy.typing import DTypeLike


def _scheduled(default: Concretized, schedule: Schedule, extents: Mapping[str, int]) -> Concretized:
    if not schedule.directives:
        return default
    program: Program = apply_schedule(default.program, schedule, default.formats, extents)
    return Concretized(program, default.formats, default.sources)


def _are_of_gpus(units: Collection[str]) -> bool:
    return any(UNITS[unit].member for unit in units)


def _for_units(made: Concretized, units: Collection[str]) -> Concretized:
    """Return a program for a target with some units."""
    return replace(made, program=replace(made.program, on_gpu=True)) if _are_of_gpus(units) else made


def compile_kernel(
    expression: str,
    formats: Mapping[str, Format | str | None] | None = None,
    extents: Mapping[str, int] | None = None,
    schedule: Schedule | str | None = None,
    dtype: DTypeLike | None = None,
    target: str = "cpu",
    *,
    semiring: tuple[str, str] | None = None,
    convert: str = "auto",
    arch: str | None = None,
    threads: int | None = None,
    boundary: Boundary = None,
    shape: Mapping[str, Any] | None = None,
    determined: Collection[str] = (),
    derived: Derived | None = None,
) -> Kernel:
    """Compile an expression for formats, a schedule and a target. This is ``sparsetune.compile`` without the schedule "auto".

    Args:
        determined: the indices whose extents are given when operands are bound.
        derived: how the operands follow from those that are given at a call; None: they are the same.

    Raises:
        ExpressionError, FormatError, ScheduleError: what is asked for has no meaning; the first line says where.
        BuildError: the target is a GPU, this machine has none, and ``arch`` names no architecture.
    """
    found = find_target(target, arch)
    require_target(found)
    on_gpu = _are_of_gpus(found.units)
    check_convert(convert)
    assignment = parsed(expression)
    pair = checked_semiring(semiring)
    check_semiring(assignment.value, pair[0], assignment, pair[1])
    known = formats_of(assignment, {} if formats is None else formats)
    kind = checked_dtype(dtype)
    constants = {**checked_extents(assignment, extents), **checked_extents(assignment, shape)}
    directives = Schedule(() if schedule is None else schedule)

    def scheduled(known: Mapping[str, Format]) -> tuple[Viewed, Schedule, Concretized]:
        viewed = view_subscripts(assignment, known, {*constants, *determined}, boundary)
        default, chosen = _for_units(concretize(viewed.assignment, viewed.formats, *pair), found.units), directives
        if not chosen.directives and on_gpu:
            chosen = default_mapping(default.program, assignment.target.tensor, default.formats, constants)
        return viewed, chosen, _scheduled(default, chosen, {**constants, **viewed.constants})

    viewed, chosen, concretized = scheduled(known)
    if not is_mirrored(concretized.program, concretized.formats) or (on_gpu and any(form.mirrors for form in known.values())):
        known = _whole(assignment, known, convert)
        viewed, chosen, concretized = scheduled(known)
        mirrored(concretized.program, concretized.formats)  # raises an error if the schedule cannot read half of a matrix
    return Kernel(assignment, known, constants, concretized, chosen, kind, convert, target, threads, arch, viewed, derived)


def compile_program(
    viewed: Viewed,
    assignment: Assignment,
    formats: Mapping[str, Format],
    extents: Mapping[str, int],
    concretized: Concretized,
    dtype: np.dtype[Any] | None = None,
    target: str = "cpu",
    arch: str | None = None,
) -> Kernel:
    """Compile a program that is scheduled already, and whose expression was checked when it was made.

    Args:
        viewed: the expression with plain subscripts.
        assignment: the expression itself.
        formats: the format of every tensor of it.
        extents: compile-time constants, by index.
        concretized: the program, with the formats of its operands and their names in ``viewed``.

    Raises:
        ScheduleError: the target does not have the units of its loops.
    """
    made = _for_units(concretized, find_target(target, arch).units)
    return Kernel(assignment, dict(formats), extents, made, Schedule(), dtype, "auto", target, arch=arch, viewed=viewed)


def compile_together(
    program: Program, types: Mapping[str, TensorType], results: Sequence[Access], viewed: Viewed, extents: Mapping[str, int]
) -> TypedKernel:
    """Compile a program with several results, for operands of known types, for the processor.

    Args:
        types: of operands and results, by name.
        viewed: the product of all operands, whose text is shown in messages.
        extents: compile-time constants, by index.
    """
    sources = {access.tensor: access.tensor for access in accesses(viewed.assignment.value)}
    return TypedKernel(lower(
        program, types, results[0], sources=sources, extents=extents, viewed=viewed, expression=viewed.assignment.text, schedule="",
        also=tuple(results[1:]),
    ))  # fmt: skip


def _whole(assignment: Assignment, formats: Mapping[str, Format], convert: str) -> dict[str, Format]:
    """Return formats in which symmetric operands are stored whole. Raises ``ScheduleError`` if conversions are forbidden."""
    halves = [name for name in tensor_names(assignment) if formats[name].mirrors]
    if halves and convert == "never":
        raise ScheduleError(
            f"'{assignment.text}' reads all of {halves[0]}, of which '{formats[halves[0]]}' stores half, and convert=\"never\" forbids to"
            f" make it whole; hand it over as '{formats[halves[0]].whole}'"
        )
    return {name: form.whole if name in halves else form for name, form in formats.items()}
