"""The problem that an expression and operands pose, resolved and checked.

This module is on the run-time path: numpy, the compiler and the standard library; files are read through ``datasets`` only where
an operand is a path.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import DTypeLike

from ..compiler.concrete.affine import Boundary, view_subscripts
from ..compiler.concrete.check import check_semiring, formats_of, parsed, tensor_names
from ..compiler.concrete.concretize import concretize
from ..compiler.concrete.given import (
    checked_dtype,
    checked_extents,
    checked_operands,
    checked_semiring,
    supported_dtype,
)
from ..compiler.concrete.mirrored import is_mirrored
from ..compiler.concrete.result_format import AUTO, auto_format
from ..compiler.errors import DataError, FormatError, ShapeError, TuningError
from ..compiler.format import Format
from ..compiler.native.team import thread_count
from ..compiler.shown import is_word, shown
from ..compiler.storage.construct import tensor
from ..compiler.storage.foreign import path_of
from ..compiler.storage.tensor import Tensor
from ..compiler.units import HARDWARE
from .extents import all_extents, known_extents, reads
from .limits import NO_LIMITS, Limits
from .match import TARGETS
from .problem import Problem


def make_problem(
    expression: str,
    operands: Mapping[str, Any],
    output_format: Format | str | None = None,
    target: str = "cpu",
    threads: int | None = None,
    name: str = "",
    shape: Mapping[str, int] | None = None,
    arch: str | None = None,
    limits: Limits = NO_LIMITS,
    semiring: tuple[str, str] | None = None,
    dtype: DTypeLike | None = None,
    boundary: Boundary = None,
) -> Problem:
    """Resolve and check an expression and its operands.

    Args:
        expression: index notation.
        operands: by name: ndarray, number, sparse array of any library, Tensor, or a path or catalogue name.
        output_format: of the result; None: dense.
        target: "cpu" or "cuda".
        threads: None: $SPARSETUNE_THREADS, or the cores that this process may use.
        name: where the data came from, for people.
        shape: extents of indices that no operand determines.
        arch: architecture of the GPU that is meant, such as "sm_90"; None: that of this machine.
        limits: on the memory that schedules may take besides operands and result.
        semiring: (add, multiply), such as ("min", "+"); None: ("+", "*").
        dtype: of the values; None: ``numpy.result_type`` of the operands.
        boundary: what compound subscripts read outside of their operands: "fill" (None), "wrap", or one of these by index.

    Raises:
        ExpressionError: the text is no index notation; an operand is missing or not used; there is no such semiring, or index.
        FormatError, DataError: the result's format, an operand, a dtype or the number of threads is not meaningful.
        ShapeError: extents disagree, or no operand gives one.
        TuningError: the target is not one of ``match.TARGETS``.
        BuildError: this machine lacks the target, and arch does not name it.
        ScheduleError: arch has no meaning.
    """
    require_target(target, arch)
    assignment = parsed(expression)
    pair, wish = checked_semiring(semiring), checked_dtype(dtype)
    check_semiring(assignment.value, pair[0], assignment, pair[1])
    given = checked_extents(assignment, shape) if shape else {}
    checked = checked_operands(assignment.text, tensor_names(assignment), operands)
    tensors = {operand: _load(operand, data) for operand, data in checked.items()}
    for operand, found in tensors.items():
        supported_dtype(found.dtype, operand)
    formats: dict[str, Format | str | None] = {operand: found.format for operand, found in tensors.items()}
    shapes = {operand: found.shape for operand, found in tensors.items()}
    own = {operand: found.format for operand, found in tensors.items()}
    formats[assignment.target.tensor] = auto_format(assignment, own) if output_format == AUTO else output_format
    whole, count = formats_of(assignment, formats), thread_count(threads)
    viewed = view_subscripts(assignment, whole, given, boundary)
    halves = [operand for operand, found in tensors.items() if found.format.mirrors]
    default = concretize(viewed.assignment, viewed.formats, *pair).program if halves else None
    if default is not None and (HARDWARE[target].on_device or not is_mirrored(default, viewed.formats)):
        tensors |= {operand: tensors[operand].convert(whole[operand].whole) for operand in halves}
        whole = {**whole, **{operand: tensors[operand].format for operand in halves}}
        viewed = view_subscripts(assignment, whole, given, boundary)
    known = known_extents(assignment, shapes, given)
    extents = all_extents(viewed, known, shapes)
    free = frozenset(given) - {part.index for access in reads(assignment) for part in access.subscripts if part.is_index}
    return Problem(
        expression, assignment, viewed, tensors, whole, extents, known, free, target, count, name, arch, limits, pair, wish,
        boundary,
    )  # fmt: skip


def require_target(target: str, arch: str | None = None) -> None:
    """Refuse a target that is unknown, or that this machine lacks where ``arch`` names none.

    Raises:
        TuningError: it is not one of ``match.TARGETS``.
        ScheduleError: the target has no such architecture, or none at all.
        BuildError: there is no GPU, and no arch.
    """
    if not is_word(target, *TARGETS):
        raise TuningError(f"target {shown(target)} is not one of {', '.join(TARGETS)}")
    if arch is None and not HARDWARE[target].has_architectures:
        return  # it is here, and loading what compiles for it takes most of the time of a lookup
    from ..compiler.targets import registry

    registry.require_target(registry.find_target(target, arch))


def _load(name: str, data: Any) -> Tensor:
    if isinstance(data, Tensor):
        return data
    if (path := path_of(data)) is not None:
        from ..datasets import load

        return load(path)
    try:
        return tensor(data)
    except (DataError, FormatError, ShapeError) as error:
        raise type(error)(f"operand {name}: {error}") from None
