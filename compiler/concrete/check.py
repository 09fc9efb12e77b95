"""Checks an assignment of index notation before any data is seen."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache

from ..errors import ExpressionError, FormatError
from ..format import Format, parse_format
from ..notation.nodes import Access, Apply, Assignment, Expr, Neg, Sum, accesses, indices, walk_expression
from ..notation.parser import parse
from ..shown import is_by_name
from ..source import Span, pointing

KEPT = 256
"""How many parsed expressions a process keeps."""


def parsed(expression: str) -> Assignment:
    """Read an expression and check that it makes sense; the same text is read once. Raises ``ExpressionError``."""
    return _parsed(expression) if type(expression) is str else _read(expression)


def _read(expression: str) -> Assignment:
    assignment = parse(expression)
    check_assignment(assignment, affine=True)
    return assignment


_parsed = lru_cache(KEPT)(_read)


def check_assignment(assignment: Assignment, affine: bool = False) -> None:
    """Refuse what has no meaning.

    Args:
        affine: whether compound subscripts are allowed.

    Raises:
        ExpressionError: an index stands twice on the left, the result is read without ``+=``, one name is used with
            different numbers of modes, or a subscript is not a plain index where it has to be.
    """
    target = assignment.target
    _check_target(assignment)
    orders: dict[str, Access] = {}
    for access in (target, *accesses(assignment.value)):
        first = orders.setdefault(access.tensor, access)
        if len(first.subscripts) != len(access.subscripts):
            _fail(
                f"{access.tensor} has {len(access.subscripts)} subscripts here and {len(first.subscripts)} elsewhere",
                assignment,
                access.span,
            )
        if not access.is_plain and not affine:
            found = access.subscripts[_first_affine(access)]
            _fail(f"compound subscripts such as {found} can be evaluated and compiled, but not here", assignment, access.span)
        if access is not target and access.tensor == target.tensor:
            _fail(f"{target.tensor} is the result and cannot be read; use '+=' to start from its given value", assignment, access.span)
    _check_sums(assignment)
    names = set(orders)
    for access in orders.values():
        clash = names.intersection(access.indices)
        if clash:
            _fail(f"{sorted(clash)[0]} is both a tensor and an index", assignment, access.span)


def _check_sums(assignment: Assignment) -> None:
    for node in walk_expression(assignment.value):
        if not isinstance(node, Sum):
            continue
        for index in node.over:
            if index in assignment.target.indices:
                _fail(f"index {index} is on the left, so that it is not summed", assignment, node.span)
            if index not in indices(node.operand):
                _fail(f"nothing that is summed over {index} has that index", assignment, node.span)


def _check_target(assignment: Assignment) -> None:
    seen: set[str] = set()
    for subscript in assignment.target.subscripts:
        if not subscript.is_index:
            continue
        if subscript.index in seen:
            _fail(f"index {subscript.index} stands twice on the left side", assignment, assignment.target.span)
        seen.add(subscript.index)


def _first_affine(access: Access) -> int:
    return next(place for place, subscript in enumerate(access.subscripts) if not subscript.is_index)


def _fail(message: str, assignment: Assignment, span: Span | None) -> None:
    raise ExpressionError(pointing(message, assignment.text, span))


def meet_again(assignment: Assignment, stored: Collection[str]) -> bool:
    """Return whether stored operands are read at different indices, as in products of matrices: their coordinates are then gone through
    again and again."""
    return len({access.indices for access in accesses(assignment.value) if access.tensor in stored}) > 1


def tensor_names(assignment: Assignment) -> tuple[str, ...]:
    """Return the operands' names in written order; the result's own name comes last where it is accumulated into."""
    names = [access.tensor for access in accesses(assignment.value)]
    if assignment.operator == "+=":
        names.append(assignment.target.tensor)
    return tuple(dict.fromkeys(names))


def check_semiring(value: Expr, add: str, assignment: Assignment, multiply: str = "*") -> None:
    """Refuse negation under an add that has no inverse, and functions beside other operators than + and *."""
    if (add, multiply) == ("+", "*"):
        return
    for node in walk_expression(value):
        if isinstance(node, Apply | Sum):
            what = node.function if isinstance(node, Apply) else "sum"
            raise ExpressionError(pointing(f"'{what}' has no meaning with the semiring ({add}, {multiply})", assignment.text, node.span))
    if add == "+":
        return
    for node in walk_expression(value):
        if isinstance(node, Neg):
            raise ExpressionError(pointing(f"'-' has no meaning where the sum is {add}", assignment.text, node.span))


def formats_of(assignment: Assignment, formats: Mapping[str, Format | str | None]) -> dict[str, Format]:
    """Return the format of every tensor of an assignment; what is not named is dense.

    Raises:
        FormatError: a format is unknown, does not fit its tensor, or names a tensor that the expression does not have.
    """
    if not is_by_name(formats):
        raise FormatError(f"formats are given by tensor, such as {{'A': 'csr'}}, not as {type(formats).__name__}")
    orders = {access.tensor: len(access.subscripts) for access in (assignment.target, *accesses(assignment.value))}
    for name in formats:
        if name not in orders:
            raise FormatError(f"format given for {name}, which the expression does not have; its tensors are {', '.join(orders)}")
    found = {}
    for name, order in orders.items():
        try:
            found[name] = parse_format(formats.get(name), order)
        except FormatError as error:
            raise FormatError(f"{name}: {error}") from None
    return found
