"""How many cases the loops over an expression would distinguish if all its operands met in one nest.

An iteration lattice has a loop for every set of operands that are not exhausted, and in it a case for every set that is
present (Kjolstad et al., "The tensor algebra compiler", section 5): a sum of n operands with L stored levels takes
(2L + 1)^n - (2L)^n cases.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..format import Format, LevelKind
from ..notation.nodes import Access, Add, Div, Expr, Mul, Neg, accesses

Points = frozenset[frozenset[Access]]
_NOWHERE: Points = frozenset()
_EVERYWHERE: Points = frozenset({frozenset()})
_MOST_OPERANDS = 8  # of one expression, beyond which there are too many cases for certain


def cases(value: Expr, loops: tuple[str, ...], formats: Mapping[str, Format], most: int) -> int:
    """Return the number of cases; counting ends at the first number above ``most``."""
    sparse = {access for access in accesses(value) if not formats[access.tensor].is_dense}
    if len(sparse) > _MOST_OPERANDS:
        return most + 1
    return _cases(value, loops, formats, most, frozenset())


def _cases(value: Expr, loops: tuple[str, ...], formats: Mapping[str, Format], most: int, absent: frozenset[Access]) -> int:
    index, *rest = loops or (None,)
    points = _points(value, index, formats, absent)
    if index is None or points in (_NOWHERE, _EVERYWHERE):
        return 0 if not points else 1 if index is None else _cases(value, tuple(rest), formats, most, absent)
    operands = frozenset().union(*points)
    total = 0
    for case in points:
        around = sum(case <= loop for loop in points)
        total += around * _cases(value, tuple(rest), formats, most, absent | (operands - case))
        if total > most:
            break
    return total


def _points(value: Expr, index: str | None, formats: Mapping[str, Format], absent: frozenset[Access]) -> Points:
    """Return the sets of operands that are present together at some coordinate of an index."""
    match value:
        case Access():
            if value in absent:
                return _NOWHERE
            return frozenset({frozenset({value})}) if _stores(value, index, formats[value.tensor]) else _EVERYWHERE
        case Neg(operand):
            return _points(operand, index, formats, absent)
        case Mul(operands):
            found = _EVERYWHERE
            for operand in operands:
                found = frozenset(left | right for left in found for right in _points(operand, index, formats, absent))
            return found
        case Add() | Div():
            found = _NOWHERE
            for operand in value.children:
                more = _points(operand, index, formats, absent)
                found = found | more | frozenset(left | right for left in found for right in more)
            return found
        case _:
            return _EVERYWHERE


def _stores(access: Access, index: str | None, form: Format) -> bool:
    kinds = zip(form.order, form.levels, strict=True)
    return any(kind is not LevelKind.DENSE and access.subscripts[mode].index == index for mode, kind in kinds)
