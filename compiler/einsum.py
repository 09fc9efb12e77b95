"""NumPy's notation for the same expressions: ``einsum("ik,kj->ij", A, B)``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from numbers import Integral
from string import ascii_lowercase, ascii_uppercase
from typing import Any

from .errors import ExpressionError, ShapeError
from .shown import shown

OPERAND_NAMES = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
RESULT_NAME = "out"
ELLIPSIS = "..."
SPREAD = "e_"  # prefix of the indices of an ellipsis, followed by their distance from its end; no letter gives such a name
_PART = r"[A-Za-z]*(\.\.\.)?[A-Za-z]*"


def einsum_expression(subscripts: str, shapes: Sequence[tuple[int, ...]]) -> tuple[str, list[list[int]]]:
    """Return the index notation of an einsum text for operands of given shapes, and for each operand the modes that are indexed.

    Operands are called A, B, C ... and the result ``out``. Without ``->`` the result has the indices that occur once, in
    alphabetical order, as in NumPy. An ellipsis stands for the modes that no letter names, aligned at the last of them. A mode of
    extent 1 whose index has another extent elsewhere is not indexed: as in NumPy, the operand is repeated along that index.

    Raises:
        ExpressionError: the text is not an einsum of this many operands.
        ShapeError: an operand has fewer modes than letters, or has more and no ellipsis.
    """
    if not isinstance(subscripts, str):
        raise ExpressionError(f"einsum takes a text such as 'ik,kj->ij', or operands and lists in turn, not {type(subscripts).__name__}")
    text = subscripts.replace(" ", "")
    if not re.fullmatch(rf"{_PART}(,{_PART})*(->{_PART})?", text):
        raise ExpressionError(f"einsum: {subscripts!r} is no text such as 'ik,kj->ij'")
    left, arrow, right = text.partition("->")
    parts = left.split(",")
    if len(parts) != len(shapes):
        raise ExpressionError(f"einsum: {subscripts!r} names {len(parts)} operands, but {len(shapes)} were given")
    if len(shapes) > len(OPERAND_NAMES):
        raise ExpressionError(f"einsum: at most {len(OPERAND_NAMES)} operands, not {len(shapes)}")
    spared = [_spared(name, part, len(shape)) for name, part, shape in zip(OPERAND_NAMES, parts, shapes, strict=False)]
    unnamed = max((count for count in spared if count is not None), default=0)
    if not arrow:
        once = sorted(letter for letter, times in Counter(left.replace(".", "").replace(",", "")).items() if times == 1)
        right = "".join(("..." if ELLIPSIS in left else "", *once))
    if unnamed and ELLIPSIS not in right:
        raise ExpressionError(f"einsum: the result of {subscripts!r} lacks the ellipsis that its operands have")
    missing = set(right) - set(left) - {"."}
    if missing:
        raise ExpressionError(f"einsum: index {sorted(missing)[0]!r} of the result stands in no operand")
    indexed = [_indices(part, count or 0) for part, count in zip(parts, spared, strict=True)]
    kept = _unstretched(indexed, shapes)
    factors = [_access(name, [indices[mode] for mode in modes]) for name, indices, modes in zip(OPERAND_NAMES, indexed, kept, strict=False)]
    return f"{_access(RESULT_NAME, _indices(right, unnamed))} = {' * '.join(factors)}", kept


def _unstretched(indexed: Sequence[list[str]], shapes: Sequence[tuple[int, ...]]) -> list[list[int]]:
    """Return the modes of each operand, without those of extent 1 whose index has another extent in another operand."""
    pairs = [list(zip(indices, shape, strict=True)) for indices, shape in zip(indexed, shapes, strict=True)]
    wide = [{index for index, extent in pair if extent != 1} for pair in pairs]
    anywhere = set().union(*wide)
    return [
        [mode for mode, index in enumerate(indices) if index in own or index not in anywhere]
        for indices, own in zip(indexed, wide, strict=True)
    ]


def from_lists(arguments: Sequence[Any]) -> tuple[str, tuple[Any, ...]]:
    """Return the text and the operands of NumPy's other way to write an einsum: ``(A, [0, 1], B, [1, 2], [0, 2])``.

    Raises:
        ExpressionError: a list holds anything but an Ellipsis and whole numbers from 0 to 51, or an operand has no list.
    """
    operands, lists = tuple(arguments[0::2]), list(arguments[1::2])
    result = ""
    if len(operands) > len(lists):
        result = f"->{_from_list(operands[-1])}"
        operands = operands[:-1]
    if not operands:
        raise ExpressionError("einsum takes a text such as 'ik,kj->ij', or operands and lists in turn: einsum(A, [0, 1], x, [1], [0])")
    return ",".join(map(_from_list, lists)) + result, operands


def _from_list(entries: Any) -> str:
    letters = ascii_uppercase + ascii_lowercase  # NumPy's order
    if not isinstance(entries, (list, tuple, range)) and getattr(entries, "ndim", None) != 1:
        raise ExpressionError(
            "einsum takes a text such as 'ik,kj->ij', or operands and lists in turn: each operand is followed by the list of its indices,"
            f" such as [0, 1], not {type(entries).__name__}"
        )
    for entry in entries:
        if entry is not Ellipsis and (isinstance(entry, bool) or not isinstance(entry, Integral) or not 0 <= int(entry) < len(letters)):
            raise ExpressionError(
                f"einsum: {shown(entry)} in a list of indices is neither a number from 0 to {len(letters) - 1} nor Ellipsis"
            )
    return "".join(ELLIPSIS if entry is Ellipsis else letters[entry] for entry in entries)


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


def _indices(part: str, unnamed: int) -> list[str]:
    """Return the indices that a part of the text means; its ellipsis stands for so many modes."""
    before, _, after = part.partition(ELLIPSIS)
    spread = [f"{SPREAD}{place}" for place in range(unnamed, 0, -1)] if ELLIPSIS in part else []
    return [*map(_index, before), *spread, *map(_index, after)]


def _access(name: str, indices: Sequence[str]) -> str:
    return f"{name}({','.join(indices)})" if indices else name


def _index(letter: str) -> str:
    """Return the name of an index. Capital letters are names of operands here, so capital indices get another spelling."""
    return letter if letter.islower() else f"{letter.lower()}_"


def einsum_operands(arrays: Sequence[Any]) -> dict[str, Any]:
    """Return the operands by the names that ``einsum_expression`` gives them."""
    return dict(zip(OPERAND_NAMES, arrays, strict=False))
