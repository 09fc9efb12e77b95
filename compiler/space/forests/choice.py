"""Forests worth trying on operands of known or guessed size: the cheapest forest of each contraction path, cheapest first."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from math import inf

from ...concrete.depth import MOST_FACTORS
from ...deadline import TimeOver
from ..joins import Joins
from ..relations import Scan, join
from ..situation import FEW_FACTORS
from .bound import LeastWork
from .contraction import Contraction
from .forest import Forest
from .likely import likely_paths
from .optimum import Optimizer
from .paths import Path, PathRules
from .peeling import ForestRules, Peeling
from .work import Sizes, work

MOST_AT_ONCE = 4
"""Most operands of a product that is also split into terms of several factors."""
MOST_ELEMENTS = 2.0**27
"""Most elements of a buffer."""
_UNKNOWN_EXTENT = 4096.0
_UNKNOWN_RUN = 8.0


def promising(contraction: Contraction, sizes: Sizes, most: int, watch: Callable[[], None], limit: float = inf) -> Iterator[Forest]:
    """Yield forests of least work, one for every contraction path, by their work.

    Paths are examined in the order of their lower bounds, until the bound is more than the work of the forests found (branch and bound).

    Args:
        contraction: what is computed.
        sizes: of its operands.
        most: how many forests are yielded.
        watch: called before each path is examined; if it raises ``TimeOver``, the forests found by then are yielded.
        limit: forests of more work are not yielded.
    """
    return (forest for _, forest in cheapest(contraction, sizes, most, watch, limit))


def cheapest(
    contraction: Contraction, sizes: Sizes, most: int, watch: Callable[[], None], limit: float
) -> Iterator[tuple[float, Forest]]:
    """Yield the same forests with their work."""
    if not 2 < len(contraction.operands) <= MOST_FACTORS:
        return
    bound, peeling = LeastWork(contraction, sizes), _peeling(contraction)
    optimizers = [Optimizer(peeling, work(sizes, elements)) for elements in _buffers(contraction, sizes)]
    found: list[tuple[float, int, Forest]] = []
    with suppress(TimeOver):
        every = enumerate(paths_of(contraction, bound))
        for least, number, path in sorted((bound.of_path(path), number, path) for number, path in every):
            watch()
            if least >= (found[-1][0] if len(found) == most else limit):
                break
            for best in {best.forest: best for best in (optimizer.optimum(path) for optimizer in optimizers)}.values():
                if best.forest is not None and best.cost < limit:
                    insort(found, (best.cost, number, best.forest), key=lambda item: item[:2])
                    del found[most:]
    for cost, _, forest in found:
        yield cost, forest


def _buffers(contraction: Contraction, sizes: Sizes) -> tuple[float, ...]:
    """Return the limits on elements of buffers to try. For long products, of which only a few paths are examined, forests with
    buffers of one mode are tried too: work counts buffers as if they were full, and where they are not, making rows one by one takes
    less."""
    if len(contraction.operands) <= FEW_FACTORS:
        return (MOST_ELEMENTS,)
    return MOST_ELEMENTS, max(sizes.extents.values())


def paths_of(contraction: Contraction, bound: LeastWork) -> Iterator[Path]:
    """Return the contraction paths to examine."""
    if len(contraction.operands) > FEW_FACTORS:
        return likely_paths(contraction, bound)
    return _peeling(contraction).paths()


def _peeling(contraction: Contraction) -> Peeling:
    return Peeling(contraction, ForestRules(PathRules(pairwise=len(contraction.operands) > MOST_AT_ONCE)))


def sizes_of(
    contraction: Contraction, extents: Mapping[str, int], fibres: Mapping[str, tuple[float, ...]], joins: Joins | None = None
) -> Sizes:
    """Return sizes, with guesses for those that are not known.

    Args:
        contraction: what is computed.
        extents: by index, as far as they are known.
        fibres: by operand, how many positions each level has, as far as they are known.
        joins: of the sparse operands, where they are at hand.
    """
    known = {name: 1.0 * extents.get(name, _UNKNOWN_EXTENT) for name in contraction.indices}
    counts: dict[int, tuple[float, ...]] = {}
    for number, _ in contraction.chains:
        given, levels = fibres.get(contraction.operands[number].tensor), contraction.levels(number)
        counts[number] = given if given is not None and len(given) == len(levels) else _guessed(contraction, levels, known)
    if contraction.fibres is not None:
        merged = contraction.fibres
        counts[merged.operand] = counts[merged.operand][len(merged.levels) - 1 :]
        known[contraction.indices[merged.index]] = counts[merged.operand][0]
    if joins is None or len(contraction.chains) < 2 or any(contraction.operands[number].tensor not in fibres for number in counts):
        return Sizes(known, counts)
    sizes = joins

    def joined(depths: Mapping[int, int]) -> float | None:
        scans = {
            Scan(contraction.operands[number].tensor, tuple(contraction.indices[index] for index in levels))
            for number, depth in depths.items()
            if (levels := contraction.levels(number)[: contraction.depth(number, depth)])
        }
        return sizes.size(join(scans)) if scans else 1.0

    return Sizes(known, counts, joined)


def _guessed(contraction: Contraction, chain: tuple[int, ...], extents: Mapping[str, float]) -> tuple[float, ...]:
    """Return guessed numbers of positions of levels, with short fibres below the first level."""
    counts: list[float] = []
    for index in chain:
        extent = extents[contraction.indices[index]]
        counts.append(counts[-1] * min(extent, _UNKNOWN_RUN) if counts else extent)
    return tuple(counts)
