"""Replaces affine subscripts: the expression reads views with plain subscripts instead (``views``).

``y(i) = B(i + j) * F(j)`` becomes ``y(i) = B(i,j) * F(j)`` where B is a view of two modes, so that loop orders, lattices and legality
see only one more tensor, with an index per mode. A compound subscript on the left becomes an index of its own that a point holds to its
value: ``y(2*i + j) = e`` is ``y(s) = P(2*i + j - s) * e``, where P is 1 at 0 and has no other entries.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field

from ..errors import ExpressionError, ShapeError
from ..format import Format
from ..fresh import FreshNames
from ..frozen import frozen
from ..levels.affine import POINT
from ..notation.nodes import Access, Affine, Assignment, Expr, Mul, accesses, index_subscript, transform_expression
from ..shown import is_by_name, is_word, shown
from ..source import pointing
from ..views import Subscript, View
from .ranges import Ranges, Reading, Writing, ranges_of

BOUNDARIES = ("fill", "wrap")
Boundary = str | Mapping[str, str] | None


@frozen
class Viewed:
    """An assignment without compound subscripts, and what its names stand for.

    Attributes:
        assignment: the plain assignment.
        formats: of every tensor in it, views among them.
        sources: the operand behind each view.
        points: the operands with a single entry that are added here; users do not give them.
        constants: extents of the indices that were added here.
        ranges: how the extents of indices in compound subscripts are found; None where no subscript is compound.
        written: maps each tensor and its plain indices in the assignment to the access that the user wrote.
    """

    assignment: Assignment
    formats: Mapping[str, Format]
    sources: Mapping[str, str] = field(default_factory=dict)
    points: frozenset[str] = frozenset()
    constants: Mapping[str, int] = field(default_factory=dict)
    ranges: Ranges | None = None
    written: Mapping[tuple[str, tuple[Affine, ...]], Access] = field(default_factory=dict)

    def source(self, tensor: str) -> str:
        """Return the user's name of an operand."""
        return self.sources.get(tensor, tensor)

    def as_written(self, access: Access) -> Access:
        """Return an access with the subscripts that the user wrote."""
        found = self.written.get((access.tensor, access.subscripts))
        return access if found is None else Access(found.tensor, found.subscripts, access.protocols, access.stored)


def is_affine(assignment: Assignment) -> bool:
    """Whether an assignment has a compound subscript."""
    return not all(access.is_plain for access in (assignment.target, *accesses(assignment.value)))


def view_subscripts(
    assignment: Assignment, formats: Mapping[str, Format], determined: Collection[str] = (), boundary: Boundary = None
) -> Viewed:
    """Return an assignment without compound subscripts.

    Args:
        assignment: checked.
        formats: of every tensor.
        determined: the indices whose extents the caller gives.
        boundary: what reads outside of operands give: "fill" (the fill value), "wrap" (subscripts wrap around), or one of these by index.

    Raises:
        ExpressionError: the left side has compound subscripts and the result is sparse; a boundary is
        unknown, or is given for an unknown index.
    """
    ends = wrapped(assignment, boundary)
    if not is_affine(assignment):
        return Viewed(assignment, formats)
    return _Rewriting(assignment, formats, determined, ends).done()


def wrapped(assignment: Assignment, boundary: Boundary) -> frozenset[str]:
    """Return the indices at whose ends subscripts wrap."""
    names = {name for access in (assignment.target, *accesses(assignment.value)) for name in access.indices}
    if boundary is None:
        return frozenset()
    said = dict.fromkeys(names, boundary) if isinstance(boundary, str) else boundary
    if not is_by_name(said):
        raise ExpressionError(f"boundary is 'fill', 'wrap' or one of these by index, such as {{'i': 'wrap'}}, not {shown(boundary)}")
    for index, kind in (said or {"": boundary}).items():
        if not is_word(kind, *BOUNDARIES):
            raise ExpressionError(f"a boundary is 'fill' or 'wrap', not {shown(kind)}")
        if index not in names and index:
            raise ExpressionError(f"boundary given for index '{index}', which the expression does not have: {', '.join(sorted(names))}")
    return frozenset(index for index, kind in said.items() if kind == "wrap")


def writings_of(assignment: Assignment) -> tuple[Writing, ...]:
    """Return the compound subscripts of the left side, each with a new name for the index that stands for it."""
    target, names, found = assignment.target, FreshNames(names_of(assignment), "_"), list[Writing]()
    for mode, part in enumerate(target.subscripts):
        if not part.is_index:
            found.append(Writing(names.fresh(f"{target.tensor}{mode + 1}"), mode, part))
    return tuple(found)


def extents_of_result(assignment: Assignment, shape: Sequence[int]) -> dict[str, int]:
    """Return the extents by index that follow from a shape of the result; ShapeError where it has another number of modes."""
    target = assignment.target
    if isinstance(shape, (str, bytes)) or not isinstance(shape, Sequence):
        raise ShapeError(f"the name of the result '{target.tensor}' must be given with its shape, such as (20,), not {shape!r}")
    if not shape:
        return {}
    if len(shape) != len(target.subscripts):
        raise ShapeError(f"the shape of '{target.tensor}' has {len(shape)} extents, but it has {len(target.subscripts)} modes")
    own = {writing.mode: writing.index for writing in writings_of(assignment)}
    return {own.get(mode) or part.index: extent for mode, (part, extent) in enumerate(zip(target.subscripts, shape, strict=True))}


