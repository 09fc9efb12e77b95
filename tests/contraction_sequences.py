"""All sequences of pairwise contractions (section 4.1.1 of Kanakagiri and Solomonik), listed and counted: the oracle for paths."""

from __future__ import annotations

from collections.abc import Iterator
from math import comb

from sparsetune.compiler.space.forests.contraction import members
from sparsetune.compiler.space.forests.paths import Path, Term


def sequences(operands: int) -> Iterator[Path]:
    """Yield all ways to contract pairs until one tensor is left (section 4.1.1); paths, and orders that are not postorders."""

    def further(present: tuple[int, ...], done: Path) -> Iterator[Path]:
        if len(present) == 1:
            yield done
        for place, one in enumerate(present):
            for other in present[place + 1 :]:
                rest = tuple(part for part in present if part not in (one, other))
                yield from further((*rest, one | other), (*done, Term(tuple(sorted((one, other), key=lambda part: part & -part)))))

    yield from further(tuple(1 << number for number in members(operands)), ())


def sequence_count(tensors: int) -> int:
    """Return how many sequences there are: T(n) = C(n, 2) T(n - 1)."""
    found = 1
    for left in range(2, tensors + 1):
        found *= comb(left, 2)
    return found
