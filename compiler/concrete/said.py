"""What a schedule says of operands, such as formats and protocols: of all reads of a tensor, or of those with the same subscripts."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TypeVar

from ..notation.nodes import Access

Said = TypeVar("Said")


def operand_of(access: Access) -> Access:
    """Return the operand that stands for all reads written like an access: its tensor and subscripts, without protocols."""
    return Access(access.tensor, access.subscripts)


def means(operand: Access, access: Access) -> bool:
    """Whether an operand, all reads of a tensor where it has no subscripts, is or includes an access."""
    return operand.tensor == access.tensor and operand.subscripts in ((), access.subscripts)


def said_of(access: Access, said: Collection[tuple[Access, Said]]) -> Said | None:
    """Return what ``said`` has for an access: for reads at its subscripts, or else for all reads of its tensor; None if it has
    nothing. ``said`` pairs operands with values.
    """
    if not said:  # of most programs and schedules nothing is said
        return None
    found = [(operand, what) for operand, what in said if means(operand, access)]
    if not found:
        return None
    return max(found, key=lambda pair: len(pair[0].subscripts))[1]


def saying(operand: Access, what: Said, said: Iterable[tuple[Access, Said]]) -> tuple[tuple[Access, Said], ...]:
    """Return ``said`` with one more pair, which replaces a pair for the same reads."""
    return (*((other, known) for other, known in said if not means(operand, other)), (operand, what))
