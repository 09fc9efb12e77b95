"""A problem to tune or to look up: an expression with its operands, resolved, checked, and described in canonical names.

This module is on the run-time path: numpy, the compiler and the standard library; files are read through ``datasets`` only where
an operand is a path.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ..compiler.concrete.affine import Boundary, Viewed, view_subscripts, wrapped, writings_of
from ..compiler.concrete.check import check_semiring, formats_of, parsed, tensor_names
from ..compiler.concrete.concretize import Concretized, concretize, initial_name
from ..compiler.concrete.given import (
    checked_dtype,
    checked_extents,
    checked_operands,
    checked_semiring,
    constant_extents,
    supported_dtype,
)
from ..compiler.concrete.mirrored import is_mirrored
from ..compiler.concrete.result_format import AUTO, auto_format
from ..compiler.errors import DataError, FormatError, ShapeError, TuningError
from ..compiler.format import Format
from ..compiler.frozen import frozen
from ..compiler.native.devices import architecture_here
from ..compiler.native.machine import this_machine
from ..compiler.native.team import thread_count
from ..compiler.notation.canonical import CanonicalForm, canonical_form
from ..compiler.notation.nodes import Assignment
from ..compiler.schedule.schedule import Schedule, canonical_names
from ..compiler.shown import is_word, shown
from ..compiler.space.joins import Joins
from ..compiler.storage.construct import tensor
from ..compiler.storage.foreign import path_of
from ..compiler.storage.symmetry import is_symmetric
from ..compiler.storage.tensor import Tensor
from ..compiler.units import HARDWARE, Hardware
from .extents import all_extents, known_extents, reads
from .features import describe_input
from .limits import NO_LIMITS, Limits
from .match import TARGETS
from .records import Input, Workload, edges_text, semiring_text

_OF_SOME_VALUES = {("max", "*"), ("min", "*"), ("+", "and")}
"""Semirings of some values only: products distribute over sums where nothing is negative, or is 0 or 1."""


@frozen(eq=False)
class Problem:
    """An expression and the operands that it is to run on.

    Attributes:
        expression: the text as given.
        written: the parsed text.
        viewed: the same with plain subscripts, the form that schedules are applied to.
        operands: every operand as a stored tensor, by the user's name.
        stored: format of every tensor, the result's included.
        extents: extent of every index of the plain assignment.
        known: the extents that the user or plain subscripts of operands determine; the others follow from compound subscripts.
        given: the indices whose extents only the user determines.
        boundary: what compound subscripts read outside of their operands.
        target: "cpu" or "cuda".
        threads: exact number of threads.
        name: where the data came from, for people.
        arch: architecture of the GPU that is meant; None: that of this machine, where the target is cuda.
        limits: on the memory that schedules may take besides operands and result.
        semiring: (add, multiply).
        wish: the dtype to compute with; None: that of the operands.
    """

    expression: str
    written: Assignment
    viewed: Viewed
    operands: Mapping[str, Tensor]
    stored: Mapping[str, Format]
    extents: Mapping[str, int]
    known: Mapping[str, int]
    given: frozenset[str]
    target: str
    threads: int
    name: str = ""
    arch: str | None = None
    limits: Limits = NO_LIMITS
    semiring: tuple[str, str] = ("+", "*")
    wish: np.dtype[Any] | None = None
    boundary: Boundary = None

    @property
    def assignment(self) -> Assignment:
        """The expression with plain subscripts."""
        return self.viewed.assignment

    @property
    def formats(self) -> Mapping[str, Format]:
        """Format of every tensor of the plain assignment, views among them."""
        return self.viewed.formats

    @property
    def is_compound(self) -> bool:
        """Whether a subscript is more than one index, so that the plain assignment reads views."""
        return self.viewed.ranges is not None

    def operand(self, name: str) -> Tensor | None:
        """Return the operand that the plain assignment reads under a name; None where the name is not that of an operand."""
        return self.operands.get(self.viewed.source(name))

    @cached_property
    def constants(self) -> dict[str, int]:
        """The extents that are compiled in."""
        return constant_extents(self.written, self.stored, self.known)

    @cached_property
    def canonical(self) -> CanonicalForm:
        """The expression with canonical names, under which records have it."""
        return canonical_form(self.written)

    @property
    def hardware(self) -> Hardware:
        """What kernels run on."""
        return HARDWARE[self.target]

    @property
    def is_on_gpu(self) -> bool:
        """Whether kernels run on a GPU."""
        return self.hardware.on_device

    @property
    def has_blas(self) -> bool:
        """Whether BLAS computes with the values: on a processor, all of one type, float32 or float64."""
        types = {self.dtype, *(self.wish or operand.dtype for operand in self.operands.values())}
        return not self.is_on_gpu and len(types) == 1 and self.dtype in (np.float32, np.float64)

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """The result's dtype: the one that is wished for, else that of the operands together."""
        if self.wish is not None:
            return self.wish
        return np.result_type(*(operand.dtype for operand in self.operands.values())) if self.operands else np.dtype(np.float64)

    @property
    def nbytes(self) -> int:
        """Bytes of all operands."""
        return sum(operand.nbytes for operand in self.operands.values())

    @property
    def distributes(self) -> bool:
        """Whether products distribute over sums for all values. If not, only a schedule that the user gives may rely on it."""
        return self.semiring not in _OF_SOME_VALUES or self.dtype == np.bool_

    @cached_property
    def joins(self) -> Joins:
        """Sizes of what several operands store together, found once."""
        return Joins(self.operands, self.extents)

    @cached_property
    def symmetric(self) -> frozenset[str]:
        """The sparse operands that are symmetric matrices; their values are looked at once, at the first access."""
        stored = {name: operand for name, operand in self.operands.items() if operand.order == 2 and not operand.format.is_dense}
        return frozenset(name for name, operand in stored.items() if operand.format.mirrors or is_symmetric(operand.convert("csr")))

    def concretized(self) -> Concretized:
        """Return the default program."""
        return concretize(self.assignment, self.formats, *self.semiring)

    @cached_property
    def workload(self) -> Workload:
        """The kernel and how it is called, in canonical names, on this machine, or on a GPU, whatever machine that is in."""
        given = {name: self.wish or operand.dtype for name, operand in self.operands.items()}
        dtypes = [str(given.get(name, self.dtype)) for name, _ in self.canonical.tensors]
        semiring = semiring_text(self.semiring)
        formats = " | ".join([*(str(self.stored[name]) for name, _ in self.canonical.tensors), *self._edges()])
        shown = dtypes[0] if len(set(dtypes)) == 1 else " | ".join(dtypes)
        if self.is_on_gpu:
            return Workload(self.arch or architecture_here(), self.canonical.text, formats, shown, self.target, 1, semiring)
        return Workload(this_machine().fingerprint, self.canonical.text, formats, shown, self.target, self.threads, semiring)

    @cached_property
    def input(self) -> Input:
        """Sizes and sparsity of the operands, in canonical names."""
        tensors = dict(self.canonical.tensors)
        operands = {tensors[name]: operand for name, operand in self.operands.items()}
        own = {writing.index for writing in writings_of(self.canonical.assignment)}
        indices = (*self.canonical.indices, *(pair for pair in self._made_up if pair[1] in own))
        return describe_input(operands, {canonical: self.extents[name] for name, canonical in indices}, self.name)

    def _edges(self) -> Iterator[str]:
        """Yield what else determines how compound subscripts are read, if there are any (see ``records.Workload.formats``)."""
        if self.viewed.ranges is not None:
            names = dict((*self.canonical.indices, *self._made_up))
            yield from edges_text({names[name] for name in self.given}, {names[name] for name in wrapped(self.written, self.boundary)})

    @cached_property
    def _made_up(self) -> tuple[tuple[str, str], ...]:
        """(Name, canonical name) of the views, points and indices that stand for compound subscripts."""
        if self.viewed.ranges is None:
            return ()
        tensors, indices = dict(self.canonical.tensors), dict(self.canonical.indices)
        formats = {canonical: self.stored[name] for name, canonical in self.canonical.tensors}
        boundary = {indices[name]: kind for name, kind in self.boundary.items()} if isinstance(self.boundary, Mapping) else self.boundary
        other = view_subscripts(self.canonical.assignment, formats, [indices.get(name, name) for name in self.known], boundary)
        written = zip(writings_of(self.written), writings_of(self.canonical.assignment), strict=True)
        pairs = {mine.index: theirs.index for mine, theirs in written} | dict(zip(self.viewed.constants, other.constants, strict=True))
        pairs |= dict(zip((name for name, _ in self.viewed.written), (name for name, _ in other.written), strict=True))
        return tuple((name, canonical) for name, canonical in pairs.items() if name not in tensors)

    def to_canonical(self, schedule: Schedule) -> str:
        """Return the text of a schedule of this expression in canonical names, its own included, as records hold it."""
        names = dict(self.names)
        return str(canonical_names(schedule.rename(names), names.values()))

    def from_canonical(self, text: str) -> Schedule:
        """Return the schedule that a record holds, in this expression's names. Raises ``ScheduleError``: it is no schedule."""
        return Schedule(text).rename({canonical: name for name, canonical in self.names})

    @cached_property
    def names(self) -> tuple[tuple[str, str], ...]:
        """(Name, canonical name) of everything that a schedule may name, including the operand that ``+=`` starts from."""
        initial = (initial_name(self.written), initial_name(self.canonical.assignment))
        added_to = (initial,) if self.written.operator == "+=" else ()
        return (*self.canonical.tensors, *self.canonical.indices, *self._made_up, *added_to)


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
