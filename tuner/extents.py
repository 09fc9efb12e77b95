"""The extent of every index of an expression, from the shapes of its operands."""

from __future__ import annotations

from collections.abc import Mapping

from ..compiler.concrete.affine import Viewed
from ..compiler.errors import ShapeError
from ..compiler.notation.nodes import Access, Assignment, accesses


def reads(assignment: Assignment) -> tuple[Access, ...]:
    """Return the accesses that are read, the result's own where it is accumulated into."""
    own = (assignment.target,) if assignment.operator == "+=" else ()
    return (*accesses(assignment.value), *own)


def all_indices(assignment: Assignment) -> tuple[str, ...]:
    """Return every index, those of the left side first."""
    return tuple(dict.fromkeys(index for access in (assignment.target, *reads(assignment)) for index in access.indices))


def known_extents(assignment: Assignment, shapes: Mapping[str, tuple[int, ...]], given: Mapping[str, int]) -> dict[str, int]:
    """Return the extents that shapes and given extents determine.

    Compound subscripts are left to ``all_extents``.

    Args:
        assignment: as it was written.
        shapes: shape of every operand that is known, by name.
        given: extents by index.

    Raises:
        ShapeError: an operand has another number of modes, or two extents of an index disagree; both places are named.
    """
    found: dict[str, tuple[int, str]] = {}  # extent of an index, and where it comes from
    for access in reads(assignment):
        shape = shapes.get(access.tensor)
        if shape is None:
            continue
        if len(shape) != len(access.subscripts):
            subscripts = len(access.subscripts)
            raise ShapeError(f"{access.tensor} has {subscripts} subscripts in the expression, but the operand has shape {shape}")
        for mode, subscript in enumerate(access.subscripts):
            if subscript.is_index:
                _note(found, subscript.index, shape[mode], f"mode {mode} of {access.tensor}")
    for index, extent in given.items():
        _note(found, index, extent, f"the given extent {index}={extent}")
    return {index: extent for index, (extent, _) in found.items()}


def all_extents(viewed: Viewed, known: Mapping[str, int], shapes: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
    """Return the extent of every index of a plain assignment.

    Args:
        viewed: the assignment.
        known: by ``known_extents``.
        shapes: shape of every operand, by the user's name.

    Raises:
        ShapeError: nothing says how far an index goes.
    """
    found = {**known, **viewed.constants}
    if viewed.ranges is not None:
        found = viewed.ranges.complete(found, shapes)
    for index in all_indices(viewed.assignment):
        if index not in found:
            raise ShapeError(f"no operand gives the extent of index {index} of the result {viewed.assignment.target.tensor}")
    return found


def _note(found: dict[str, tuple[int, str]], index: str, extent: int, where: str) -> None:
    known, first = found.setdefault(index, (extent, where))
    if known != extent:
        raise ShapeError(f"index {index} has extent {known} by {first}, but {extent} by {where}")