def names_of(assignment: Assignment) -> set[str]:
    """Return the names of tensors and indices in an assignment."""
    found = (assignment.target, *accesses(assignment.value))
    return {access.tensor for access in found} | {name for access in found for name in access.indices}


class _Rewriting:
    """Makes the views of one assignment."""

    def __init__(self, assignment: Assignment, formats: Mapping[str, Format], determined: Collection[str], wrapped: frozenset[str]) -> None:
        self.given, self.formats, self.wrapped = assignment, dict(formats), wrapped
        found = (assignment.target, *accesses(assignment.value))
        self.writings = writings_of(assignment)
        self.names = FreshNames(names_of(assignment) | {writing.index for writing in self.writings}, "_")
        self.ways: dict[str, set[tuple[Affine, ...]]] = {}
        for access in found:
            self.ways.setdefault(access.tensor, set()).add(access.subscripts)
        self.views: dict[tuple[str, tuple[Affine, ...]], Access] = {}
        self.sources: dict[str, str] = {}
        self.constants: dict[str, int] = {}
        self.written: dict[tuple[str, tuple[Affine, ...]], Access] = {}
        self.points: dict[Access, None] = {}
        self.target = self._left(assignment.target)
        self.ranges = ranges_of(assignment, determined, self.writings)

    def done(self) -> Viewed:
        value = transform_expression(self.given.value, lambda node: self._read(node) if isinstance(node, Access) else None)
        if self.points:
            value = Mul((*self.points, value))
        used = {access.tensor for access in (self.target, *accesses(value))} | {self.given.target.tensor}
        return Viewed(
            Assignment(self.target, self.given.operator, value, self.given.text),
            {name: form for name, form in self.formats.items() if name in used},
            self.sources, frozenset(point.tensor for point in self.points), self.constants, self.ranges, self.written,
        )  # fmt: skip

    def _left(self, target: Access) -> Access:
        """Return the left side with an index for each compound subscript; points hold them together."""
        if target.is_plain:
            return target
        if not self.formats[target.tensor].is_dense:
            shown = f"{target.tensor}({', '.join(map(str, target.subscripts))})"
            reason = f"a left side such as {shown} scatters, which only dense results take"
            raise ExpressionError(pointing(f"{reason}; ask for a dense one and convert it", self.given.text, target.span))
        subscripts = list(target.subscripts)
        for index, mode, part in ((one.index, one.mode, one.subscript) for one in self.writings):
            names, factors = self._terms(part)
            terms = (*enumerate(factors), (len(names), -1))
            point = self.names.fresh(f"at_{target.tensor}{mode + 1}")
            self.formats[point] = View(Format((POINT,)), (Subscript(terms, part.constant, inside=True, covering=len(names)),))
            own = Access(point, tuple(map(index_subscript, (*names, index))))
            self.points[own] = None
            self.written[point, own.subscripts] = Access(point, (Affine((*zip(names, factors, strict=True), (index, -1)), part.constant),))
            subscripts[mode] = index_subscript(index)
        return Access(target.tensor, tuple(subscripts), span=target.span)

    def _read(self, access: Access) -> Expr | None:
        if access.is_plain:
            return None
        key = access.tensor, access.subscripts
        if key not in self.views:
            self.views[key] = self._view(access)
        return self.views[key]

    def _view(self, access: Access) -> Access:
        form, indices, subscripts = self.formats[access.tensor], list[str](), []
        for mode, part in enumerate(access.subscripts):
            names, factors = self._terms(part)
            terms = tuple((len(indices) + place, factor) for place, factor in enumerate(factors))
            wraps = not part.is_index and not self.wrapped.isdisjoint(part.indices)
            inside = Reading(access.tensor, mode, part) in self.ranges.inside
            subscripts.append(Subscript(terms, part.constant, wraps, inside, is_plain=part.is_index))
            indices += names
        name = access.tensor if len(self.ways[access.tensor]) == 1 else self.names.fresh(f"{access.tensor}_at")
        self.formats[name] = View(form, tuple(subscripts))
        self.sources[name] = access.tensor
        found = Access(name, tuple(map(index_subscript, indices)), span=access.span)
        self.written[name, found.subscripts] = Access(access.tensor, access.subscripts)
        return found

    def _terms(self, subscript: Affine) -> tuple[tuple[str, ...], tuple[int, ...]]:
        """Return the indices and coefficients of a subscript; a constant has an index that is always 0."""
        if subscript.terms:
            return subscript.indices, tuple(factor for _, factor in subscript.terms)
        if not self.constants:
            self.constants[self.names.fresh("only")] = 1
        return tuple(self.constants), (1,)
