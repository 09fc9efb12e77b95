"""Tree-separable costs of fully fused forests (Kanakagiri and Solomonik, Definitions 4.6 to 4.8).

The cost of a loop is a function of what it is (``Peel``) and of the cost of what it holds; costs of loops and terms that follow one
another are put together by an associative operator. Both are nondecreasing in these costs, so that parts of a best forest are best.

A buffer is charged where the loops that compute and read it separate, with the indices that are open there, also at the top of the
forest. Definition 4.7 as printed misses buffers between trees of different peeling steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf, prod
from typing import NamedTuple

from ...errors import TuningError
from ...frozen import frozen
from .contraction import Contraction, members
from .paths import Path, read_indices

USUAL_EXTENT = 100.0
"""The extent of an index whose extent is unknown."""


class Peel(NamedTuple):
    """The next loop of a forest, or a term that has all its loops.

    Attributes:
        contraction: what is computed.
        loop: its index; -1 for a term.
        terms: those in the loop, in order.
        removed: the indices of the loops around it, as a mask.
        passed: the indices, as masks, of the buffers that these terms fill for later ones in the same surrounding loop.
    """

    contraction: Contraction
    loop: int
    terms: Path
    removed: int
    passed: tuple[int, ...]

    @property
    def name(self) -> str | None:
        """The name of the loop's index; None for a term."""
        return None if self.loop < 0 else self.contraction.indices[self.loop]

    @property
    def buffers(self) -> tuple[tuple[str, ...], ...]:
        """The names of the open indices of every buffer that is passed on."""
        return tuple(self.contraction.names(mask) for mask in self.passed)


Phi = Callable[[Peel, float], float]
Operator = Callable[[float, float], float]


@frozen
class SeparableCost:
    """A tree-separable cost; infinite where a forest is not allowed.

    Attributes:
        name: what it is called in stages.
        phi: gives the cost of a loop from the cost of what it holds, and that of a term from ``nothing``.
        operator: combines the costs of neighbours.
        nothing: the cost of a term before ``phi``.
    """

    name: str
    phi: Phi
    operator: Operator
    nothing: float = 0.0


def buffer_dimension() -> SeparableCost:
    """Return the largest number of modes of a buffer."""

    def phi(peel: Peel, inner: float) -> float:
        return max((inner, *(float(mask.bit_count()) for mask in peel.passed)))

    return SeparableCost("buffer_dimension", phi, max)


def buffer_size(extents: Mapping[str, float] | None = None) -> SeparableCost:
    """Return the largest number of elements of a buffer; extents that are not given are ``USUAL_EXTENT``."""
    known = extents or {}

    def phi(peel: Peel, inner: float) -> float:
        return max((inner, *(_elements(peel.contraction, mask, known) for mask in peel.passed)))

    return SeparableCost("buffer_size", phi, max)


def cache_misses(extents: Mapping[str, float] | None = None, cached: int = 1) -> SeparableCost:
    """Return the cache misses where the cache holds subtensors of ``cached`` modes (Definition 4.8).

    Every iteration of a loop loads each tensor that has the index and at least ``cached`` further indices to go through.
    """
    known = extents or {}

    def phi(peel: Peel, inner: float) -> float:
        if peel.loop < 0:
            return inner
        bit = 1 << peel.loop
        tensors = {(part, read_indices(peel.contraction, term, part)) for term in peel.terms for part in term.parts}
        tensors.update((term.operands, peel.contraction.written(term.operands)) for term in peel.terms)
        missed = sum(bool(mask & bit) and (mask & ~peel.removed).bit_count() > cached for _, mask in tensors)
        return known.get(peel.contraction.indices[peel.loop], USUAL_EXTENT) * (missed + inner)

    return SeparableCost("cache", phi, lambda one, other: one + other)


def dense_loops(most: int = 2) -> SeparableCost:
    """Return minus the number of independent dense loops, with buffers of at most ``most`` modes. A loop is independent if it holds
    one term, so that no neighbour shares it. It is dense unless the term contains a sparse operand with the loop's index.
    """

    def phi(peel: Peel, inner: float) -> float:
        if any(mask.bit_count() > most for mask in peel.passed):
            return inf
        return inner - (peel.loop >= 0 and len(peel.terms) == 1 and not is_stored(peel))

    return SeparableCost("dense_loops", phi, lambda one, other: one + other)


def is_stored(peel: Peel) -> bool:
    """Return whether a term of a loop contains a sparse operand with the loop's index."""
    return any(
        term.operands >> number & 1 and peel.loop in chain for number, chain in peel.contraction.chains for term in peel.terms
    )


def _elements(contraction: Contraction, mask: int, extents: Mapping[str, float]) -> float:
    return prod((extents.get(contraction.indices[number], USUAL_EXTENT) for number in members(mask)), start=1.0)


def cost_of(wish: object, extents: Mapping[str, float] | None = None, memory_depth: int = 2) -> SeparableCost:
    """Return a cost by its name, or the user's: a ``SeparableCost``, or a pair (phi, operator).

    Raises:
        TuningError: it is none of these.
    """
    named: dict[str, Callable[[], SeparableCost]] = {
        "buffer_dimension": buffer_dimension,
        "buffer_size": lambda: buffer_size(extents),
        "cache": lambda: cache_misses(extents),
        "dense_loops": lambda: dense_loops(memory_depth),
    }
    if isinstance(wish, SeparableCost):
        return wish
    if isinstance(wish, str) and wish in named:
        return named[wish]()
    if isinstance(wish, tuple) and len(wish) == 2 and all(map(callable, wish)):
        return SeparableCost(getattr(wish[0], "__name__", "cost"), *wish)
    known = ", ".join(repr(name) for name in named)
    raise TuningError(f"unknown cost {wish!r}: a cost is {known}, or a pair (phi, operator) of functions")
