"""The canonical form of an expression, in which tensors and indices have standard names.

The result becomes ``T0``, operands ``T1``, ``T2`` ... and indices ``i0``, ``i1`` ... by order of first appearance, so that
``y(i) = A(i,j) * x(j)`` and ``out(r) = M(r,c) * v(c)`` have the same text. What was learned for one then serves the other.
"""

from __future__ import annotations

from ..frozen import frozen
from .nodes import Access, Affine, Assignment, Expr, accesses, transform_expression
from .printer import show_assignment


@frozen
class CanonicalForm:
    """An assignment in canonical names.

    Attributes:
        assignment: the renamed assignment.
        tensors: (name, canonical name) of every tensor, the result first.
        indices: (name, canonical name) of every index, those of the left side first.
    """

    assignment: Assignment
    tensors: tuple[tuple[str, str], ...]
    indices: tuple[tuple[str, str], ...]

    @property
    def text(self) -> str:
        return show_assignment(self.assignment)


def canonical_form(assignment: Assignment) -> CanonicalForm:
    """Return an assignment in canonical names, with the given names."""
    appearing = (assignment.target, *accesses(assignment.value))
    tensors = {name: f"T{number}" for number, name in enumerate(dict.fromkeys(access.tensor for access in appearing))}
    indices = {name: f"i{number}" for number, name in enumerate(dict.fromkeys(name for access in appearing for name in access.indices))}
    renamed = rename_assignment(assignment, tensors, indices)
    return CanonicalForm(renamed, tuple(tensors.items()), tuple(indices.items()))


def rename_assignment(assignment: Assignment, tensors: dict[str, str], indices: dict[str, str]) -> Assignment:
    """Return an assignment with other names; names that are not in the mappings stay."""

    def rule(expr: Expr) -> Expr | None:
        return _renamed_access(expr, tensors, indices) if isinstance(expr, Access) else None

    target = _renamed_access(assignment.target, tensors, indices)
    return Assignment(target, assignment.operator, transform_expression(assignment.value, rule))


def _renamed_access(access: Access, tensors: dict[str, str], indices: dict[str, str]) -> Access:
    subscripts = tuple(
        Affine(tuple((indices.get(name, name), coefficient) for name, coefficient in subscript.terms), subscript.constant)
        for subscript in access.subscripts
    )
    return Access(tensors.get(access.tensor, access.tensor), subscripts, access.protocols, span=access.span)
