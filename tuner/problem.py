"""A problem to tune or to look up: an expression with its operands, described in canonical names. ``resolve`` makes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from ..compiler.concrete.affine import Boundary, Viewed, view_subscripts, wrapped, writings_of
from ..compiler.concrete.concretize import Concretized, concretize, initial_name
from ..compiler.concrete.given import (
    constant_extents,
)
from ..compiler.format import Format
from ..compiler.frozen import frozen
from ..compiler.native.devices import architecture_here
from ..compiler.native.machine import this_machine
from ..compiler.notation.canonical import CanonicalForm, canonical_form
from ..compiler.notation.nodes import Assignment
from ..compiler.schedule.schedule import Schedule, canonical_names
from ..compiler.space.joins import Joins
from ..compiler.storage.symmetry import is_symmetric
from ..compiler.storage.tensor import Tensor
from ..compiler.units import HARDWARE, Hardware
from .facts import size
from .features import describe_input
from .limits import NO_LIMITS, Limits
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
        return sum(size(operand) for operand in self.operands.values())

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
