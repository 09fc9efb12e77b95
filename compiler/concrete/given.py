"""Checks what is given beside an expression: operands, dtypes, semirings, extents. Chooses the extents to compile in."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from ..errors import DataError, ExpressionError, ScheduleError, ShapeError
from ..format import MOST_EXTENT, Format
from ..notation.functions import FUNCTIONS
from ..notation.nodes import Assignment, walk_expression
from ..notation.suggest import indexed_name
from ..notation.value_types import TYPES
from ..numpy_later import np
from ..shown import is_by_name, is_word, shown
from .affine import extents_of_result, writings_of

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

SEMIRINGS = {
    ("+", "*"),
    ("min", "+"),
    ("max", "+"),
    ("max", "*"),
    ("min", "*"),
    ("or", "and"),
    ("max", "min"),
    ("min", "max"),
    ("+", "and"),
}
OPERATORS = ("+", "*", "min", "max", "and", "or")
CONSTANT_BOUND = 1024
"""Extents of dense modes up to here become compile-time constants when operands are at hand."""


@cache
def _supported() -> dict[np.dtype[Any], str]:
    return {np.dtype(name): name for name in TYPES}


def supported_dtype(kind: Any, name: str | None) -> str:
    """Return the name of a dtype that kernels compute with; DataError for others."""
    found = _supported().get(kind) if isinstance(kind, np.dtype) else np.dtype(kind).name
    if found not in TYPES:
        kind = np.dtype(kind)
        kind = kind if kind.isnative else kind.newbyteorder("=")
        found = kind.name
        if kind in _supported():
            return found
        if name is None:
            raise DataError(f"no kernel computes with values of type {found}; kernels take {', '.join(TYPES)}")
        raise DataError(f"operand '{name}' has values of type {found}; kernels take {', '.join(TYPES)}: convert it with astype")
    return found


def check_convert(convert: str) -> None:
    """Raise ``ScheduleError`` unless it is said whether operands may be converted."""
    if not is_word(convert, "auto", "never"):
        raise ScheduleError(f"convert is 'auto' or 'never', not {shown(convert)}")


def checked_operands(expression: str, names: tuple[str, ...], operands: Mapping[str, Any]) -> dict[str, Any]:
    """Return the operands of an expression, whose names are known; ExpressionError where one is missing or not used."""
    if not isinstance(operands, Mapping):
        raise ExpressionError(f"operands are given by name, {{'A': A, ...}}, not as {type(operands).__name__}")
    for name in names:
        if name not in operands:
            access, hint = indexed_name(name), "give it by its name"
            if access and access.partition("(")[0] in operands:
                hint = f"indices stand in brackets, {access}"
            elif name in FUNCTIONS:
                hint = f"around bare names it is a tensor; the function takes tensors with indices: {name}(A(i,j)), {name}(s())"
            raise ExpressionError(f"operand '{name}' of '{expression}' is missing; {hint}")
    for name in operands:
        if name not in names:
            raise ExpressionError(f"operand '{name}' is not used in '{expression}'; its operands are {', '.join(names) or 'none'}")
    return {name: operands[name] for name in names}


def checked_dtype(dtype: DTypeLike | None) -> np.dtype[Any] | None:
    """Return the dtype to compute with; DataError where kernels have no such type."""
    if dtype is None:
        return None
    try:
        kind = np.dtype(dtype)
    except Exception:  # NumPy asks a foreign object for its dtype, which may raise anything
        raise DataError(f"dtype {shown(dtype)} is not known to NumPy; kernels take {', '.join(TYPES)}") from None
    return np.dtype(supported_dtype(kind, None))


def checked_semiring(semiring: tuple[str, ...] | None) -> tuple[str, str]:
    """Return the pair of operators; ExpressionError where it is no semiring of the known operators."""
    if semiring is None:
        return ("+", "*")
    if not isinstance(semiring, (tuple, list)):
        raise ExpressionError(f"a semiring is a pair such as ('min', '+'), not {shown(semiring)}")
    pair = tuple(semiring)
    if len(pair) != 2 or not all(is_word(operator, *OPERATORS) for operator in pair):
        raise ExpressionError(f"unknown semiring {shown(semiring)}: a pair of the operators {' '.join(OPERATORS)}, such as ('min', '+')")
    if pair not in SEMIRINGS:
        known = ", ".join(f"({add}, {multiply})" for add, multiply in sorted(SEMIRINGS))
        raise ExpressionError(
            f"{pair} is no semiring: multiply must distribute over add and its identity must annihilate; known are {known}"
        )
    return pair


def checked_extents(assignment: Assignment, extents: Mapping[str, int] | None) -> dict[str, int]:
    """Return the extents as integers; ExpressionError for an index that the expression does not have.

    Under the name of the result stands its whole shape.
    """
    if extents is None:
        return {}
    if not is_by_name(extents):
        raise ExpressionError(f"extents are given by index, such as {{'k': 32}}, not as {type(extents).__name__}")
    whole: Any = extents.get(assignment.target.tensor, ())
    own = extents_of_result(assignment, whole)
    extents = {name: extent for name, extent in extents.items() if name != assignment.target.tensor}
    known = {name for node in (assignment.target, *walk_expression(assignment.value)) for name in getattr(node, "indices", ())}
    known |= {writing.index for writing in writings_of(assignment)}
    for name, extent in (*extents.items(), *own.items()):
        if name not in known:
            raise ExpressionError(
                f"extent given for index '{name}', which the expression does not have; its indices are {', '.join(sorted(known))}"
            )
        if isinstance(extent, bool) or not isinstance(extent, (int, np.integer)):
            raise ExpressionError(f"the extent of index '{name}' must be a whole number, not {shown(extent)}")
        if not 0 <= extent <= MOST_EXTENT:
            raise ExpressionError(f"the extent of index '{name}' must be a whole number from 0 to {MOST_EXTENT}: coordinates have 64 bits")
    for name, extent in own.items():
        if extents.get(name, extent) != extent:
            raise ShapeError(f"index '{name}' has two extents: {extents[name]}, and {extent} by the shape of '{assignment.target.tensor}'")
    return {name: int(extent) for name, extent in (*extents.items(), *own.items())}


def constant_extents(assignment: Assignment, formats: Mapping[str, Format], extents: Mapping[str, int]) -> dict[str, int]:
    """Return the extents worth compiling in, up to ``CONSTANT_BOUND``: those of indices that stand, in every tensor, only at dense levels
    below all levels with coordinates. They are modes of dense tensors, and dense rows and blocks of sparse ones."""
    stored = set()
    everything = [assignment.target, *(node for node in walk_expression(assignment.value) if hasattr(node, "tensor"))]
    for access in everything:
        form = formats[access.tensor]  # type: ignore[attr-defined]  # accesses only
        last = max((level for level, kind in enumerate(form.levels) if not kind.full), default=-1)
        stored |= {name for mode in form.order[: last + 1] for name in access.subscripts[mode].indices}  # type: ignore[attr-defined]
    return {name: extent for name, extent in extents.items() if name not in stored and 0 < extent <= CONSTANT_BOUND}
