"""Contraction paths of products with too many factors to examine all paths: a few that are built step by step.

Such products are usually long chains of matrices. Good paths multiply by rows from the first factor on, by columns from the last one, or
outwards from a vector or thin matrix in between.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush

from .bound import LeastWork
from .contraction import Contraction, members
from .paths import Path, Term, part_indices


def likely_paths(contraction: Contraction, bound: LeastWork) -> Iterator[Path]:
    """Yield the path whose every step multiplies the two parts that take least work, and those that multiply by one factor after the other,
    neighbours first, starting at the first factor and at the last.

    Args:
        contraction: of any number of factors; none is yielded where no index is summed over.
        bound: how much work terms take at least.
    """
    if contraction.output == contraction.mask(contraction.indices):
        return
    numbers = range(len(contraction.operands))
    found = (_by_work(contraction, bound), _one_by_one(contraction, numbers), _one_by_one(contraction, reversed(numbers)))
    yield from dict.fromkeys(found)


def _by_work(contraction: Contraction, bound: LeastWork) -> Path:
    """Multiply the two parts with an index in common that take least work, until one part is left; any two where none have one."""
    present = dict[int, Path]((1 << number, ()) for number in range(len(contraction.operands)))
    waiting = [_pair(contraction, bound, one, other) for one in present for other in present if one < other]
    heapify(waiting)
    while waiting:
        *_, one, other = heappop(waiting)
        if one in present and other in present:
            before, whole = (*present.pop(one), *present.pop(other)), one | other
            for part in present:
                heappush(waiting, _pair(contraction, bound, part, whole))
            present[whole] = (*before, _product(one, other))
    return present[contraction.everything]


def _pair(contraction: Contraction, bound: LeastWork, one: int, other: int) -> tuple[bool, float, int, int]:
    apart = not part_indices(contraction, one) & part_indices(contraction, other)
    return apart, 0.0 if apart else bound.of_term(_product(one, other)), one, other


def _one_by_one(contraction: Contraction, numbers: Iterator[int] | range) -> Path:
    """Multiply by one factor after the other, always the next that has an index in common with the product so far, if there is one."""
    whole, *waiting = (1 << number for number in numbers)
    found: list[Term] = []
    while waiting:
        kept = part_indices(contraction, whole)
        part = next((part for part in waiting if part_indices(contraction, part) & kept), waiting[0])
        waiting.remove(part)
        found.append(_product(whole, part))
        whole |= part
    return tuple(found)


def _product(one: int, other: int) -> Term:
    return Term(tuple(sorted((one, other), key=lambda part: next(members(part)))))
