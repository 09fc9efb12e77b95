"""NumPy's notation for the same expressions: ``einsum("ik,kj->ij", A, B)``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from .errors import ExpressionError, ShapeError

OPERAND_NAMES = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
RESULT_NAME = "out"
ELLIPSIS = "..."
SPREAD = "e_"  # what the indices of an ellipsis are called, with their distance from its end: no letter's name
_PART = r"[A-Za-z]*(\.\.\.)?[A-Za-z]*"


def einsum_expression(subscripts: str, orders: Sequence[int]) -> str:
    """Return the index notation of an einsum text for operands of certain orders, called A, B, C ...; the result is ``out``.

    Without ``->`` the result has the indices that stand once, in alphabetical order, as in NumPy. An ellipsis stands for the
    modes that no letter names, aligned at the last of them; unlike in NumPy, extents of 1 are not stretched.

    Raises:
        ExpressionError: the text is no einsum of so many operands.
        ShapeError: an operand has fewer modes than its letters, or more, without an ellipsis.
    """
    if not isinstance(subscripts, str):
        raise ExpressionError(f"einsum takes a text such as 'ik,kj->ij', not {type(subscripts).__name__}")
    text = subscripts.replace(" ", "")
    if not re.fullmatch(rf"{_PART}(,{_PART})*(->{_PART})?", text):
        raise ExpressionError(f"einsum: {subscripts!r} is no text such as 'ik,kj->ij'")
    left, arrow, right = text.partition("->")
    parts = left.split(",")
    if len(parts) != len(orders):
        raise ExpressionError(f"einsum: {subscripts!r} names {len(parts)} operands, but {len(orders)} were given")
    if len(orders) > len(OPERAND_NAMES):
        raise ExpressionError(f"einsum: at most {len(OPERAND_NAMES)} operands, not {len(orders)}")
    spared = [_spared(*operand) for operand in zip(OPERAND_NAMES, parts, orders, strict=False)]
    unnamed = max((count for count in spared if count is not None), default=0)
    if not arrow:
        once = sorted(letter for letter, times in Counter(left.replace(".", "").replace(",", "")).items() if times == 1)
        right = "".join(("..." if ELLIPSIS in left else "", *once))
    if unnamed and ELLIPSIS not in right:
        raise ExpressionError(f"einsum: the result of {subscripts!r} lacks the ellipsis that its operands have")
    missing = set(right) - set(left) - {"."}
    if missing:
        raise ExpressionError(f"einsum: index {sorted(missing)[0]!r} of the result stands in no operand")
    factors = [_access(name, part, count or 0) for name, part, count in zip(OPERAND_NAMES, parts, spared, strict=False)]
    return f"{_access(RESULT_NAME, right, unnamed)} = {' * '.join(factors)}"


def _spared(name: str, part: str, order: int) -> int | None:
    """Return how many modes the ellipsis of an operand stands for; None where it has none."""
    letters = len(part.replace(ELLIPSIS, ""))
    if ELLIPSIS not in part:
        if letters != order:
            raise ShapeError(f"einsum: operand {name} has {order} modes, but {part!r} names {letters}")
        return None
    if letters > order:
        raise ShapeError(f"einsum: operand {name} has {order} modes, but {part!r} names {letters} beside the ellipsis")
    return order - letters


def _access(name: str, part: str, unnamed: int) -> str:
    """Return the access that a part of the text means; its ellipsis stands for so many modes."""
    before, _, after = part.partition(ELLIPSIS)
    spread = [f"{SPREAD}{place}" for place in range(unnamed, 0, -1)] if ELLIPSIS in part else []
    indices = [*map(_index, before), *spread, *map(_index, after)]
    return f"{name}({','.join(indices)})" if indices else name


def _index(letter: str) -> str:
    """Capital letters are operands' names here, so capital indices get another spelling."""
    return letter if letter.islower() else f"{letter.lower()}_"


def einsum_operands(arrays: tuple[Any, ...]) -> dict[str, Any]:
    """Return the operands by the names that ``einsum_expression`` gives them."""
    return dict(zip(OPERAND_NAMES, arrays, strict=False))
