"""NumPy's notation for the same expressions: ``einsum("ik,kj->ij", A, B)``."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from .errors import ExpressionError

OPERAND_NAMES = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
RESULT_NAME = "out"


def einsum_expression(subscripts: str, count: int) -> str:
    """Return the index notation of an einsum text for ``count`` operands, called A, B, C ...; the result is ``out``.

    Without ``->`` the result has the indices that stand once, in alphabetical order, as in NumPy.

    Raises:
        ExpressionError: the text is no einsum of so many operands, or uses an ellipsis.
    """
    if not isinstance(subscripts, str):
        raise ExpressionError(f"einsum takes a text such as 'ik,kj->ij', not {type(subscripts).__name__}")
    text = subscripts.replace(" ", "")
    if "..." in text:
        raise ExpressionError("einsum: an ellipsis is not supported; name every index")
    if not re.fullmatch(r"[A-Za-z]*(,[A-Za-z]*)*(->[A-Za-z]*)?", text):
        raise ExpressionError(f"einsum: {subscripts!r} is no text such as 'ik,kj->ij'")
    left, arrow, right = text.partition("->")
    parts = left.split(",")
    if len(parts) != count:
        raise ExpressionError(f"einsum: {subscripts!r} names {len(parts)} operands, but {count} were given")
    if count > len(OPERAND_NAMES):
        raise ExpressionError(f"einsum: at most {len(OPERAND_NAMES)} operands, not {count}")
    if not arrow:
        right = "".join(sorted(letter for letter, times in Counter("".join(parts)).items() if times == 1))
    missing = set(right) - set(left)
    if missing:
        raise ExpressionError(f"einsum: index {sorted(missing)[0]!r} of the result stands in no operand")
    factors = [_access(name, part) for name, part in zip(OPERAND_NAMES, parts, strict=False)]
    return f"{_access(RESULT_NAME, right)} = {' * '.join(factors)}"


def _access(name: str, letters: str) -> str:
    return f"{name}({','.join(map(_index, letters))})" if letters else name


def _index(letter: str) -> str:
    """Capital letters are operands' names here, so capital indices get another spelling."""
    return letter if letter.islower() else f"{letter.lower()}_"


def einsum_operands(arrays: tuple[Any, ...]) -> dict[str, Any]:
    """Return the operands by the names that ``einsum_expression`` gives them."""
    return dict(zip(OPERAND_NAMES, arrays, strict=False))
